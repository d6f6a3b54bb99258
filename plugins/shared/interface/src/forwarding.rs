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

/// What keeps a link of the host from having IPv6 addresses, if anything does. `links` are looked at in this order, and
/// the first that is there tells; a link still to be made takes over what `default` says.
///
/// # Errors
/// When one of the names cannot be a link's.
pub fn ipv6_obstacle(links: &[&str]) -> Result<Option<String>, Error> {
    for link in links {
        match sysctl::read(&sysctl::conf("ipv6", link, "disable_ipv6")?) {
            Ok(value) if value == "0" => return Ok(None),
            Ok(value) => {
                return Ok(Some(format!("net.ipv6.conf.{link}.disable_ipv6={value}")));
            }
            Err(error) => log::debug(format_args!("{error}")),
        }
    }
    Ok(Some("the kernel has no IPv6".to_owned()))
}
