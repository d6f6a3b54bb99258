//! What can go wrong in `vrf`.

use cni_types::code;
use skel::PluginError;

/// What can go wrong in `vrf`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin stands alone or first in its list.
    #[error("this plugin must be called as chained plugin")]
    NoPrevResult,
    /// `vrfname` is missing.
    #[error("the configuration has no vrfname: the name of the VRF that the interface is put into")]
    NoName,
    /// `vrfname` is no name for a link.
    #[error("invalid vrfname: {0}")]
    Name(netlink::Error),
    /// `table` is no routing table.
    #[error(
        "invalid table {0}: a routing table is a number from 1 to 4294967295, or 0 for any that is free"
    )]
    Table(i64),
    /// The VRF and its port are to have one name.
    #[error("vrfname {0:?} is the name of the interface that is to be put into the VRF")]
    Itself(String),
    /// The interface is not there.
    #[error("interface {0:?} not found in the container")]
    NoInterface(String),
    /// There is a link of that name which is something else.
    #[error("link {name:?} in the container is not a VRF but {kind}")]
    NotVrf {
        /// The link.
        name: String,
        /// What it is.
        kind: String,
    },
    /// The VRF has another table.
    #[error("VRF {name} already exist with different routing table {found}, not {wanted}")]
    OtherTable {
        /// The VRF.
        name: String,
        /// Its table.
        found: u32,
        /// The configured one.
        wanted: u32,
    },
    /// The interface is a port already.
    #[error("interface {link} has a master already: {master}")]
    HasMaster {
        /// The interface.
        link: String,
        /// What it is a port of.
        master: String,
    },
    /// Every table is in use.
    #[error("no routing table is free for VRF {0}")]
    NoTable(String),
    /// The kernel has no VRFs.
    #[error("this kernel has no links of kind vrf")]
    NoVrf,
    /// The kernel refused.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// CHECK: something is not as ADD left it.
    #[error("{0}")]
    Check(String),
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
            Self::NoName | Self::Name(_) | Self::Table(_) | Self::Itself(_) => {
                code::INVALID_NETWORK_CONFIG
            }
            Self::Netlink(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                code::INVALID_NETNS
            }
            Self::Netlink(netlink::Error::Locked { .. }) => code::TRY_AGAIN_LATER,
            Self::NoVrf => code::PLUGIN_NOT_AVAILABLE,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::NoPrevResult => "put vrf after the plugin that makes the interface".to_owned(),
            Self::OtherTable { found, .. } => {
                format!("leave table out, set it to {found}, or use another vrfname")
            }
            Self::HasMaster { master, .. } => {
                format!(
                    "an interface can be a port of one link only; take it out of {master} first"
                )
            }
            Self::NoVrf => "load the module vrf, or boot a kernel that has it".to_owned(),
            Self::NoName | Self::Name(_) => {
                "name the VRF with the key \"vrfname\": at most 15 bytes, such as \"blue\"".to_owned()
            }
            Self::Table(_) => {
                "correct the key \"table\", or leave it out: vrf then takes one that is free".to_owned()
            }
            Self::Itself(_) | Self::NotVrf { .. } => {
                "choose another name in the key \"vrfname\"".to_owned()
            }
            Self::NoInterface(_) => {
                "put vrf after the plugin that makes the interface, and let nothing take it away in between"
                    .to_owned()
            }
            Self::NoTable(_) => "name a table in the key \"table\"".to_owned(),
            Self::Check(_) => "somebody has changed it since the ADD; DEL and ADD make it anew".to_owned(),
            Self::Netlink(error) => error.next_step(),
            Self::Several(errors) => errors.first().map(PluginError::details).unwrap_or_default(),
        }
    }
}
