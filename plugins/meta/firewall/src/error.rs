//! What can go wrong in `firewall`.

use cni_types::code;
use skel::PluginError;

/// What can go wrong in `firewall`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin stands alone or first in its list.
    #[error("missing prevResult from earlier plugin")]
    NoPrevResult,
    /// `ingressPolicy` names no policy.
    #[error("unknown ingress policy {0:?}")]
    IngressPolicy(String),
    /// A policy is asked for, but no earlier plugin names an interface on the host.
    #[error("ingressPolicy needs the bridge's name, but prevResult has no interface on the host")]
    NoBridge,
    /// The packet filter refused.
    #[error(transparent)]
    Netfilter(#[from] netfilter::Error),
    /// STATUS: an ADD would fail.
    #[error("firewall cannot work with the {backend} backend: {source}")]
    NotReady {
        /// The backend that an ADD would use.
        backend: netfilter::Backend,
        /// Why it cannot be used.
        source: netfilter::Error,
    },
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::NoPrevResult | Self::IngressPolicy(_) | Self::NoBridge => {
                code::INVALID_NETWORK_CONFIG
            }
            Self::Netfilter(netfilter::Error::Unavailable { .. }) => code::PLUGIN_NOT_AVAILABLE,
            Self::Netfilter(netfilter::Error::Busy { .. }) => code::TRY_AGAIN_LATER,
            Self::Netfilter(netfilter::Error::Invalid { .. }) => code::INVALID_NETWORK_CONFIG,
            Self::Netfilter(_) => code::INTERNAL,
            Self::NotReady { .. } => code::PLUGIN_NOT_AVAILABLE,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::NoPrevResult => "put firewall after a plugin that makes an interface".to_owned(),
            Self::IngressPolicy(_) => "known policies: open, same-bridge, isolated".to_owned(),
            Self::NoBridge => "put firewall after bridge, or leave ingressPolicy out".to_owned(),
            Self::Netfilter(source) | Self::NotReady { source, .. } => source.next_step(),
        }
    }
}
