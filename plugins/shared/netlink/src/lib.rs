//! Links, addresses, routes, bridge VLANs, traffic control and kernel settings of network namespaces.
//!
//! A [`Handle`] talks with one namespace. The host's and the container's are opened once and then used side by side, so no
//! code runs "inside" a namespace except for the few things that know no other way ([`Handle::inside`]: sysctls, raw sockets).
//!
//! # Why a blocking socket
//!
//! The kernel carries out an rtnetlink request within the system call that brings it and queues the answer before that call
//! returns. There is never anything to wait for, so an event loop can only add to the cost. On the machine this was written
//! on, setting a link up takes 8.5 us with a socket opened for it and 3.0 us on an open one; through the asynchronous handle of
//! `rtnetlink` on a current-thread runtime it is 19 us and 4.8 us, and the smallest static program that does it grows from
//! 1.4 to 2.1 MB. So the messages are made with the builders of `rtnetlink` and sent by a blocking socket.
//!
//! # What else was measured
//!
//! * A veth pair of which each end is born in its namespace and the host end as a port of its bridge takes 0.7 ms, in one
//!   request. Made in one namespace and moved, renamed and attached it takes 20 ms, nearly all of it waiting for RCU grace
//!   periods under the lock that every other request on the machine needs too.
//! * Entering another namespace and coming back takes 10 us, so what has to be done there is done in one visit.
//! * Eight requests in one system call take 48 us instead of 57: worth it where a list is at hand anyway.
//!
//! `examples/cost.rs` measures all of this again.
//!
//! # Example
//!
//! ```no_run
//! # fn main() -> netlink::Result<()> {
//! use netlink::{Handle, LinkChange, MacAddr, Netns, NewAddress, NewBridge, NewVeth};
//!
//! let host = Handle::host()?;
//! let netns = Netns::open("/run/netns/blue")?;
//! let container = Handle::open(&netns)?;
//!
//! let bridge = NewBridge { name: "cni0".into(), mac: MacAddr::random()?, mtu: None, vlan_filtering: false, up: true };
//! let bridge = host.create_bridge(&bridge)?;
//! let veth = NewVeth { master: Some(bridge.index), host_up: true, ..NewVeth::new("eth0")? };
//! let veth = host.create_veth(&veth, &container)?;
//!
//! let ip = "10.1.2.3/24".parse().expect("a valid network");
//! container.execute_all(&[
//!     NewAddress::new(ip).request(&veth.container),
//!     LinkChange::new().up(true).request(&veth.container)?,
//! ])
//! # }
//! ```

mod addr;
mod advertise;
mod announce;
mod conf;
mod error;
mod handle;
mod link;
mod locked;
mod mac;
mod name;
mod netns;
mod nla;
mod packet;
pub mod process;
mod request;
mod route;
mod rule;
mod socket;
#[cfg(test)]
mod survival;
mod sys;
pub mod sysctl;
pub mod tc;
mod trace;
pub mod tun;
mod vlan;
mod watch;

pub use addr::{Address, ExactAddress, NewAddress, random_link_local};
pub use announce::Station;
pub use error::{Error, Result};
pub use handle::Handle;
pub use link::{
    BridgePort, IpvlanMode, KindData, Link, LinkChange, LinkRef, MacvlanMode, NewBridge, NewIfb,
    NewKind, NewLink, NewVeth, OperState, UnknownMode, Veth, VethEnd,
};
pub use locked::Locked;
pub use mac::MacAddr;
pub use name::{ALT_NAME_MAX, NAME_MAX, check_name, random_name};
pub use netlink_packet_route::address::AddressFlags;
pub use netns::Netns;
pub use nix::errno::Errno;
pub use packet::PacketSocket;
pub use request::Request;
pub use route::{
    ExactRoute, NewRoute, NextHop, Route, RouteConflict, TABLE_LOCAL, TABLE_MAIN, Way, scope,
};
pub use rule::{NewRule, Rule};
pub use trace::on_message;
pub use vlan::VlanRange;
