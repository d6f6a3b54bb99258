//! What can go wrong, and with which CNI code.

use std::net::IpAddr;

use cni_types::{CniError, code};
use ipnetwork::IpNetwork;
use skel::PluginError;

use crate::config::ConfigError;

/// A failed command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `CNI_ARGS` cannot be read.
    #[error("{}", .0.msg)]
    Args(CniError),
    /// CHECK: there is nothing to compare with.
    #[error("CHECK needs a prevResult")]
    NoPrevResult,
    /// CHECK: an address that ADD gave is not in the result.
    #[error("address {0} is not in prevResult")]
    Missing(IpNetwork),
    /// CHECK: an address has another gateway than ADD gave it.
    #[error("address {address} has the gateway {found} in prevResult, not {wanted}", found = .found.map_or("none".to_owned(), |gateway| gateway.to_string()))]
    OtherGateway {
        /// The address.
        address: IpNetwork,
        /// What the configuration says.
        wanted: IpAddr,
        /// What the result says.
        found: Option<IpAddr>,
    },
}

impl From<CniError> for Error {
    // By hand, because its whole text would be told as the cause of its `msg`.
    fn from(error: CniError) -> Self {
        Self::Args(error)
    }
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::Config(_) | Self::NoPrevResult => code::INVALID_NETWORK_CONFIG,
            Self::Args(error) => error.code,
            Self::Missing(_) | Self::OtherGateway { .. } => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::Args(error) => error.details.clone(),
            Self::Config(error) => error.next_step(),
            Self::NoPrevResult => {
                "CHECK needs the result of the ADD as \"prevResult\"; runtimes keep it in /var/lib/cni/results".to_owned()
            }
            Self::Missing(_) | Self::OtherGateway { .. } => {
                "the configuration has changed since the ADD; DEL and ADD take the new one".to_owned()
            }
        }
    }
}
