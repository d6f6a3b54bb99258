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
    for link in lacking(&host, owner, result)? {
        host.change_link(&link, &LinkChange::new().hairpin(true))?;
        transaction.on_failure(
            format!("switch hairpin mode of {} off", link.name),
            move |_| Handle::host()?.change_link(&link, &LinkChange::new().hairpin(false)),
        );
    }
    Ok(())
}

/// Switches it on where somebody has switched it off since.
pub fn mend(owner: &Owner, result: &CniResult) -> Result<(), Error> {
    let host = Handle::host()?;
    for link in lacking(&host, owner, result)? {
        host.change_link(&link, &LinkChange::new().hairpin(true))?;
    }
    Ok(())
}

/// CHECK: it is as [`allow`] left it.
pub fn check(owner: &Owner, result: &CniResult) -> Result<(), Error> {
    match lacking(&Handle::host()?, owner, result)?.first() {
        None => Ok(()),
        Some(link) => Err(Error::Hairpin(link.name.clone())),
    }
}

/// The ports of this attachment whose hairpin mode is off and should be on.
fn lacking(host: &Handle, owner: &Owner, result: &CniResult) -> Result<Vec<Link>, Error> {
    let mut found = Vec::new();
    for interface in result.interfaces.iter().filter(|i| i.sandbox.is_empty()) {
        let link = host.find_link(&interface.name)?;
        found.extend(link.filter(|link| wants_hairpin(link, owner)));
    }
    Ok(found)
}

fn wants_hairpin(link: &Link, owner: &Owner) -> bool {
    let alias = link.alias.as_deref().unwrap_or_default();
    let is_off = link.port.is_some_and(|port| !port.hairpin);
    is_off && alias.starts_with(&owner.instance_hash()) && !alias.ends_with(FORBIDDEN)
}
