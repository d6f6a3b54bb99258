//! Links, addresses, routes, bridge VLANs and kernel settings of network namespaces.
//!
//! A [`Handle`] talks with one namespace. The host's and the container's are opened once and then used side by side, so no
//! code runs "inside" a namespace except for the few things that know no other way ([`Handle::inside`]: sysctls, raw sockets).
//!
//! # Why a blocking socket
//!
//! The kernel carries out an rtnetlink request within the `sendmsg` that brings it and queues the answer before that call
//! returns. There is never anything to wait for, so an event loop can only add to the cost. Messages are made with the
//! builders of `rtnetlink`; its asynchronous handle is not used.
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
mod announce;
mod error;
mod handle;
mod link;
mod mac;
mod name;
mod netns;
mod nla;
mod request;
mod route;
mod socket;
mod sys;
pub mod sysctl;
mod vlan;
mod watch;

pub use addr::{Address, NewAddress};
pub use announce::Station;
pub use error::{Error, Result};
pub use handle::Handle;
pub use link::{
    BridgePort, Link, LinkChange, LinkRef, NewBridge, NewVeth, OperState, Veth, VethEnd,
};
pub use mac::MacAddr;
pub use name::{ALT_NAME_MAX, NAME_MAX, check_name, random_name};
pub use netlink_packet_route::address::AddressFlags;
pub use netns::Netns;
pub use request::Request;
pub use route::{NewRoute, NextHop, Route, RouteConflict, TABLE_LOCAL, TABLE_MAIN, Way, scope};
pub use vlan::VlanRange;
