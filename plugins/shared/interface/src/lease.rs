//! Addresses from IPAM, and the name that they are for.

use std::time::{Duration, Instant};

use cni_types::result::CniResult;
use netlink::{Handle, LinkRef};
use skel::{Delegate, Transaction, log};

use crate::addressing;
use crate::error::Error;

/// The set's own IPAM plugins that look at no link, only at files.
const LOOK_AT_FILES: [&str; 2] = ["host-local", "static"];

/// How long a link may take to carry packets before IPAM is asked all the same.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether IPAM needs the link when it is asked, and when it is told to release: a DHCP client speaks over it. That of
/// another set may be one, too.
#[must_use]
pub fn speaks_over_the_link(ipam: &Delegate) -> bool {
    !LOOK_AT_FILES.contains(&ipam.name())
}

/// Sets a link up for IPAM to speak over, and waits for it to carry packets, for the first one would be lost otherwise.
/// Routers are not listened to in the meantime.
///
/// # Errors
/// When the link cannot be set up, or is gone.
pub fn open_for_ipam(container: &Handle, link: &impl LinkRef) -> Result<(), Error> {
    addressing::refuse_routers(container, link)?;
    container.set_up(link)?;
    match container.wait_running(link, Instant::now() + PATIENCE) {
        Err(error @ netlink::Error::Timeout { .. }) => log::info(format_args!("{error}")),
        other => drop(other?),
    }
    Ok(())
}

/// Asks IPAM for addresses; they are released again if the ADD fails. A result without an address, or with something
/// that the kernel cannot take, is an error.
///
/// # Errors
/// IPAM's own, passed through; [`Error::NoAddress`]; those of [`addressing::require_possible`].
pub fn lease<W: 'static>(
    transaction: &mut Transaction<W>,
    ipam: &Delegate,
) -> Result<CniResult, Error> {
    let given = ipam.add()?;
    let release = ipam.clone();
    transaction.on_failure("release the addresses", move |_: &mut W| release.del());
    log::info(format_args!(
        "{} gave {} addresses",
        ipam.name(),
        given.ips.len()
    ));
    if given.ips.is_empty() {
        return Err(Error::NoAddress);
    }
    addressing::require_possible(&given)?;
    Ok(CniResult {
        interfaces: Vec::new(),
        ..given
    })
}

/// A name that is taken in the container is found out before anything is leased or made for it.
///
/// # Errors
/// [`Error::Exists`] if it is taken.
pub fn refuse_taken_name(container: &Handle, ifname: &str) -> Result<(), Error> {
    match container.find_link(ifname)? {
        Some(_) => Err(Error::Exists(ifname.to_owned())),
        None => Ok(()),
    }
}
