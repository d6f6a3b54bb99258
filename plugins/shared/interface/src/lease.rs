//! Addresses from IPAM, and the name that they are for.

use cni_types::result::CniResult;
use netlink::Handle;
use skel::{Delegate, Transaction, log};

use crate::addressing;
use crate::error::Error;

/// Asks IPAM for addresses; they are released again if the ADD fails. A result without an address, or with a route
/// that the kernel cannot take, is an error.
///
/// # Errors
/// IPAM's own, passed through; [`Error::NoAddress`]; [`Error::GatewayFamily`].
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
    addressing::require_gateways(&given)?;
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
