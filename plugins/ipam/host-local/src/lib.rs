//! The IPAM plugin `host-local`: addresses out of ranges, leases in files.
//!
//! Configuration, files and results are those of the reference set; what is different on purpose is listed in
//! `docs/host-local.md`.

mod config;
mod error;
mod plugin;
mod resolv;
mod status;

pub use config::ConfigError;
pub use error::Error;
pub use plugin::HostLocal;

#[cfg(test)]
mod fuzz_tests;
