//! Which address of a subnet its gateway has.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnetwork::IpNetwork;

/// The address after that of the network itself, where its gateway is unless IPAM says otherwise. Of a network of one
/// address it is outside.
pub fn first_address(network: IpNetwork) -> IpAddr {
    match network.network() {
        IpAddr::V4(ip) => Ipv4Addr::from(u32::from(ip).wrapping_add(1)).into(),
        IpAddr::V6(ip) => Ipv6Addr::from(u128::from(ip).wrapping_add(1)).into(),
    }
}
