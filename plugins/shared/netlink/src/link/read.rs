//! Finding and listing links.

use netlink_packet_core::{DefaultNla, NLM_F_DUMP};
use netlink_packet_route::link::{LinkAttribute, LinkExtentMask, LinkHeader, LinkMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::libc;

use super::change::{INET_CONF, ROUTE_LOCALNET};
use super::{BridgePort, KindData, Link, OperState};
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::mac::MacAddr;
use crate::name::{self, NAME_MAX};
use crate::nla::{self, attributes};
use crate::request::Request;
use crate::tun::TunSettings;

/// `IFLA_BR_STP_STATE`, `IFLA_BR_VLAN_FILTERING` and `IFLA_BR_VLAN_DEFAULT_PVID` (linux/if_link.h).
const BR_STP_STATE: u16 = 5;
const BR_VLAN_FILTERING: u16 = 7;
const BR_VLAN_DEFAULT_PVID: u16 = 39;
/// `IFLA_BRPORT_STATE`, `IFLA_BRPORT_MODE` (hairpin) and `IFLA_BRPORT_ISOLATED`.
const BRPORT_STATE: u16 = 1;
const BRPORT_MODE: u16 = 4;
const BRPORT_ISOLATED: u16 = 33;
/// `IFLA_ALT_IFNAME`: alone in a request, within `IFLA_PROP_LIST` in an answer.
const ALT_IFNAME: u16 = 53;
/// `IFLA_TUN_*`.
const TUN_OWNER: u16 = 1;
const TUN_GROUP: u16 = 2;
const TUN_TYPE: u16 = 3;
const TUN_PI: u16 = 4;
const TUN_VNET_HDR: u16 = 5;
const TUN_PERSIST: u16 = 6;
const TUN_MULTI_QUEUE: u16 = 7;
const HEADER_LEN: usize = 16;

impl Handle {
    /// The link of that name, which may be an alternative name.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is none.
    pub fn link(&self, name: &str) -> Result<Link> {
        name::check_lookup(name)?;
        let attribute = if name.len() <= NAME_MAX {
            LinkAttribute::IfName(name.to_owned())
        } else {
            LinkAttribute::Other(DefaultNla::new(
                ALT_IFNAME,
                [name.as_bytes(), &[0]].concat(),
            ))
        };
        self.get_link(0, vec![attribute], name)
    }

    /// The link with that index.
    ///
    /// # Errors
    /// [`is_not_found`](Error::is_not_found) if there is none.
    pub fn link_by_index(&self, index: u32) -> Result<Link> {
        self.get_link(index, Vec::new(), &format!("#{index}"))
    }

    /// As [`Handle::link`], with absence as a value.
    ///
    /// # Errors
    /// Whatever is not absence.
    pub fn find_link(&self, name: &str) -> Result<Option<Link>> {
        match self.link(name) {
            Ok(link) => Ok(Some(link)),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// All links of the namespace.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn links(&self) -> Result<Vec<Link>> {
        let mut message = LinkMessage::default();
        message
            .attributes
            .push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
        let request = Request::new(
            RouteNetlinkMessage::GetLink(message),
            NLM_F_DUMP,
            "list",
            "links",
        );
        self.socket.exchange(&request, parse)
    }

    fn get_link(&self, index: u32, mut by: Vec<LinkAttribute>, object: &str) -> Result<Link> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        by.push(LinkAttribute::ExtMask(vec![LinkExtentMask::SkipStats]));
        message.attributes = by;
        let request = Request::new(
            RouteNetlinkMessage::GetLink(message),
            0,
            "find link",
            object,
        );
        self.socket
            .exchange(&request, parse)?
            .pop()
            .ok_or_else(|| Error::Malformed {
                what: request.what,
                object: request.object,
                why: "it holds no link".to_owned(),
            })
    }
}

/// Reads an `RTM_NEWLINK` message; anything else is none.
pub(crate) fn parse(kind: u16, payload: &[u8]) -> Option<Link> {
    if kind != libc::RTM_NEWLINK {
        return None;
    }
    let header = LinkHeader::parse(payload).ok()?;
    if header.interface_family != AddressFamily::Unspec {
        return None;
    }
    let flags = header.flags.bits();
    let mut link = Link {
        index: header.index,
        name: String::new(),
        alt_names: Vec::new(),
        mac: None,
        mtu: 0,
        tx_queue_len: 0,
        kind: None,
        data: KindData::Other,
        master: None,
        up: flags & libc::IFF_UP as u32 != 0,
        carrier: flags & libc::IFF_LOWER_UP as u32 != 0,
        loopback: flags & libc::IFF_LOOPBACK as u32 != 0,
        operstate: OperState::Unknown,
        peer: None,
        peer_netnsid: None,
        promisc: flags & libc::IFF_PROMISC as u32 != 0,
        promiscuity: 0,
        all_multicast: flags & libc::IFF_ALLMULTI as u32 != 0,
        alias: None,
        vlan_filtering: None,
        default_pvid: None,
        stp: false,
        port: None,
        route_localnet: None,
        tun: None,
    };
    for (kind, value) in attributes(payload.get(HEADER_LEN..)?) {
        link.take(kind, value);
    }
    Some(link)
}

impl Link {
    fn take(&mut self, kind: u16, value: &[u8]) {
        match kind {
            libc::IFLA_IFNAME => self.name = nla::as_text(value),
            libc::IFLA_ADDRESS => self.mac = <[u8; 6]>::try_from(value).ok().map(MacAddr::new),
            libc::IFLA_MTU => self.mtu = nla::as_u32(value).unwrap_or(0),
            libc::IFLA_TXQLEN => self.tx_queue_len = nla::as_u32(value).unwrap_or(0),
            libc::IFLA_MASTER => self.master = nla::as_u32(value),
            libc::IFLA_OPERSTATE => self.operstate = nla::as_u8(value).unwrap_or(0).into(),
            libc::IFLA_LINK => self.peer = nla::as_u32(value),
            libc::IFLA_LINK_NETNSID => self.peer_netnsid = nla::as_i32(value),
            libc::IFLA_PROMISCUITY => self.promiscuity = nla::as_u32(value).unwrap_or(0),
            libc::IFLA_IFALIAS => {
                self.alias = Some(nla::as_text(value)).filter(|text| !text.is_empty())
            }
            libc::IFLA_PROP_LIST => self.alt_names = alt_names(value),
            libc::IFLA_LINKINFO => self.take_info(value),
            libc::IFLA_AF_SPEC => self.route_localnet = ipv4_setting(value, ROUTE_LOCALNET),
            _ => {}
        }
    }

    /// Reads `IFLA_LINKINFO`. The kind stands before its data there.
    fn take_info(&mut self, info: &[u8]) {
        let mut port_kind = String::new();
        for (kind, value) in attributes(info) {
            match kind {
                libc::IFLA_INFO_KIND => self.kind = Some(nla::as_text(value)),
                libc::IFLA_INFO_DATA if self.is_bridge() => self.take_bridge(value),
                libc::IFLA_INFO_DATA if self.is_tun() => self.tun = Some(tun(value)),
                libc::IFLA_INFO_DATA => {
                    self.data = KindData::parse(self.kind.as_deref().unwrap_or_default(), value);
                }
                libc::IFLA_INFO_SLAVE_KIND => port_kind = nla::as_text(value),
                libc::IFLA_INFO_SLAVE_DATA if port_kind == "bridge" => {
                    self.port = Some(bridge_port(value))
                }
                _ => {}
            }
        }
    }

    /// Reads a bridge's settings. A kernel built without VLAN filtering still says it is off, but knows no default VLAN.
    fn take_bridge(&mut self, data: &[u8]) {
        let find = |wanted| {
            attributes(data)
                .find(|(kind, _)| *kind == wanted)
                .map(|(_, value)| value)
        };
        self.stp = find(BR_STP_STATE)
            .and_then(nla::as_u32)
            .is_some_and(|state| state != 0);
        self.default_pvid = find(BR_VLAN_DEFAULT_PVID).and_then(nla::as_u16);
        self.vlan_filtering = match self.default_pvid {
            Some(_) => find(BR_VLAN_FILTERING)
                .and_then(nla::as_u8)
                .map(|on| on != 0),
            None => None,
        };
    }
}

/// A setting of `IFLA_INET_CONF`, which lists them all as 32-bit numbers, the first being number 1.
fn ipv4_setting(families: &[u8], setting: u16) -> Option<bool> {
    let find = |attributes_of, wanted| {
        attributes(attributes_of)
            .find(|(kind, _)| *kind == wanted)
            .map(|(_, value)| value)
    };
    let family = u16::try_from(libc::AF_INET).ok()?;
    let values = find(find(families, family)?, INET_CONF)?;
    let start = usize::from(setting).checked_sub(1)? * size_of::<u32>();
    nla::as_u32(values.get(start..)?).map(|value| value != 0)
}

fn tun(data: &[u8]) -> TunSettings {
    let mut tun = TunSettings::default();
    for (kind, value) in attributes(data) {
        let number = nla::as_u8(value).unwrap_or(0);
        match kind {
            TUN_OWNER => tun.owner = nla::as_u32(value),
            TUN_GROUP => tun.group = nla::as_u32(value),
            TUN_TYPE => tun.tap = libc::c_int::from(number) == libc::IFF_TAP,
            TUN_PI => tun.packet_info = number != 0,
            TUN_VNET_HDR => tun.vnet_hdr = number != 0,
            TUN_PERSIST => tun.persistent = number != 0,
            TUN_MULTI_QUEUE => tun.multi_queue = number != 0,
            _ => {}
        }
    }
    tun
}

fn bridge_port(data: &[u8]) -> BridgePort {
    let mut port = BridgePort::default();
    for (kind, value) in attributes(data) {
        let value = nla::as_u8(value).unwrap_or(0);
        match kind {
            BRPORT_STATE => port.state = value,
            BRPORT_MODE => port.hairpin = value != 0,
            BRPORT_ISOLATED => port.isolated = value != 0,
            _ => {}
        }
    }
    port
}

fn alt_names(list: &[u8]) -> Vec<String> {
    attributes(list)
        .filter(|(kind, _)| *kind == ALT_IFNAME)
        .map(|(_, name)| nla::as_text(name))
        .collect()
}
