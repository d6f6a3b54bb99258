//! The host's switches for passing packets on.

use ipnetwork::IpNetwork;
use netlink::sysctl;

use crate::error::Error;

/// Switches forwarding on for the families of these addresses. It stays on: others may need it by then.
///
/// # Errors
/// When a switch cannot be set.
pub fn enable(addresses: &[IpNetwork]) -> Result<(), Error> {
    if addresses.iter().any(IpNetwork::is_ipv4) {
        sysctl::ensure(&sysctl::path(&["net", "ipv4", "ip_forward"])?, "1")?;
    }
    if addresses.iter().any(IpNetwork::is_ipv6) {
        sysctl::ensure(&sysctl::conf("ipv6", "all", "forwarding")?, "1")?;
    }
    Ok(())
}

/// CHECK: forwarding is still on for the families of these addresses.
///
/// # Errors
/// [`Error::Check`] if it is not.
pub fn verify(addresses: &[IpNetwork]) -> Result<(), Error> {
    let switches = [
        (
            addresses.iter().any(IpNetwork::is_ipv4),
            sysctl::path(&["net", "ipv4", "ip_forward"])?,
        ),
        (
            addresses.iter().any(IpNetwork::is_ipv6),
            sysctl::conf("ipv6", "all", "forwarding")?,
        ),
    ];
    for (needed, path) in switches {
        if needed && sysctl::read(&path)? != "1" {
            return Err(Error::Check(format!(
                "forwarding is off ({})",
                path.display()
            )));
        }
    }
    Ok(())
}
