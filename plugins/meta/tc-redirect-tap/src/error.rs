//! What can go wrong in `tc-redirect-tap`.

use cni_types::code;
use skel::{DelegateError, PluginError};

/// What can go wrong in `tc-redirect-tap`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin stands alone or first in its list.
    #[error("missing prevResult from earlier plugin")]
    NoPrevResult,
    /// The tap's name cannot be an interface's.
    #[error("invalid tap name {name:?}: {why}")]
    TapName {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: cni_types::NameError,
    },
    /// A user or group that is no number.
    #[error("{key} of CNI_ARGS is {text:?}, not a number")]
    Id {
        /// The key.
        key: &'static str,
        /// Its value.
        text: String,
    },
    /// The container has no such interface.
    #[error("container interface {0:?} not found")]
    NotFound(String),
    /// There was an ADD already.
    #[error("the container has the tap {0:?} of an earlier ADD already")]
    Added(String),
    /// What can go wrong with any plugin's interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
    /// The kernel refused a change.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// STATUS: an ADD would fail.
    #[error("no tap can be put in an interface's place: {0}")]
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
            Self::NoPrevResult | Self::TapName { .. } => code::INVALID_NETWORK_CONFIG,
            Self::Id { .. } => code::INVALID_ENVIRONMENT,
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
            Self::NoPrevResult | Self::NotFound(_) => {
                "put tc-redirect-tap after the plugin that makes the container's interface"
                    .to_owned()
            }
            Self::Added(_) => "a DEL for this container was not made".to_owned(),
            Self::NotReady(_) => {
                "the kernel needs the modules tun, sch_ingress, cls_u32 and act_mirred, and /dev/net/tun must be there"
                    .to_owned()
            }
            Self::Interface(error) => error.details(),
            Self::TapName { .. } => {
                "give tapName a name of at most 15 bytes, without / : and blanks".to_owned()
            }
            Self::Id { key, .. } => format!("the form is {key}=1000"),
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
