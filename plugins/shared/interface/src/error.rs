//! What can go wrong with an interface, whatever plugin makes it.

use std::net::IpAddr;

use cni_types::code;
use cni_types::nearest::did_you_mean;
use ipnetwork::IpNetwork;
use netlink::{Errno, MacAddr};
use skel::{DelegateError, PluginError};

/// What can go wrong with an interface, whatever plugin makes it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The container has an interface of that name already.
    #[error("interface {0:?} already exists in the container")]
    Exists(String),
    /// IPAM gave no address.
    #[error("IPAM plugin returned missing IP config")]
    NoAddress,
    /// A route leads to a router of another family.
    #[error("route to {dst} cannot go through {gateway}: they are not of the same IP family")]
    GatewayFamily {
        /// The destination.
        dst: IpNetwork,
        /// The router.
        gateway: IpAddr,
    },
    /// `mtu` is too small for any packet.
    #[error("invalid mtu {0}: an interface needs at least 68 bytes")]
    Mtu(i64),
    /// `mtu` is larger than a link's can be.
    #[error("invalid mtu {0}: it must be between 68 and 2147483647 bytes")]
    MtuBeyond(i64),
    /// A number of a route that the kernel cannot hold.
    #[error("invalid {key} {number} of the route to {dst}: it must be between 0 and {max}")]
    RouteNumber {
        /// The destination.
        dst: IpNetwork,
        /// The key of the route.
        key: &'static str,
        /// Its value.
        number: i64,
        /// The largest that it can be.
        max: u32,
    },
    /// An address that no interface can have.
    #[error("invalid address {0}: no interface can have it")]
    AddressOfNobody(IpNetwork),
    /// The same address twice.
    #[error("IPAM gave the address {0} twice")]
    AddressTwice(IpNetwork),
    /// A gateway of another family than its address.
    #[error("the gateway {gateway} of {address} is not of the same IP family")]
    GatewayOfAddress {
        /// The address.
        address: IpNetwork,
        /// The gateway that IPAM gave with it.
        gateway: IpAddr,
    },
    /// The configured MTU rules IPv6 out.
    #[error("mtu {mtu} is too small for the address {address}: IPv6 needs at least 1280 bytes")]
    MtuTooSmall {
        /// The configured MTU in bytes.
        mtu: u32,
        /// The address that IPAM gave.
        address: IpNetwork,
    },
    /// A MAC address that is none.
    #[error("invalid args {text} for MAC addr: {source}")]
    Mac {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: netlink::Error,
    },
    /// A MAC address that no interface can have.
    #[error("invalid MAC address {0}: it is zero, or that of a group")]
    MacOfNobody(MacAddr),
    /// `ipMasqBackend` names none.
    #[error("unknown ipmasq backend {0:?}")]
    MasqueradeBackend(String),
    /// There is no other subnet for which to masquerade.
    #[error("cannot masquerade {0}: its subnet is every address there is")]
    MasqueradeOfAll(IpNetwork),
    /// The link to sit on is not there.
    #[error("master interface {0:?} not found")]
    NoMaster(String),
    /// The link to sit on cannot carry another.
    #[error("master interface {master:?} {why}")]
    UnfitMaster {
        /// Its name.
        master: String,
        /// What is in the way, such as `is down`.
        why: &'static str,
    },
    /// `mtu` is larger than that of the link to sit on.
    #[error("invalid MTU {mtu}, must be [0, master MTU({limit})]")]
    MtuOfMaster {
        /// The configured MTU in bytes.
        mtu: i64,
        /// The master's in bytes.
        limit: u32,
    },
    /// The kernel would not make the link.
    #[error("failed to create {kind} {ifname:?}: {source}")]
    NotMade {
        /// The kind of link.
        kind: &'static str,
        /// The name in the container.
        ifname: String,
        /// What to do about it; may be empty.
        cure: String,
        /// The kernel's reason.
        source: Box<netlink::Error>,
    },
    /// The kernel has no such links.
    #[error("this kernel has no links of kind {0}")]
    NoSuchKind(&'static str),
    /// No link to sit on is named, and no default route names one.
    #[error("no default route interface found, and the configuration names no master")]
    NoDefaultRoute,
    /// IPAM failed.
    #[error(transparent)]
    Ipam(#[from] DelegateError),
    /// The kernel refused a change.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// The packet filter refused.
    #[error(transparent)]
    Netfilter(#[from] netfilter::Error),
    /// CHECK needs the result of the ADD.
    #[error("Required prevResult missing")]
    NoPrevResult,
    /// CHECK: something is not as ADD left it.
    #[error("{0}")]
    Check(String),
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::GatewayFamily { .. }
            | Self::GatewayOfAddress { .. }
            | Self::RouteNumber { .. }
            | Self::AddressOfNobody(_)
            | Self::AddressTwice(_)
            | Self::MacOfNobody(_)
            | Self::Mtu(_)
            | Self::MtuBeyond(_)
            | Self::MtuTooSmall { .. }
            | Self::Mac { .. }
            | Self::MasqueradeBackend(_)
            | Self::MasqueradeOfAll(_)
            | Self::MtuOfMaster { .. }
            | Self::Netfilter(netfilter::Error::Invalid { .. }) => code::INVALID_NETWORK_CONFIG,
            Self::Netlink(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                code::INVALID_NETNS
            }
            Self::NotMade { source, .. } => match source.errno() {
                Some(Errno::EOPNOTSUPP) => code::PLUGIN_NOT_AVAILABLE,
                // What is in the way may be on its way out: the kernel takes the links of a dead namespace in its
                // own time.
                Some(Errno::EEXIST) => code::TRY_AGAIN_LATER,
                _ => code::INTERNAL,
            },
            Self::NoSuchKind(_) => code::PLUGIN_NOT_AVAILABLE,
            Self::Netfilter(netfilter::Error::Unavailable { .. }) => code::PLUGIN_NOT_AVAILABLE,
            Self::Netfilter(netfilter::Error::Busy { .. }) => code::TRY_AGAIN_LATER,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::Exists(_) => {
                "a DEL for this container was not made, or another network uses the same CNI_IFNAME"
                    .to_owned()
            }
            Self::NoMaster(_) => {
                "correct the key \"master\" of the configuration, or make that interface".to_owned()
            }
            Self::UnfitMaster { .. } => "name another interface in the key \"master\"".to_owned(),
            Self::NotMade { cure, .. } => cure.clone(),
            Self::NoSuchKind(kind) => {
                format!("load the module {kind}, or boot a kernel that has it")
            }
            Self::NoDefaultRoute => {
                "name the interface with the key \"master\" of the configuration".to_owned()
            }
            Self::NoAddress => {
                "the IPAM plugin gave none: see to its ranges or addresses, or leave \"ipam\" out for an interface without any"
                    .to_owned()
            }
            Self::GatewayFamily { .. } => {
                "give the route a \"gw\" of its own family, or none for the network's gateway".to_owned()
            }
            Self::RouteNumber { key, .. } => {
                format!("correct {key:?} of that route, or leave it out")
            }
            Self::AddressOfNobody(_) | Self::AddressTwice(_) => {
                "correct the addresses in the \"ipam\" part of the configuration".to_owned()
            }
            Self::MasqueradeOfAll(_) => {
                "give the address the prefix length of its subnet, or leave \"ipMasq\" out".to_owned()
            }
            Self::GatewayOfAddress { .. } => {
                "give the address a gateway of its own family, or none".to_owned()
            }
            Self::MacOfNobody(_) => "give the address of a single station, as 02:00:00:00:00:01".to_owned(),
            Self::Mtu(_) | Self::MtuBeyond(_) | Self::MtuTooSmall { .. } => {
                "correct the key \"mtu\", or leave it out for the kernel's value".to_owned()
            }
            Self::MtuOfMaster { .. } => {
                "lower the key \"mtu\", or raise the MTU of the master".to_owned()
            }
            Self::Mac { source, .. } => source.next_step(),
            Self::MasqueradeBackend(_) => {
                "known backends: nftables, iptables; without the key the host decides".to_owned()
            }
            Self::NoPrevResult => {
                "CHECK and REAPPLY need the result of the ADD as \"prevResult\"; runtimes keep it in /var/lib/cni/results"
                    .to_owned()
            }
            Self::Check(_) => {
                "somebody has changed it since the ADD: cnitool inspect shows what is left, cnitool reapply puts rules back; \
                 for anything else DEL and ADD"
                    .to_owned()
            }
            Self::Netlink(error) => error.next_step(),
            Self::Netfilter(error) => error.next_step(),
            Self::Ipam(error) => cure_of_delegate(error),
        }
    }

    fn delegated(&self) -> Option<&DelegateError> {
        match self {
            Self::Ipam(error) => Some(error),
            _ => None,
        }
    }
}

/// What to do about an IPAM plugin that gives no answer; one that refuses says so itself.
fn cure_of_delegate(error: &DelegateError) -> String {
    match error {
        DelegateError::BadName(_) => {
            "name the IPAM plugin by its file name, without a directory, in the key \"type\" of \"ipam\""
                .to_owned()
        }
        DelegateError::Missing { plugin, .. } => format!(
            "install {plugin}{} into one of these directories, or correct the key \"type\" of \"ipam\"; \
             the runtime gives the directories (CNI_PATH)",
            did_you_mean(plugin, ["host-local", "static", "dhcp"])
        ),
        DelegateError::Run { plugin, .. } => {
            format!("see that {plugin} is a program for this machine and may be run (ls -l, file)")
        }
        DelegateError::Died { plugin, .. } | DelegateError::BadResult { plugin, .. } => format!(
            "what is written here comes from {plugin}: see its own documentation, and the kernel's messages (dmesg) if it was killed"
        ),
        DelegateError::Hangs { plugin, .. } => {
            format!("see what {plugin} waits for; what it may have given was asked back")
        }
        DelegateError::Refused(error) => error.details.clone(),
    }
}
