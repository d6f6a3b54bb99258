//! The dhcp IPAM plugin and its daemon, against real DHCP servers.

mod commands;
mod keeping;
mod mixed;
mod process;
pub mod world;
