//! What can go wrong in `macvlan`.

use cni_types::code;
use netlink::MacvlanMode;
use skel::{DelegateError, PluginError};

/// What can go wrong in `macvlan`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `mode` names none.
    #[error("unknown macvlan mode: {0:?}")]
    UnknownMode(String),
    /// CHECK: the interface is in another mode.
    #[error(
        "container macvlan {link} is in mode {is}, which does not match expected value: {wanted}"
    )]
    Mode {
        /// The interface.
        link: String,
        /// Its mode.
        is: String,
        /// The configured one.
        wanted: MacvlanMode,
    },
    /// CHECK: the interface has another queue length.
    #[error("container macvlan {link} has bcqueuelen {is}, not {wanted}")]
    QueueLength {
        /// The interface.
        link: String,
        /// Its length, in packets.
        is: u32,
        /// The configured one.
        wanted: u32,
    },
    /// What can go wrong with any plugin's interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::UnknownMode(_) => code::INVALID_NETWORK_CONFIG,
            Self::Interface(error) => error.code(),
            Self::Mode { .. } | Self::QueueLength { .. } => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::UnknownMode(_) => "the modes are bridge, private, vepa and passthru".to_owned(),
            Self::Interface(error) => error.details(),
            Self::Mode { .. } | Self::QueueLength { .. } => {
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
