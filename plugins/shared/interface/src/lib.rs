//! What every plugin that makes a container's interface does with it, whatever kind of link it is.
//!
//! * [`lease`] asks IPAM and pushes the release on the undo log;
//! * [`addressing`] gives the interface its settings, addresses and routes, and tells the neighbours;
//! * [`verify`] is the CHECK of the same;
//! * [`config`] holds the keys that several plugins read in the same way;
//! * [`masquerade`] is `ipMasq`; [`forwarding`] the host's switches; [`gateway`] where a subnet's gateway is;
//! * [`pair`] makes a veth pair, and says whose it is;
//! * [`master`] finds the link that an interface sits on; [`redirect`] sends what arrives by a link out of another;
//! * [`stacked`] makes a link on top of another;
//! * [`single`] is the whole of a plugin that makes one link in the container, but for making it.

pub mod addressing;
pub mod config;
mod error;
pub mod forwarding;
pub mod gateway;
mod lease;
pub mod masquerade;
pub mod master;
pub mod pair;
pub mod redirect;
pub mod single;
pub mod stacked;
pub mod verify;
mod world;

pub use error::Error;
pub use lease::{lease, open_for_ipam, refuse_taken_name, speaks_over_the_link};
pub use world::{World, owner};

/// Has netlink and the packet filter tell their messages to `log`: what [`Plugin::trace`](skel::Plugin::trace) of a plugin is
/// that stands on both.
pub fn trace(log: fn(std::fmt::Arguments<'_>)) {
    netlink::on_message(log);
    netfilter::on_message(log);
}
