//! The host's switches for passing packets on.

use std::path::PathBuf;

use ipnetwork::IpNetwork;
use netlink::{Handle, sysctl};
use skel::log;

use crate::error::Error;

/// Switches forwarding on for the families of these addresses. It stays on: others may need it by then.
///
/// # Errors
/// When a switch cannot be set.
pub fn enable(host: &Handle, addresses: &[IpNetwork]) -> Result<(), Error> {
    for ipv6 in families(addresses) {
        if !is_on(host, ipv6)? {
            sysctl::ensure(&switch(ipv6)?, "1")?;
        }
    }
    Ok(())
}

/// CHECK: forwarding is still on for the families of these addresses.
///
/// # Errors
/// [`Error::Check`] if it is not.
pub fn verify(host: &Handle, addresses: &[IpNetwork]) -> Result<(), Error> {
    for ipv6 in families(addresses) {
        if !is_on(host, ipv6)? {
            let path = switch(ipv6)?;
            return Err(Error::Check(format!(
                "forwarding is off ({})",
                path.display()
            )));
        }
    }
    Ok(())
}

/// The families that there are addresses of; true means IPv6.
fn families(addresses: &[IpNetwork]) -> impl Iterator<Item = bool> {
    let has = |ipv6| addresses.iter().any(|address| address.is_ipv6() == ipv6);
    [false, true].into_iter().filter(move |ipv6| has(*ipv6))
}

fn switch(ipv6: bool) -> Result<PathBuf, Error> {
    Ok(match ipv6 {
        false => sysctl::path(&["net", "ipv4", "ip_forward"])?,
        true => sysctl::conf("ipv6", "all", "forwarding")?,
    })
}

/// Asks the kernel, and where it does not answer, the file.
fn is_on(host: &Handle, ipv6: bool) -> Result<bool, Error> {
    match host.forwards(ipv6) {
        Ok(on) => Ok(on),
        Err(error) => {
            log::debug(format_args!("{error}"));
            Ok(sysctl::read(&switch(ipv6)?)? == "1")
        }
    }
}
