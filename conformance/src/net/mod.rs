//! Network namespaces and what stands in them, seen from outside any plugin.

mod cards;
mod host;
mod kinds;
mod links;
mod netns;
mod rtnl;

pub use cards::{card_id, card_name, provide_card};
pub use host::{HOST_V4, HOST_V6, Host, OUTSIDE_V4, OUTSIDE_V6, UPLINK};
pub use links::{Link, LinkFacts};
pub use netns::Netns;
pub use rtnl::Rtnl;
pub(crate) use rtnl::network;
