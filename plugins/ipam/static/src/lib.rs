//! The IPAM plugin `static`: the addresses that the configuration or the runtime names, and nothing remembered.
//!
//! Configuration and results are those of the reference set; what is different on purpose is listed in
//! `docs/static.md`.

mod config;
mod error;
mod plugin;

pub use config::ConfigError;
pub use error::Error;
pub use plugin::Static;
