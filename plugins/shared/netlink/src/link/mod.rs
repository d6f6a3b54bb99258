//! Network links: what they are, and the requests that make, change and delete them.

mod alone;
mod bridge;
mod change;
mod ifb;
mod kind;
mod read;
mod veth;

use std::borrow::Cow;

pub use alone::{NewKind, NewLink};
pub use bridge::NewBridge;
pub use change::LinkChange;
pub use ifb::NewIfb;
pub use kind::{IpvlanMode, KindData, MacvlanMode, UnknownMode};
pub use netlink_packet_route::link::State as OperState;
pub(crate) use read::parse;
pub use veth::{NewVeth, Veth, VethEnd};

use crate::mac::MacAddr;
use crate::tun::TunSettings;

/// A link as the kernel describes it (`RTM_NEWLINK`, rtnetlink(7)).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Link {
    /// The interface index.
    pub index: u32,
    /// The name; an alternative name it was looked up by is not here but in `alt_names`.
    pub name: String,
    /// Alternative names.
    pub alt_names: Vec<String>,
    /// The hardware address, if it has one of six bytes.
    pub mac: Option<MacAddr>,
    /// The MTU in bytes.
    pub mtu: u32,
    /// The transmit queue length.
    pub tx_queue_len: u32,
    /// The kind of virtual link, such as `bridge` or `veth`; none for hardware and for `lo`.
    pub kind: Option<String>,
    /// The settings that links of its kind have beside those of every link.
    pub data: KindData,
    /// The index of the link this one is a port of.
    pub master: Option<u32>,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether there is somebody at the other end.
    pub carrier: bool,
    /// Whether it is the loopback link.
    pub loopback: bool,
    /// Whether it can carry traffic (RFC 2863).
    pub operstate: OperState,
    /// The index of the peer (veth) or of the link below (macvlan, vlan), in the namespace `peer_netnsid` names.
    pub peer: Option<u32>,
    /// The kernel's number for the other namespace `peer` lives in; none if it is this one.
    pub peer_netnsid: Option<i32>,
    /// Whether promiscuous mode was asked for by the administrator.
    pub promisc: bool,
    /// How many users want promiscuous mode, packet sniffers included.
    pub promiscuity: u32,
    /// Whether the reception of all multicast frames was asked for by the administrator.
    pub all_multicast: bool,
    /// The free text an administrator can give a link.
    pub alias: Option<String>,
    /// For a bridge: whether it filters by VLAN. None on a kernel that cannot.
    pub vlan_filtering: Option<bool>,
    /// For a VLAN-aware bridge: the VLAN a new port is put into, 0 for none.
    pub default_pvid: Option<u16>,
    /// For a bridge: whether it takes part in a spanning tree. Its ports, and with the first one the bridge itself, then
    /// carry traffic only seconds after they were made.
    pub stp: bool,
    /// For a port of a bridge: its settings.
    pub port: Option<BridgePort>,
    /// Whether packets from or to 127.0.0.0/8 may pass; none where the kernel does not say.
    pub route_localnet: Option<bool>,
    /// For a tap or tun: its other end.
    pub tun: Option<TunSettings>,
}

/// The settings of a bridge port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct BridgePort {
    /// Whether frames may leave by the port they came in on.
    pub hairpin: bool,
    /// Whether it may not talk to other isolated ports.
    pub isolated: bool,
    /// The spanning tree state: 0 disabled, 1 listening, 2 learning, 3 forwarding, 4 blocking (linux/if_bridge.h).
    pub state: u8,
}

impl Link {
    /// Whether it is a bridge.
    #[must_use]
    pub fn is_bridge(&self) -> bool {
        self.kind.as_deref() == Some("bridge")
    }

    /// Whether it is up and can carry traffic, and the rest of the kernel knows. Most links that are always able to, such as
    /// dummies, stay in state "unknown"; a veth or a bridge is in it only until the kernel has noticed the carrier.
    #[must_use]
    pub fn is_running(&self) -> bool {
        let known = match self.operstate {
            OperState::Up => true,
            OperState::Unknown => !self.is_veth() && !self.is_bridge(),
            _ => false,
        };
        self.up && self.carrier && known
    }

    /// Whether it is one end of a veth pair.
    #[must_use]
    pub fn is_veth(&self) -> bool {
        self.kind.as_deref() == Some("veth")
    }

    /// Whether it is a tap or tun.
    #[must_use]
    pub fn is_tun(&self) -> bool {
        self.kind.as_deref() == Some("tun")
    }

    /// Whether it is an intermediate functional block.
    #[must_use]
    pub fn is_ifb(&self) -> bool {
        self.kind.as_deref() == Some("ifb")
    }

    /// The table of a VRF; none for any other kind of link.
    #[must_use]
    pub fn vrf_table(&self) -> Option<u32> {
        match self.data {
            KindData::Vrf { table } => Some(table),
            _ => None,
        }
    }

    /// Whether `other`, in another or the same namespace, is the far end of this veth pair: each names the other's index.
    /// The indices alone can coincide by chance with those of another pair; who must be sure compares names as well.
    #[must_use]
    pub fn is_peer_of(&self, other: &Self) -> bool {
        self.is_veth()
            && other.is_veth()
            && self.peer == Some(other.index)
            && other.peer == Some(self.index)
    }
}

/// Something that names a link to act on: a [`Link`], an end of a new veth pair, or a bare index.
pub trait LinkRef {
    /// The interface index.
    fn index(&self) -> u32;
    /// What to call it in an error.
    fn label(&self) -> Cow<'_, str>;
}

impl LinkRef for Link {
    fn index(&self) -> u32 {
        self.index
    }

    fn label(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.name)
    }
}

impl LinkRef for u32 {
    fn index(&self) -> u32 {
        *self
    }

    fn label(&self) -> Cow<'_, str> {
        Cow::Owned(format!("#{self}"))
    }
}
