//! The IPAM plugin `dhcp`: addresses from a DHCP server on the container's network, and the daemon that keeps the leases.
//!
//! Configuration, the daemon's flags and what plugin and daemon say to each other are those of the reference set, so
//! that either may be the other's. What is different on purpose is listed in `docs/dhcp.md`.
//!
//! The plugin ([`Dhcp`]) asks the daemon ([`daemon`]), over [`rpc`] in [`gob`]. The daemon is one thread that waits for
//! callers, packets and the clock at once; each attachment's exchange with the servers is a state machine without a
//! socket or clock of its own. Leases are on disk, so that a daemon can take up what another left.

mod books;
mod caller;
mod clock;
mod config;
pub mod daemon;
mod error;
mod exchange;
pub mod gob;
mod hex;
pub mod lease;
pub mod packet;
mod plugin;
pub mod rpc;
mod seat;

pub use config::ConfigError;
pub use error::Error;
pub use plugin::Dhcp;
