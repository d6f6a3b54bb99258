//! What can go wrong in `ipvlan`.

use cni_types::code;
use netlink::IpvlanMode;
use skel::{DelegateError, PluginError};

/// What can go wrong in `ipvlan`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `mode` names none.
    #[error("unknown ipvlan mode: {0:?}")]
    UnknownMode(String),
    /// The plugin before this one in a chain does not say what to sit on.
    #[error("chained master failure. PrevResult lacks a single named interface")]
    ChainedMaster,
    /// CHECK: the interface is in another mode.
    #[error(
        "container ipvlan {link} is in mode {is}, which does not match expected value: {wanted}"
    )]
    Mode {
        /// The interface.
        link: String,
        /// Its mode.
        is: String,
        /// The configured one.
        wanted: IpvlanMode,
    },
    /// What can go wrong with any plugin's interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::UnknownMode(_) | Self::ChainedMaster => code::INVALID_NETWORK_CONFIG,
            Self::Interface(error) => error.code(),
            Self::Mode { .. } => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::UnknownMode(_) => "the modes are l2, l3 and l3s".to_owned(),
            Self::ChainedMaster => "name the interface to sit on in the key \"master\"".to_owned(),
            Self::Interface(error) => error.details(),
            Self::Mode { .. } => {
                "somebody or the configuration has changed it since the ADD; DEL and ADD make it anew".to_owned()
            }
        }
    }

    fn delegated(&self) -> Option<&DelegateError> {
        match self {
            Self::Interface(error) => error.delegated(),
            _ => None,
        }
    }
}
