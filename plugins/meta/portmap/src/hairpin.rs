//! Hairpin mode of the container's bridge port.

use cni_types::result::CniResult;
use netfilter::{Netfilter, Owner};
use netlink::{Handle, Link, LinkChange};
use skel::Transaction;

use crate::error::Error;

/// What the `bridge` plugin appends to a port's alias if its configuration switches hairpin mode off by name.
const FORBIDDEN: &str = ", hairpin: off";

/// Lets the container reach itself through its published port: where bridged frames pass the packet filter,
/// the answer to its own request has to leave by the port that the request came in by.
///
/// Only a port that the `bridge` plugin made for this attachment is touched, and only if its configuration
/// leaves hairpin mode open.
pub fn allow(
    transaction: &mut Transaction<Netfilter>,
    owner: &Owner,
    result: &CniResult,
) -> Result<(), Error> {
    let host = Handle::host()?;
    for interface in result.interfaces.iter().filter(|i| i.sandbox.is_empty()) {
        let Some(link) = host.find_link(&interface.name)? else {
            continue;
        };
        if !wants_hairpin(&link, owner) {
            continue;
        }
        host.change_link(&link, &LinkChange::new().hairpin(true))?;
        transaction.on_failure(
            format!("switch hairpin mode of {} off", link.name),
            move |_| Handle::host()?.change_link(&link, &LinkChange::new().hairpin(false)),
        );
    }
    Ok(())
}

fn wants_hairpin(link: &Link, owner: &Owner) -> bool {
    let alias = link.alias.as_deref().unwrap_or_default();
    let is_off = link.port.is_some_and(|port| !port.hairpin);
    is_off && alias.starts_with(&owner.instance_hash()) && !alias.ends_with(FORBIDDEN)
}
