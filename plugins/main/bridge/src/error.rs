//! What can go wrong in `bridge`.

use cni_types::code;
use ipnetwork::IpNetwork;
use skel::{DelegateError, PluginError};

/// What can go wrong in `bridge`.
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
    /// IPAM and an interface that stays down.
    #[error("cannot use IPAM when DisableContainerInterface flag is set")]
    IpamOnDisabledInterface,
    /// Two settings that contradict each other.
    #[error("cannot set hairpin mode and promiscuous mode at the same time")]
    HairpinAndPromiscuous,
    /// `vlan` is none.
    #[error("invalid VLAN ID {0} (must be between 0 and 4094)")]
    VlanId(i64),
    /// `vlanTrunk` cannot be read.
    #[error("{0}")]
    Trunk(&'static str),
    /// The bridge's name belongs to something else.
    #[error("{name:?} already exists but is not a bridge (it is {kind})")]
    NotABridge {
        /// The name.
        name: String,
        /// What it is.
        kind: String,
    },
    /// A VLAN is asked for on a bridge that would not keep it apart.
    #[error("bridge {0:?} exists and does not filter VLANs, so a VLAN on it would isolate nothing")]
    NotFiltering(String),
    /// The name of a VLAN's gateway interface belongs to something else.
    #[error("{0:?} already exists but is not the gateway interface of a VLAN (a veth)")]
    NotAVlanGateway(String),
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
    /// The bridge carries an address of another subnet.
    #[error("{bridge:?} already has an IP address different from {wanted}: {found}")]
    AddressConflict {
        /// The interface that would get the gateway address.
        bridge: String,
        /// The address that this network needs.
        wanted: IpNetwork,
        /// The address that is in the way.
        found: IpNetwork,
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
            Self::BridgeName { .. }
            | Self::IpamOnDisabledInterface
            | Self::HairpinAndPromiscuous
            | Self::VlanId(_)
            | Self::Trunk(_) => code::INVALID_NETWORK_CONFIG,
            Self::Interface(error) => error.code(),
            Self::Netlink(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                code::INVALID_NETNS
            }
            Self::Netfilter(netfilter::Error::Invalid { .. }) => code::INVALID_NETWORK_CONFIG,
            Self::Netfilter(netfilter::Error::Unavailable { .. }) => code::PLUGIN_NOT_AVAILABLE,
            Self::Netfilter(netfilter::Error::Busy { .. }) => code::TRY_AGAIN_LATER,
            Self::NotReady(_) => code::PLUGIN_NOT_AVAILABLE,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::NotReady(error) => error.details(),
            Self::Interface(error) => error.details(),
            Self::NotABridge { .. } => {
                "choose another name for the key \"bridge\", or remove that interface".to_owned()
            }
            Self::NotFiltering(bridge) => format!(
                "ip link set {bridge} type bridge vlan_filtering 1, or remove the bridge and let the plugin make it"
            ),
            Self::AddressConflict { bridge, found, .. } => format!(
                "set forceAddress to replace {found}, or delete the bridge {bridge} once its containers are gone, \
                 or give the network a subnet that {found} is the gateway of"
            ),
            Self::Ipv6Disabled { .. } => {
                "switch IPv6 on, or take the IPv6 range out of the network's configuration"
                    .to_owned()
            }
            Self::BridgeName { .. } => {
                "give the key \"bridge\" a name of at most 15 bytes, without / : and blanks"
                    .to_owned()
            }
            Self::IpamOnDisabledInterface => {
                "leave \"ipam\" or disableContainerInterface out".to_owned()
            }
            Self::HairpinAndPromiscuous => "leave hairpinMode or promiscMode out".to_owned(),
            Self::VlanId(_) => "correct the key \"vlan\"; 0 is none".to_owned(),
            Self::Trunk(_) => {
                "an entry of \"vlanTrunk\" is {\"id\": 100} or {\"minID\": 100, \"maxID\": 200}"
                    .to_owned()
            }
            Self::NotAVlanGateway(name) => {
                format!("remove the interface {name}, or choose another VLAN")
            }
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
