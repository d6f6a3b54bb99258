//! The addresses that are routed by.

use std::net::IpAddr;

use cni_types::result::CniResult;
use ipnetwork::IpNetwork;

/// One address of the container's interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address {
    /// The address, with its network's prefix length.
    pub net: IpNetwork,
    /// The router that the result names for it.
    pub gateway: Option<IpAddr>,
}

/// Those of a result that are the interface's, each once. One that does not say whose it is counts.
pub fn of_result(result: &CniResult, ifname: &str) -> Vec<Address> {
    let mut found: Vec<Address> = Vec::new();
    for ip in &result.ips {
        let is_ours = result.interface_of(ip).is_none_or(|i| i.name == ifname);
        if is_ours && !found.iter().any(|known| known.net.ip() == ip.address.ip()) {
            found.push(Address {
                net: ip.address,
                gateway: ip.gateway,
            });
        }
    }
    found
}
