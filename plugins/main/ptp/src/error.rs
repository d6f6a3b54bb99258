//! What can go wrong in `ptp`.

use std::net::IpAddr;

use cni_types::code;
use ipnetwork::IpNetwork;
use skel::{DelegateError, PluginError};

/// What can go wrong in `ptp`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// IPAM named no gateway, and none can be guessed.
    #[error("IPAM gave the address {0} without a gateway, which the host would have to be")]
    NoGateway(IpNetwork),
    /// The gateway is the container's own address, or of another family.
    #[error("the host cannot be the gateway {gateway} of {address}: {why}")]
    UnfitGateway {
        /// The container's address.
        address: IpNetwork,
        /// The gateway that IPAM gave.
        gateway: IpAddr,
        /// What is wrong with it.
        why: &'static str,
    },
    /// IPv6 is off on the host, where the gateway address would have to be.
    #[error(
        "IPv6 is disabled on this host ({setting}), but network {network:?} has the address {address}"
    )]
    Ipv6Disabled {
        /// Name of the network.
        network: String,
        /// The container's address.
        address: IpNetwork,
        /// What switches it off.
        setting: String,
    },
    /// The host has a route to the container's address already, and it is somebody else's.
    #[error("the host routes {address} over {link} already")]
    Routed {
        /// The container's address.
        address: IpAddr,
        /// The link that the route leads to.
        link: String,
        /// Whose it is, in words; may be empty.
        whose: String,
    },
    /// What can go wrong with any plugin's interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
    /// The kernel refused a change.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The packet filter refused.
    #[error(transparent)]
    Netfilter(#[from] netfilter::Error),
    /// STATUS: an ADD would fail, and this is how.
    #[error(transparent)]
    NotReady(Box<Error>),
    /// Several things failed; a DEL or GC goes on past each.
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
            Self::NoGateway(_) | Self::UnfitGateway { .. } => code::INVALID_NETWORK_CONFIG,
            Self::Interface(error) => error.code(),
            Self::Netfilter(netfilter::Error::Unavailable { .. }) | Self::NotReady(_) => {
                code::PLUGIN_NOT_AVAILABLE
            }
            Self::Netfilter(netfilter::Error::Busy { .. }) => code::TRY_AGAIN_LATER,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::NoGateway(_) | Self::UnfitGateway { .. } => {
                "name a gateway for each subnet or address in the \"ipam\" part of the configuration"
                    .to_owned()
            }
            Self::Ipv6Disabled { .. } => {
                "switch IPv6 on, or take the IPv6 range out of the network's configuration"
                    .to_owned()
            }
            Self::Routed {
                address, whose, ..
            } => format!(
                "{whose}two networks of one host must not have the same addresses; see: ip route show {address}"
            ),
            Self::Interface(error) => error.details(),
            Self::NotReady(error) => error.details(),
            Self::Netlink(error) => error.next_step(),
            Self::Netfilter(error) => error.next_step(),
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
