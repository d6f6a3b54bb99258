//! What can go wrong in `sbr`.

use std::net::IpAddr;

use cni_types::code;
use skel::PluginError;

/// What can go wrong in `sbr`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin stands alone or first in its list.
    #[error("this plugin must be called as chained plugin")]
    NoPrevResult,
    /// There is nothing to route by.
    #[error("prevResult has no IP addresses")]
    NoAddresses,
    /// `table` is no routing table.
    #[error("invalid table {0}: a routing table is a number from 1 to 4294967295")]
    Table(i64),
    /// An entry of `gateways` is no address.
    #[error("invalid gateway {0:?}: it is not an IP address")]
    Gateway(String),
    /// More gateways than families.
    #[error("gateways has {0} entries, but there can be one for IPv4 and one for IPv6")]
    TooManyGateways(usize),
    /// Two gateways of one family.
    #[error("gateways {0} and {1} are of the same IP family")]
    GatewaysOfOneFamily(IpAddr, IpAddr),
    /// The interface is not there.
    #[error("interface {0:?} not found in the container")]
    NoInterface(String),
    /// The kernel refused.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// CHECK: something is not as ADD left it.
    #[error("{0}")]
    Check(String),
    /// STATUS: the kernel has no policy rules.
    #[error("this kernel has no policy rules (CONFIG_IP_MULTIPLE_TABLES)")]
    NoRules,
    /// Several things failed, each while the others were gone on with.
    #[error("{}", skel::listed(.0))]
    Several(Vec<Error>),
}

impl Error {
    /// One error for all of them; none is success.
    pub(crate) fn join(errors: Vec<Self>) -> Result<(), Self> {
        skel::join(errors, Self::Several)
    }
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::Table(_)
            | Self::Gateway(_)
            | Self::TooManyGateways(_)
            | Self::GatewaysOfOneFamily(..) => code::INVALID_NETWORK_CONFIG,
            Self::Netlink(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                code::INVALID_NETNS
            }
            Self::Netlink(netlink::Error::Locked { .. }) => code::TRY_AGAIN_LATER,
            Self::NoRules => code::PLUGIN_NOT_AVAILABLE,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::NoPrevResult => {
                "put sbr after a plugin that gives the interface addresses".to_owned()
            }
            Self::NoAddresses => {
                "the plugin before this one needs an ipam section that gives addresses".to_owned()
            }
            Self::Table(_) => {
                "correct the key \"table\", or leave it out: sbr then takes one that is free".to_owned()
            }
            Self::Gateway(_) | Self::TooManyGateways(_) | Self::GatewaysOfOneFamily(..) => {
                "correct the key \"gateways\", or leave it out for the gateways that IPAM gave".to_owned()
            }
            Self::NoInterface(_) => {
                "put sbr after the plugin that makes the interface, and let nothing take it away in between"
                    .to_owned()
            }
            Self::NoRules => "boot a kernel that has them".to_owned(),
            Self::Check(_) => "somebody has changed it since the ADD; DEL and ADD make it anew".to_owned(),
            Self::Netlink(error) => error.next_step(),
            Self::Several(errors) => errors.first().map(PluginError::details).unwrap_or_default(),
        }
    }
}
