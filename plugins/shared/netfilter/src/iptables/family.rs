//! The two address families, each with tables and tools of its own.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

use crate::nfnl;

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// IPv4: `iptables`, nf_tables family `ip`.
    V4,
    /// IPv6: `ip6tables`, nf_tables family `ip6`.
    V6,
}

impl Family {
    /// Both, in the order they are changed.
    pub(crate) const ALL: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub(crate) fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// The family of its tables in nf_tables.
    pub(crate) fn nfnl(self) -> nfnl::Family {
        match self {
            Self::V4 => nfnl::Family::Ip,
            Self::V6 => nfnl::Family::Ip6,
        }
    }

    /// Beginning of the tools' names.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::V4 => "iptables",
            Self::V6 => "ip6tables",
        }
    }

    /// File of `/proc/net` that lists the legacy tables of a network namespace.
    pub(crate) fn legacy_tables_file(self) -> &'static str {
        match self {
            Self::V4 => "ip_tables_names",
            Self::V6 => "ip6_tables_names",
        }
    }

    /// Where multicast goes.
    pub(crate) fn multicast(self) -> Option<IpNetwork> {
        match self {
            Self::V4 => "224.0.0.0/4".parse().ok(),
            Self::V6 => "ff00::/8".parse().ok(),
        }
    }

    /// The network of exactly one address.
    pub(crate) fn host(address: IpAddr) -> Option<IpNetwork> {
        IpNetwork::new(address, if address.is_ipv4() { 32 } else { 128 }).ok()
    }
}
