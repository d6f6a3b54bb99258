//! What can go wrong in `tap`.

use std::io;

use cni_types::code;
use skel::{DelegateError, PluginError};

/// What can go wrong in `tap`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// `bridge` cannot be an interface's name.
    #[error("invalid bridge name {name:?}: {why}")]
    BridgeName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: cni_types::NameError,
    },
    /// The container has no such bridge.
    #[error("bridge {0:?} not found in the container")]
    NoBridge(String),
    /// What is called so is something else.
    #[error("{name:?} in the container is not a bridge (it is {kind})")]
    NotABridge {
        /// The name.
        name: String,
        /// What it is.
        kind: String,
    },
    /// The tap cannot be labelled.
    #[error("cannot take the SELinux context {context:?}: {source}")]
    Selinux {
        /// The context.
        context: String,
        /// The system's reason.
        source: io::Error,
    },
    /// What can go wrong with any plugin's interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
    /// The kernel refused a change.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// STATUS: an ADD would fail.
    #[error("no tap can be made: {0}")]
    NotReady(netlink::Error),
    /// Several things failed; a DEL goes on past each.
    #[error("{}", skel::listed(.0))]
    Several(Vec<Error>),
}

impl Error {
    /// Nothing if the list is empty, the error if it is one, else all of them together.
    pub(crate) fn join(errors: Vec<Self>) -> Result<(), Self> {
        skel::join(errors, Self::Several)
    }
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::BridgeName { .. } | Self::NoBridge(_) | Self::NotABridge { .. } => {
                code::INVALID_NETWORK_CONFIG
            }
            Self::Interface(error) => error.code(),
            Self::Netlink(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                code::INVALID_NETNS
            }
            Self::NotReady(_) => code::PLUGIN_NOT_AVAILABLE,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::Interface(error) => error.details(),
            Self::NoBridge(_) => {
                "the key \"bridge\" names a bridge in the container's own namespace; an earlier plugin has to make it"
                    .to_owned()
            }
            Self::Selinux { .. } => {
                "the host must run SELinux with a policy that knows the context and lets this process take it (dyntransition)"
                    .to_owned()
            }
            Self::NotReady(_) => "load the kernel module tun, and make /dev/net/tun".to_owned(),
            Self::BridgeName { .. } => {
                "give the key \"bridge\" a name of at most 15 bytes, without / : and blanks".to_owned()
            }
            Self::NotABridge { .. } => "name a bridge, or leave the key \"bridge\" out".to_owned(),
            Self::Netlink(error) => error.next_step(),
            Self::Several(errors) => errors.first().map(PluginError::details).unwrap_or_default(),
        }
    }

    fn delegated(&self) -> Option<&DelegateError> {
        match self {
            Self::Interface(error) => error.delegated(),
            _ => None,
        }
    }
}
