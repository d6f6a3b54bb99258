//! Listing routes.

use std::net::{IpAddr, Ipv6Addr};

use ipnetwork::IpNetwork;
use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::libc;

use super::{NextHop, Route, any};
use crate::error::Result;
use crate::handle::Handle;
use crate::nla::{self, attributes};
use crate::request::Request;

pub(super) const HEADER_LEN: usize = 12;
/// `struct rtnexthop`: length (2), flags (1), hops (1), link index (4).
pub(super) const NEXT_HOP_LEN: usize = 8;
/// `RTA_VIA`: a router of another family.
pub(super) const RTA_VIA: u16 = 18;
/// `RTAX_MTU` and `RTAX_ADVMSS` within `RTA_METRICS`.
const METRIC_MTU: u16 = 2;
const METRIC_ADVMSS: u16 = 8;
/// `RTNH_F_ONLINK`.
pub(super) const ONLINK: u8 = 4;
/// `RTM_F_CLONED`: an entry of the IPv6 route cache.
const CLONED: RouteFlags = RouteFlags::Cloned;

impl Handle {
    /// The IPv4 and IPv6 routes of all tables.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn routes(&self) -> Result<Vec<Route>> {
        let mut all = self.list_routes(false, None)?;
        all.extend(self.list_routes(true, None)?);
        Ok(all)
    }

    /// The routes of one table for IPv4 (false) or IPv6 (true). A table that does not exist is empty.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn routes_in(&self, table: u32, ipv6: bool) -> Result<Vec<Route>> {
        match self.list_routes(ipv6, Some(table)) {
            // A kernel that checks strictly lists this table only; older ones list all of them.
            Ok(routes) => Ok(routes
                .into_iter()
                .filter(|route| route.table == table)
                .collect()),
            Err(e) if e.is_not_found() => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }

    fn list_routes(&self, ipv6: bool, table: Option<u32>) -> Result<Vec<Route>> {
        self.socket.exchange(&list_request(ipv6, table), parse)
    }
}

/// The request that lists the routes of one table or of all.
pub(super) fn list_request(ipv6: bool, table: Option<u32>) -> Request {
    let mut message = RouteMessage::default();
    message.header = RouteHeader {
        address_family: if ipv6 {
            AddressFamily::Inet6
        } else {
            AddressFamily::Inet
        },
        protocol: RouteProtocol::Unspec,
        scope: RouteScope::Universe,
        kind: RouteType::Unspec,
        ..RouteHeader::default()
    };
    message.attributes.extend(table.map(RouteAttribute::Table));
    Request::new(
        RouteNetlinkMessage::GetRoute(message),
        NLM_F_DUMP,
        "list",
        "routes",
    )
}

/// Reads an `RTM_NEWROUTE` message of a cacheless IPv4 or IPv6 route; anything else is none.
pub(crate) fn parse(kind: u16, payload: &[u8]) -> Option<Route> {
    if kind != libc::RTM_NEWROUTE {
        return None;
    }
    let header = RouteHeader::parse(payload).ok()?;
    if header.flags.contains(CLONED) {
        return None;
    }
    read(&header, payload.get(HEADER_LEN..)?)
}

/// Reads the attributes behind the header.
pub(super) fn read(header: &RouteHeader, bytes: &[u8]) -> Option<Route> {
    let ipv6 = match header.address_family {
        AddressFamily::Inet => false,
        AddressFamily::Inet6 => true,
        _ => return None,
    };
    let mut route = Route {
        dst: any(ipv6),
        next_hops: Vec::new(),
        src: None,
        metric: 0,
        table: header.table.into(),
        scope: header.scope.into(),
        kind: header.kind.into(),
        protocol: header.protocol.into(),
        mtu: None,
        advmss: None,
    };
    let mut hop = NextHop {
        onlink: header.flags.contains(RouteFlags::Onlink),
        ..NextHop::default()
    };
    for (kind, value) in attributes(bytes) {
        match kind {
            libc::RTA_DST => {
                route.dst =
                    IpNetwork::new(nla::as_ip(value)?, header.destination_prefix_length).ok()?
            }
            libc::RTA_OIF => hop.oif = nla::as_u32(value)?,
            libc::RTA_GATEWAY | RTA_VIA => hop.gateway = gateway(kind, value),
            libc::RTA_PREFSRC => route.src = nla::as_ip(value),
            libc::RTA_PRIORITY => route.metric = nla::as_u32(value)?,
            libc::RTA_TABLE => route.table = nla::as_u32(value)?,
            libc::RTA_METRICS => take_metrics(&mut route, value),
            libc::RTA_MULTIPATH => route.next_hops = next_hops(value),
            _ => {}
        }
    }
    if route.next_hops.is_empty() && hop.oif != 0 {
        route.next_hops.push(hop);
    }
    Some(route)
}

fn take_metrics(route: &mut Route, value: &[u8]) {
    for (kind, value) in attributes(value) {
        match kind {
            METRIC_MTU => route.mtu = nla::as_u32(value),
            METRIC_ADVMSS => route.advmss = nla::as_u32(value),
            _ => {}
        }
    }
}

/// `RTA_VIA` is a family (2 bytes) and an address; `RTA_GATEWAY` is an address of the route's own family.
fn gateway(kind: u16, value: &[u8]) -> Option<IpAddr> {
    let value = if kind == RTA_VIA {
        value.get(2..)?
    } else {
        value
    };
    nla::as_ip(value).filter(|ip| *ip != IpAddr::from(Ipv6Addr::UNSPECIFIED))
}

fn next_hops(mut bytes: &[u8]) -> Vec<NextHop> {
    let mut hops = Vec::new();
    while let Some(&[l0, l1, flags, _, i0, i1, i2, i3]) = bytes.first_chunk::<NEXT_HOP_LEN>() {
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let Some(inner) = bytes.get(NEXT_HOP_LEN..length) else {
            break;
        };
        let oif = u32::from_ne_bytes([i0, i1, i2, i3]);
        let gateway = attributes(inner)
            .find(|(kind, _)| matches!(*kind, libc::RTA_GATEWAY | RTA_VIA))
            .and_then(|(kind, value)| gateway(kind, value));
        hops.push(NextHop {
            gateway,
            oif,
            onlink: flags & ONLINK != 0,
        });
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    hops
}
