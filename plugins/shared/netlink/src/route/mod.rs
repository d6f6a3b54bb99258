//! Routes: what they are, and the requests that list, add, delete and look them up.

mod add;
mod exact;
mod lookup;
mod read;

use std::net::IpAddr;

pub use add::{NewRoute, RouteConflict};
pub use exact::ExactRoute;
use ipnetwork::{IpNetwork, Ipv4Network, Ipv6Network};
pub use lookup::Way;
pub(crate) use read::parse;

/// The main routing table.
pub const TABLE_MAIN: u32 = 254;
/// The table the kernel keeps for local and broadcast addresses.
pub const TABLE_LOCAL: u32 = 255;

/// Route scopes of IPv4 (linux/rtnetlink.h).
pub mod scope {
    /// Anywhere.
    pub const UNIVERSE: u8 = 0;
    /// On the link itself.
    pub const LINK: u8 = 253;
    /// This host.
    pub const HOST: u8 = 254;
}

/// A route as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Route {
    /// The destination; `0.0.0.0/0` or `::/0` is the default route.
    pub dst: IpNetwork,
    /// Where it leads. Empty for a route that leads nowhere (unreachable, blackhole), more than one for ECMP.
    pub next_hops: Vec<NextHop>,
    /// The source address chosen for packets taking it.
    pub src: Option<IpAddr>,
    /// The metric: the lowest wins. IPv4 has 0 for none, IPv6 1024.
    pub metric: u32,
    /// The table.
    pub table: u32,
    /// The scope (IPv4; IPv6 always has 0).
    pub scope: u8,
    /// The kind: 1 unicast, 2 local, 3 broadcast, 6 blackhole, 7 unreachable, ... (linux/rtnetlink.h).
    pub kind: u8,
    /// Who made it: 2 the kernel, 3 boot, 4 static, ... (linux/rtnetlink.h).
    pub protocol: u8,
    /// The path MTU set on it.
    pub mtu: Option<u32>,
    /// The MSS announced to TCP peers on it.
    pub advmss: Option<u32>,
}

/// One way a route leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct NextHop {
    /// The router, if it is not directly on the link.
    pub gateway: Option<IpAddr>,
    /// The index of the link.
    pub oif: u32,
    /// Whether the router is taken to be on the link although no address there says so.
    pub onlink: bool,
}

impl Route {
    /// Whether it is an ordinary route (type unicast).
    #[must_use]
    pub fn is_unicast(&self) -> bool {
        self.kind == 1
    }

    /// Whether it is a default route, of whatever type.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.dst.prefix() == 0
    }
}

/// `0.0.0.0/0` or `::/0`.
fn any(ipv6: bool) -> IpNetwork {
    // A prefix length of zero is always valid, so neither `new` can fail.
    if ipv6 {
        Ipv6Network::new(std::net::Ipv6Addr::UNSPECIFIED, 0)
            .map_or_else(|_| host(IpAddr::from([0; 16])), Into::into)
    } else {
        Ipv4Network::new(std::net::Ipv4Addr::UNSPECIFIED, 0)
            .map_or_else(|_| host(IpAddr::from([0; 4])), Into::into)
    }
}

/// The network of that one address.
fn host(ip: IpAddr) -> IpNetwork {
    IpNetwork::from(ip)
}
