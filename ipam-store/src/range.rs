//! One range: a subnet, the part of it that is handed out, and its gateway.

use std::fmt;
use std::net::IpAddr;

use ipnetwork::IpNetwork;
use thiserror::Error;

/// A range as a user writes it: everything but the subnet has a default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RangeSpec {
    /// The network, without host bits.
    pub subnet: Option<IpNetwork>,
    /// First address handed out; default: the one after the subnet's.
    pub start: Option<IpAddr>,
    /// Last address handed out; default: the last one, for IPv4 the one before the broadcast address.
    pub end: Option<IpAddr>,
    /// Never handed out; default: the subnet's address plus one. Need not lie in the subnet.
    pub gateway: Option<IpAddr>,
}

impl RangeSpec {
    /// A range that covers a whole subnet with all defaults.
    #[must_use]
    pub fn subnet(subnet: IpNetwork) -> Self {
        Self {
            subnet: Some(subnet),
            ..Self::default()
        }
    }
}

/// What is wrong with one range.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangeError {
    /// No subnet was given.
    #[error("a range has no subnet")]
    NoSubnet,
    /// Fewer than two host bits.
    #[error("network {0} too small to allocate from: the prefix may be at most /{max}", max = max_prefix(.0))]
    TooSmall(IpNetwork),
    /// An IPv4 address in IPv6 clothes with an IPv6 mask.
    #[error("network {0} mixes an IPv4 address with an IPv6 mask")]
    MixedMask(IpNetwork),
    /// The subnet's address is not the network address.
    #[error("network {subnet} has host bits set; for a prefix of /{prefix} the network address is {network}", prefix = .subnet.prefix())]
    HostBits {
        /// As given.
        subnet: IpNetwork,
        /// What it should have been.
        network: IpAddr,
    },
    /// An explicit start or end outside of the subnet.
    #[error("{field} {address} not in network {subnet}")]
    Outside {
        /// `rangeStart` or `rangeEnd`.
        field: &'static str,
        /// As given.
        address: IpAddr,
        /// The range's subnet.
        subnet: IpNetwork,
    },
    /// Start lies behind end.
    #[error("rangeStart {start} comes after rangeEnd {end} in network {subnet}")]
    Reversed {
        /// First address.
        start: IpAddr,
        /// Last address.
        end: IpAddr,
        /// The range's subnet.
        subnet: IpNetwork,
    },
}

/// A valid range with all defaults filled in; `start <= end`, both inside the subnet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Range {
    subnet: IpNetwork,
    start: IpAddr,
    end: IpAddr,
    gateway: IpAddr,
}

impl Range {
    /// Fills in the defaults and checks the result.
    ///
    /// # Errors
    /// See [`RangeError`].
    pub fn new(spec: &RangeSpec) -> Result<Self, RangeError> {
        let subnet = spec.subnet.ok_or(RangeError::NoSubnet)?;
        check_subnet(subnet)?;
        let first_host = ip(key(subnet.ip()).saturating_add(1));
        let start = spec.start.map_or(first_host, |ip| ip.to_canonical());
        let end = spec
            .end
            .map_or_else(|| last_host(subnet), |ip| ip.to_canonical());
        for (field, address) in [("rangeStart", start), ("rangeEnd", end)] {
            if !subnet.contains(address) {
                return Err(RangeError::Outside {
                    field,
                    address,
                    subnet,
                });
            }
        }
        if key(start) > key(end) {
            return Err(RangeError::Reversed { start, end, subnet });
        }
        Ok(Self {
            subnet,
            start,
            end,
            gateway: spec.gateway.map_or(first_host, |ip| ip.to_canonical()),
        })
    }

    /// The subnet.
    #[must_use]
    pub fn subnet(&self) -> IpNetwork {
        self.subnet
    }

    /// The address that is never handed out.
    #[must_use]
    pub fn gateway(&self) -> IpAddr {
        self.gateway
    }

    /// First address handed out.
    #[must_use]
    pub fn start(&self) -> IpAddr {
        self.start
    }

    /// Last address handed out.
    #[must_use]
    pub fn end(&self) -> IpAddr {
        self.end
    }

    /// Whether the range hands out addresses of IPv4.
    #[must_use]
    pub fn is_ipv4(&self) -> bool {
        self.subnet.is_ipv4()
    }

    /// Whether `address` lies between start and end (the gateway counts as inside).
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.is_ipv4() && (self.first()..=self.last()).contains(&key(address))
    }

    /// Whether any address lies in both.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.is_ipv4() == other.is_ipv4()
            && self.first() <= other.last()
            && other.first() <= self.last()
    }

    pub(crate) fn first(&self) -> u128 {
        key(self.start)
    }

    pub(crate) fn last(&self) -> u128 {
        key(self.end)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.start, self.end)
    }
}

/// An address as a number: IPv6 as it is, IPv4 in its v4-mapped place, so that one order serves both.
pub(crate) fn key(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_ipv6_mapped()),
        IpAddr::V6(v6) => u128::from(v6),
    }
}

/// The reverse of [`key`].
pub(crate) fn ip(key: u128) -> IpAddr {
    IpAddr::V6(key.into()).to_canonical()
}

fn check_subnet(subnet: IpNetwork) -> Result<(), RangeError> {
    if subnet.ip().to_canonical().is_ipv4() != subnet.is_ipv4() {
        return Err(RangeError::MixedMask(subnet));
    }
    if subnet.prefix() > max_prefix(&subnet) {
        return Err(RangeError::TooSmall(subnet));
    }
    if subnet.ip() != subnet.network() {
        return Err(RangeError::HostBits {
            subnet,
            network: subnet.network(),
        });
    }
    Ok(())
}

fn max_prefix(subnet: &IpNetwork) -> u8 {
    if subnet.is_ipv4() { 30 } else { 126 }
}

/// The last address of the subnet, for IPv4 without the broadcast address.
fn last_host(subnet: IpNetwork) -> IpAddr {
    let last = key(subnet.broadcast());
    ip(if subnet.is_ipv4() {
        last.saturating_sub(1)
    } else {
        last
    })
}
