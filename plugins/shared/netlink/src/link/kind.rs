//! The kinds of link that come alone and not in pairs: on top of another link, or of nothing.

use std::fmt;
use std::str::FromStr;

use netlink_packet_route::link::{IpVlanMode, MacVlanMode};

use crate::nla::{self, attributes};

/// `IFLA_MACVLAN_MODE`, `IFLA_MACVLAN_BC_QUEUE_LEN`, `IFLA_IPVLAN_MODE`, `IFLA_VLAN_ID` and `IFLA_VRF_TABLE`
/// (linux/if_link.h).
const MACVLAN_MODE: u16 = 1;
const MACVLAN_BC_QUEUE_LEN: u16 = 7;
const IPVLAN_MODE: u16 = 1;
const VLAN_ID: u16 = 1;
const VRF_TABLE: u16 = 1;

/// Which of the links on one master, and of the stations beyond it, a macvlan link can talk with (ip-link(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MacvlanMode {
    /// Only with those beyond the master.
    Private,
    /// With its siblings by way of a switch that sends frames back to where they came from.
    Vepa,
    /// With its siblings and with those beyond the master.
    #[default]
    Bridge,
    /// It is alone on its master and has its hardware address.
    Passthru,
}

/// At which layer an ipvlan link is on its master's network (ip-link(8)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IpvlanMode {
    /// Link layer: it answers ARP and takes in broadcasts.
    #[default]
    L2,
    /// Network layer: the host's routes decide where its packets go, and it has no neighbours.
    L3,
    /// As [`Self::L3`], and the host's packet filter sees its packets.
    L3s,
}

impl MacvlanMode {
    const ALL: [Self; 4] = [Self::Private, Self::Vepa, Self::Bridge, Self::Passthru];

    fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Vepa => "vepa",
            Self::Bridge => "bridge",
            Self::Passthru => "passthru",
        }
    }

    pub(crate) fn to_kernel(self) -> MacVlanMode {
        match self {
            Self::Private => MacVlanMode::Private,
            Self::Vepa => MacVlanMode::Vepa,
            Self::Bridge => MacVlanMode::Bridge,
            Self::Passthru => MacVlanMode::Passthrough,
        }
    }
}

impl IpvlanMode {
    const ALL: [Self; 3] = [Self::L2, Self::L3, Self::L3s];

    fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::L3 => "l3",
            Self::L3s => "l3s",
        }
    }

    pub(crate) fn to_kernel(self) -> IpVlanMode {
        match self {
            Self::L2 => IpVlanMode::L2,
            Self::L3 => IpVlanMode::L3,
            Self::L3s => IpVlanMode::L3S,
        }
    }
}

impl fmt::Display for MacvlanMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for IpvlanMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no mode of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such mode")]
pub struct UnknownMode;

impl FromStr for MacvlanMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| mode.name() == text).ok_or(UnknownMode)
    }
}

impl FromStr for IpvlanMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| mode.name() == text).ok_or(UnknownMode)
    }
}

/// The settings that links of some kinds have beside those of every link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum KindData {
    /// None that this crate reads.
    #[default]
    Other,
    /// Of a macvlan link.
    Macvlan {
        /// The mode; none for one that this crate does not make.
        mode: Option<MacvlanMode>,
        /// How many broadcast packets it asked its master's port to queue; none if the kernel does not tell.
        bc_queue_len: Option<u32>,
    },
    /// Of an ipvlan link.
    Ipvlan {
        /// The mode; none for one that this crate does not make.
        mode: Option<IpvlanMode>,
    },
    /// Of a VLAN link.
    Vlan {
        /// The VLAN.
        id: u16,
    },
    /// Of a VRF.
    Vrf {
        /// The table of its ports' routes.
        table: u32,
    },
}

impl KindData {
    /// Reads `IFLA_INFO_DATA` of a link of that kind.
    pub(crate) fn parse(kind: &str, data: &[u8]) -> Self {
        let find = |wanted: u16| {
            attributes(data)
                .find(|(kind, _)| *kind == wanted)
                .map(|(_, value)| value)
        };
        match kind {
            "macvlan" => Self::Macvlan {
                mode: find(MACVLAN_MODE)
                    .and_then(nla::as_u32)
                    .and_then(macvlan_mode),
                bc_queue_len: find(MACVLAN_BC_QUEUE_LEN).and_then(nla::as_u32),
            },
            "ipvlan" => Self::Ipvlan {
                mode: find(IPVLAN_MODE)
                    .and_then(nla::as_u16)
                    .and_then(ipvlan_mode),
            },
            "vlan" => match find(VLAN_ID).and_then(nla::as_u16) {
                Some(id) => Self::Vlan { id },
                None => Self::Other,
            },
            "vrf" => match find(VRF_TABLE).and_then(nla::as_u32) {
                Some(table) => Self::Vrf { table },
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

fn macvlan_mode(number: u32) -> Option<MacvlanMode> {
    let mut all = MacvlanMode::ALL.into_iter();
    all.find(|mode| u32::from(mode.to_kernel()) == number)
}

fn ipvlan_mode(number: u16) -> Option<IpvlanMode> {
    let mut all = IpvlanMode::ALL.into_iter();
    all.find(|mode| u16::from(mode.to_kernel()) == number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_read_as_they_are_written() {
        for mode in MacvlanMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(macvlan_mode(mode.to_kernel().into()), Some(mode));
        }
        for mode in IpvlanMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
            assert_eq!(ipvlan_mode(mode.to_kernel().into()), Some(mode));
        }
        for text in ["", "source", "Bridge", "L2", "passthrough"] {
            assert_eq!(text.parse::<MacvlanMode>(), Err(UnknownMode));
            assert_eq!(text.parse::<IpvlanMode>(), Err(UnknownMode));
        }
    }

    #[test]
    fn data_of_the_kinds() {
        let macvlan = [8, 0, 1, 0, 4, 0, 0, 0, 8, 0, 7, 0, 0xe8, 3, 0, 0];
        let read = KindData::parse("macvlan", &macvlan);
        let expected = KindData::Macvlan {
            mode: Some(MacvlanMode::Bridge),
            bc_queue_len: Some(1000),
        };
        assert_eq!(read, expected);
        let source = KindData::parse("macvlan", &[8, 0, 1, 0, 16, 0, 0, 0]);
        let expected = KindData::Macvlan {
            mode: None,
            bc_queue_len: None,
        };
        assert_eq!(source, expected);
        let ipvlan = KindData::parse("ipvlan", &[6, 0, 1, 0, 2, 0, 0, 0]);
        let expected = KindData::Ipvlan {
            mode: Some(IpvlanMode::L3s),
        };
        assert_eq!(ipvlan, expected);
        assert_eq!(
            KindData::parse("vlan", &[6, 0, 1, 0, 5, 0, 0, 0]),
            KindData::Vlan { id: 5 }
        );
        assert_eq!(
            KindData::parse("vrf", &[8, 0, 1, 0, 10, 0, 0, 0]),
            KindData::Vrf { table: 10 }
        );
        assert_eq!(KindData::parse("vrf", &[]), KindData::Other);
        assert_eq!(KindData::parse("vlan", &[6, 0, 1]), KindData::Other);
        assert_eq!(KindData::parse("bridge", &macvlan), KindData::Other);
    }
}
