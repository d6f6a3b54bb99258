//! One nfnetlink message.

use super::attr::Writer;
use super::consts::{NFNL_SUBSYS_NFTABLES, flag};

/// Size of a netlink header and of the nfnetlink header after it.
pub(super) const NLMSG_HEADER: usize = 16;
pub(super) const NFGEN_HEADER: usize = 4;

/// Address families of tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// All families (dumps only).
    Unspec,
    /// IPv4 and IPv6 together.
    Inet,
    /// IPv4.
    Ip,
    /// ARP.
    Arp,
    /// A network device's ingress.
    Netdev,
    /// Frames on bridges.
    Bridge,
    /// IPv6.
    Ip6,
    /// Anything newer.
    Other(u8),
}

impl Family {
    /// The NFPROTO_ number.
    pub fn number(self) -> u8 {
        match self {
            Self::Unspec => 0,
            Self::Inet => 1,
            Self::Ip => 2,
            Self::Arp => 3,
            Self::Netdev => 5,
            Self::Bridge => 7,
            Self::Ip6 => 10,
            Self::Other(number) => number,
        }
    }

    /// The family with this number.
    pub fn from_number(number: u8) -> Self {
        [
            Self::Unspec,
            Self::Inet,
            Self::Ip,
            Self::Arp,
            Self::Netdev,
            Self::Bridge,
            Self::Ip6,
        ]
        .into_iter()
        .find(|family| family.number() == number)
        .unwrap_or(Self::Other(number))
    }

    /// The name `nft` uses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unspec => "all",
            Self::Inet => "inet",
            Self::Ip => "ip",
            Self::Arp => "arp",
            Self::Netdev => "netdev",
            Self::Bridge => "bridge",
            Self::Ip6 => "ip6",
            Self::Other(_) => "unknown",
        }
    }
}

/// A message before it is numbered.
#[derive(Debug, Clone)]
pub struct Request {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) family: u8,
    pub(super) resource: u16,
    pub(super) attrs: Writer,
}

impl Request {
    /// An nf_tables message (`consts::msg`, `consts::flag`; REQUEST is added).
    pub fn nftables(kind: u8, family: Family, flags: u16) -> Self {
        Self::of(NFNL_SUBSYS_NFTABLES, kind, family, flags)
    }

    /// A message to any nfnetlink subsystem.
    pub fn of(subsystem: u8, kind: u8, family: Family, flags: u16) -> Self {
        Self {
            kind: u16::from(subsystem) << 8 | u16::from(kind),
            flags: flags | flag::REQUEST,
            family: family.number(),
            resource: 0,
            attrs: Writer::default(),
        }
    }

    /// Adds attributes.
    pub fn with(mut self, fill: impl FnOnce(&mut Writer)) -> Self {
        fill(&mut self.attrs);
        self
    }

    /// The bytes on the wire; `None` if an attribute is too long.
    pub(super) fn encode(self, sequence: u32) -> Option<Vec<u8>> {
        let attrs = self.attrs.finish()?;
        let length = u32::try_from(NLMSG_HEADER + NFGEN_HEADER + attrs.len()).ok()?;
        let mut bytes = Vec::with_capacity(NLMSG_HEADER + NFGEN_HEADER + attrs.len());
        bytes.extend_from_slice(&length.to_ne_bytes());
        bytes.extend_from_slice(&self.kind.to_ne_bytes());
        bytes.extend_from_slice(&self.flags.to_ne_bytes());
        bytes.extend_from_slice(&sequence.to_ne_bytes());
        bytes.extend_from_slice(&0u32.to_ne_bytes());
        bytes.extend_from_slice(&[self.family, 0]);
        bytes.extend_from_slice(&self.resource.to_be_bytes());
        bytes.extend_from_slice(&attrs);
        Some(bytes)
    }
}

/// A message as received.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    pub kind: u16,
    pub flags: u16,
    pub sequence: u32,
    pub payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Takes the first message off these bytes; `None` at the end or when the rest is no message.
    pub fn split_off(bytes: &mut &'a [u8]) -> Option<Self> {
        let header = bytes.first_chunk::<NLMSG_HEADER>()?;
        let [l0, l1, l2, l3, t0, t1, f0, f1, s0, s1, s2, s3, ..] = *header;
        let length = usize::try_from(u32::from_ne_bytes([l0, l1, l2, l3])).ok()?;
        let payload = bytes.get(NLMSG_HEADER..length)?;
        *bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Self {
            kind: u16::from_ne_bytes([t0, t1]),
            flags: u16::from_ne_bytes([f0, f1]),
            sequence: u32::from_ne_bytes([s0, s1, s2, s3]),
            payload,
        })
    }

    /// The address family and the attributes of an nfnetlink message.
    pub fn body(&self) -> Option<(Family, &'a [u8])> {
        let (header, attrs) = self.payload.split_first_chunk::<NFGEN_HEADER>()?;
        let [family, ..] = *header;
        Some((Family::from_number(family), attrs))
    }
}
