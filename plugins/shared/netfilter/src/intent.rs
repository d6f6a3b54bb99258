//! What a plugin may ask for.

use std::fmt;
use std::net::IpAddr;
use std::ops::BitOr;

use ipnetwork::IpNetwork;

/// Transport protocols whose ports can be published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// Every protocol, in the order of their names' use.
    pub const ALL: [Self; 3] = [Self::Tcp, Self::Udp, Self::Sctp];

    /// The IP protocol number.
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    /// The protocol with this IP protocol number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.number() == number)
    }

    /// The lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }

    /// The protocol with this name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Which connections to a published port get the host's address as their source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Snat {
    /// None (`snat: false`): neighbours, the container itself and 127.0.0.0/8 may not reach the port.
    None,
    /// Those from the container's own subnet and from 127.0.0.0/8 (the default).
    Hairpin,
    /// All of them (`masqAll`).
    All,
}

/// How the iptables backend marks packets that must be masqueraded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MarkStyle {
    /// Bit 0 to 31 of the packet mark (`markMasqBit`).
    Bit(u8),
    /// A foreign chain that sets the mark (`externalSetMarkChain`).
    Chain(String),
}

impl Default for MarkStyle {
    fn default() -> Self {
        Self::Bit(13)
    }
}

/// What containers behind a bridge may reach (`ingressPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Their own bridge, but no other policed bridge.
    SameBridge,
    /// Neither their neighbours nor another policed bridge.
    Isolated,
}

/// A host port without its destination: what identifies a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublishedPort {
    /// The host address; `None` for every local address of both families.
    pub host_ip: Option<IpAddr>,
    /// The port on the host.
    pub host_port: u16,
    /// Its protocol.
    pub protocol: Protocol,
}

/// One thing wanted of the packet filter for one attachment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Intent {
    /// Give traffic of the container that leaves its subnet the host's address.
    Masquerade {
        /// The container's address with its prefix length. Traffic to that subnet and to multicast keeps its source.
        source: IpNetwork,
        /// Further destinations that are left alone.
        except: Vec<IpNetwork>,
    },
    /// Forward a port of the host to the container.
    Publish {
        /// The host address; `None` or an unspecified address for all local ones (unspecified: of its family only).
        host_ip: Option<IpAddr>,
        /// The port on the host, not 0.
        host_port: u16,
        /// Its protocol.
        protocol: Protocol,
        /// The container's address with its prefix length (the subnet is what counts as hairpin).
        to: IpNetwork,
        /// The port in the container, not 0.
        to_port: u16,
        /// Which sources are rewritten.
        snat: Snat,
        /// Further matches in the syntax of the backend (`conditionsV4`, `conditionsV6`).
        conditions: Vec<String>,
        /// iptables only: how packets to masquerade are marked.
        mark: MarkStyle,
    },
    /// Let the container's traffic through the FORWARD chain, and answers back to it.
    Admit {
        /// The container's address.
        address: IpAddr,
        /// iptables: the chain an administrator's own rules are in.
        admin_chain: String,
        /// firewalld: the zone the address is put into.
        zone: Option<String>,
    },
    /// Confine the containers of a bridge.
    Confine {
        /// The bridge.
        bridge: String,
        /// The attachment's own port on it; lets nftables isolate neighbours without bridge-nf-call-iptables.
        port: Option<String>,
        /// The rule.
        policy: Policy,
    },
    /// Drop frames that enter a bridge port with another source MAC than the container's.
    GuardMac {
        /// The host end of the container's veth.
        port: String,
        /// The container's MAC.
        mac: [u8; 6],
    },
}

impl Intent {
    /// The same port, published without conditions, whose words only one backend understands. `None` for other intents.
    pub(crate) fn unconditional(&self) -> Option<Self> {
        match self.clone() {
            Self::Publish {
                host_ip,
                host_port,
                protocol,
                to,
                to_port,
                snat,
                ..
            } => Some(Self::Publish {
                host_ip,
                host_port,
                protocol,
                to,
                to_port,
                snat,
                conditions: Vec::new(),
                mark: MarkStyle::default(),
            }),
            _ => None,
        }
    }

    /// The kind of this intent.
    pub fn kind(&self) -> Kinds {
        match self {
            Self::Masquerade { .. } => Kinds::MASQUERADE,
            Self::Publish { .. } => Kinds::PUBLISH,
            Self::Admit { .. } => Kinds::ADMIT,
            Self::Confine { .. } => Kinds::CONFINE,
            Self::GuardMac { .. } => Kinds::GUARD_MAC,
        }
    }
}

/// A set of intent kinds: what a plugin is responsible for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Kinds(u8);

impl Kinds {
    /// [`Intent::Masquerade`].
    pub const MASQUERADE: Self = Self(1);
    /// [`Intent::Publish`].
    pub const PUBLISH: Self = Self(2);
    /// [`Intent::Admit`].
    pub const ADMIT: Self = Self(4);
    /// [`Intent::Confine`].
    pub const CONFINE: Self = Self(8);
    /// [`Intent::GuardMac`].
    pub const GUARD_MAC: Self = Self(16);
    /// Every kind.
    pub const ALL: Self = Self(31);

    const NAMES: [(Self, &'static str); 5] = [
        (Self::MASQUERADE, "masquerade"),
        (Self::PUBLISH, "publish"),
        (Self::ADMIT, "admit"),
        (Self::CONFINE, "confine"),
        (Self::GUARD_MAC, "guard-mac"),
    ];

    /// Both sets together; as `|`, for constants.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every kind of `other` is in this set.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether a kind is in both sets.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The kinds of this set that are not in the other.
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The single kinds in this set.
    pub fn iter(self) -> impl Iterator<Item = Self> {
        Self::NAMES
            .into_iter()
            .map(|(kind, _)| kind)
            .filter(move |kind| self.contains(*kind))
    }

    /// The kinds of these intents.
    pub fn of(intents: &[Intent]) -> Self {
        intents
            .iter()
            .fold(Self::default(), |kinds, intent| kinds | intent.kind())
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = Self::NAMES
            .iter()
            .filter(|(kind, _)| self.contains(*kind))
            .map(|(_, name)| *name)
            .collect();
        f.write_str(&names.join(", "))
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kinds({self})")
    }
}
