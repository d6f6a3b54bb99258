//! What can go wrong in `vlan`.

use cni_types::code;
use skel::{DelegateError, PluginError};

/// What can go wrong in `vlan`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `master` is missing.
    #[error(
        "\"master\" field is required. It specifies the host interface name to create the VLAN for"
    )]
    NoMaster,
    /// `vlanId` is none.
    #[error("invalid VLAN ID {0} (must be between 0 and 4094 inclusive)")]
    VlanId(i64),
    /// CHECK: the interface is in another VLAN.
    #[error("container interface {link} is in VLAN {is}, not {wanted}")]
    OtherVlan {
        /// The interface.
        link: String,
        /// Its VLAN.
        is: u16,
        /// The configured one.
        wanted: u16,
    },
    /// What can go wrong with any plugin's interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::NoMaster | Self::VlanId(_) => code::INVALID_NETWORK_CONFIG,
            Self::Interface(error) => error.code(),
            Self::OtherVlan { .. } => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::Interface(error) => error.details(),
            Self::NoMaster => "name the interface to sit on in the key \"master\"".to_owned(),
            Self::VlanId(_) => "correct the key \"vlanId\"".to_owned(),
            Self::OtherVlan { .. } => {
                "the configuration has changed since the ADD; DEL and ADD make it anew".to_owned()
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
