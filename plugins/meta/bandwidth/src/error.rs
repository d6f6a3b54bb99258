//! What can go wrong in `bandwidth`.

use cni_types::code;
use skel::{DelegateError, PluginError};

use crate::limit::Direction;

/// What can go wrong in `bandwidth`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin stands alone or first in its list.
    #[error("missing prevResult from earlier plugin")]
    NoPrevResult,
    /// A rate without a burst.
    #[error("if {0}Rate is set, {0}Burst must also be set")]
    NoBurst(Direction),
    /// A burst without a rate.
    #[error("if {0}Burst is set, {0}Rate must also be set")]
    NoRate(Direction),
    /// A rate of less than a byte a second.
    #[error(
        "{direction}Rate {rate} is less than 8 bits a second, the least that the kernel can count"
    )]
    RateTooSmall {
        /// Which way.
        direction: Direction,
        /// Bits a second.
        rate: u64,
    },
    /// A burst of less than a byte.
    #[error("{direction}Burst {burst} is less than 8 bits, so nothing could ever pass")]
    BurstTooSmall {
        /// Which way.
        direction: Direction,
        /// Bits.
        burst: u64,
    },
    /// A burst that does not fit the kernel's counter.
    #[error("{direction}Burst {burst} is too large: burst cannot be more than 4GB")]
    BurstTooLarge {
        /// Which way.
        direction: Direction,
        /// Bits.
        burst: u64,
    },
    /// The earlier plugins made no interface.
    #[error("prevResult has no interfaces, so there is no traffic to limit")]
    NoInterfaces,
    /// The container has no such interface.
    #[error("container interface {0:?} not found")]
    NotFound(String),
    /// The interface has no end on the host.
    #[error("container interface {ifname:?} has no peer on the host: it is {kind}, not a veth")]
    NotVeth {
        /// The interface.
        ifname: String,
        /// What it is.
        kind: String,
    },
    /// The other end of the pair is not on the host.
    #[error("the other end of container interface {0:?} is not in the host's namespace")]
    PeerElsewhere(String),
    /// No earlier plugin knows the host's end.
    #[error("host interface {0:?} is not among the interfaces of prevResult")]
    NotListed(String),
    /// Somebody else shapes the traffic already.
    #[error("interface {link:?} already has the queueing discipline {kind}")]
    Occupied {
        /// The interface.
        link: String,
        /// The kind.
        kind: String,
    },
    /// All names for the intermediate functional block belong to others.
    #[error("the names {0} for the interface that queues what the container sends are taken")]
    NamesTaken(String),
    /// CHECK: something is not as ADD left it.
    #[error("{0}")]
    Check(String),
    /// What can go wrong with any plugin's interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
    /// The kernel refused a change.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// STATUS: an ADD would fail.
    #[error("traffic cannot be limited: {0}")]
    NotReady(netlink::Error),
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
            Self::NoPrevResult
            | Self::NoBurst(_)
            | Self::NoRate(_)
            | Self::RateTooSmall { .. }
            | Self::BurstTooSmall { .. }
            | Self::BurstTooLarge { .. }
            | Self::NoInterfaces
            | Self::NotVeth { .. } => code::INVALID_NETWORK_CONFIG,
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
            Self::NoPrevResult | Self::NoInterfaces => {
                "put bandwidth after a plugin that makes a veth pair, such as bridge or ptp"
                    .to_owned()
            }
            Self::NotVeth { .. } => {
                "only interfaces with an end on the host can be limited: those of bridge and ptp"
                    .to_owned()
            }
            Self::Occupied { link, .. } => format!(
                "a DEL for this container was not made, or another program shapes its traffic; tc qdisc del dev {link} root removes it"
            ),
            Self::NotReady(_) => {
                "the kernel needs the modules ifb, sch_tbf, sch_ingress, cls_u32 and act_mirred"
                    .to_owned()
            }
            Self::Interface(error) => error.details(),
            Self::NoBurst(_)
            | Self::NoRate(_)
            | Self::RateTooSmall { .. }
            | Self::BurstTooSmall { .. }
            | Self::BurstTooLarge { .. } => {
                "rates are bits a second, bursts are bits: \"ingressRate\": 8000000, \"ingressBurst\": 800000; 0 or nothing for \
                 both is no limit"
                    .to_owned()
            }
            Self::NotFound(_) | Self::NotListed(_) => {
                "put bandwidth after the plugin that makes this interface, and leave its result whole".to_owned()
            }
            Self::PeerElsewhere(_) => {
                "only traffic that passes the host's namespace can be limited".to_owned()
            }
            Self::NamesTaken(_) => {
                "ip -d link show type ifb tells whose they are; a GC of the network frees those of dead containers".to_owned()
            }
            Self::Check(_) => {
                "somebody has changed it since the ADD; DEL and ADD make it anew".to_owned()
            }
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
