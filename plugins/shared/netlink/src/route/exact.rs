//! Routes with everything the kernel tells of them, to be put into another table, or taken away and put back.

use std::net::IpAddr;

use netlink_packet_core::{DefaultNla, NLM_F_APPEND, NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{RouteAttribute, RouteFlags, RouteHeader, RouteMessage};
use nix::libc;

use super::Route;
use super::read::{self, HEADER_LEN, NEXT_HOP_LEN, ONLINK, RTA_VIA};
use crate::error::Result;
use crate::handle::Handle;
use crate::nla::{self, attributes};
use crate::request::Request;

/// `RTA_EXPIRES`: seconds until it goes by itself.
const EXPIRES: u16 = 23;
/// Where `struct rta_cacheinfo` has the same, in hundredths of a second (`USER_HZ`).
const CACHE_EXPIRES: usize = 8;
const CLOCK: u32 = 100;
/// `RTA_NH_ID`: the ways are an object of their own, which the kernel spells out as well.
const NEXT_HOP_ID: u16 = 30;

/// A route with every attribute the kernel tells, those this crate does not know included.
#[derive(Debug, Clone)]
pub struct ExactRoute {
    route: Route,
    header: RouteHeader,
    attributes: Vec<(u16, Vec<u8>)>,
}

impl ExactRoute {
    /// What is known of it.
    #[must_use]
    pub fn route(&self) -> &Route {
        &self.route
    }

    /// The same route in another table.
    #[must_use]
    pub fn in_table(&self, table: u32) -> Self {
        let mut other = self.clone();
        other.route.table = table;
        other
    }

    /// The same route, with its ways spelled out if they are an object of their own (ip-nexthop(8)): that one goes when a
    /// link is set down.
    #[must_use]
    pub fn spelled_out(&self) -> Self {
        let mut other = self.clone();
        other.attributes.retain(|(kind, _)| *kind != NEXT_HOP_ID);
        other
    }

    /// The same route, for which that is the source of packets that have none.
    #[must_use]
    pub fn with_src(&self, src: IpAddr) -> Self {
        let mut other = self.clone();
        other.route.src = Some(src);
        other
            .attributes
            .retain(|(kind, _)| *kind != libc::RTA_PREFSRC);
        let octets = match src {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        other.attributes.push((libc::RTA_PREFSRC, octets));
        other
    }

    /// The request that adds it behind others to the same destination with the same metric. One that is the same in
    /// every part is refused as existing.
    #[must_use]
    pub fn request(&self) -> Request {
        self.adding(NLM_F_CREATE | NLM_F_APPEND)
    }

    /// The same, before the others. With IPv6 there is no order.
    #[must_use]
    pub fn request_before(&self) -> Request {
        self.adding(NLM_F_CREATE)
    }

    /// The request that puts it in the place of the one to the same destination with the same metric, if there is one.
    #[must_use]
    pub fn replace_request(&self) -> Request {
        self.adding(NLM_F_CREATE | NLM_F_REPLACE)
    }

    fn adding(&self, flags: u16) -> Request {
        let message = RouteNetlinkMessage::NewRoute(self.message());
        Request::new(message, flags, "add route", self.describe())
    }

    /// The request that deletes it and no other.
    #[must_use]
    pub fn delete_request(&self) -> Request {
        let message = RouteNetlinkMessage::DelRoute(self.message());
        Request::new(message, 0, "delete route", self.describe())
    }

    /// Each way of an IPv6 route as a route, which may well be said to have several ways, of which there is one.
    fn split(self) -> Vec<Self> {
        let is_ways = |(kind, _): &&(u16, Vec<u8>)| *kind == libc::RTA_MULTIPATH;
        let ways = match self.attributes.iter().find(is_ways) {
            Some((_, ways)) if self.route.dst.is_ipv6() => each_way(ways),
            _ => return vec![self],
        };
        let hops = self.route.next_hops.clone();
        let one = |(way, hop): (Vec<u8>, _)| {
            let mut one = self.clone();
            one.route.next_hops = vec![hop];
            one.attributes
                .retain(|(kind, _)| *kind != libc::RTA_MULTIPATH);
            one.attributes.push((libc::RTA_MULTIPATH, way));
            one
        };
        ways.into_iter().zip(hops).map(one).collect()
    }

    /// The kernel's message with what it takes back.
    fn message(&self) -> RouteMessage {
        let mut message = RouteMessage::default();
        let table = self.route.table;
        message.header = RouteHeader {
            table: u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC),
            // The others say what has become of it.
            flags: self.header.flags & RouteFlags::Onlink,
            ..self.header.clone()
        };
        let has_object = self.attributes.iter().any(|(kind, _)| *kind == NEXT_HOP_ID);
        let kept = |kind: u16| match kind {
            libc::RTA_TABLE | libc::RTA_CACHEINFO => false,
            libc::RTA_OIF | libc::RTA_GATEWAY | RTA_VIA | libc::RTA_MULTIPATH => !has_object,
            _ => true,
        };
        message.attributes = vec![RouteAttribute::Table(table)];
        let others = self.attributes.iter().filter(|(kind, _)| kept(*kind));
        message.attributes.extend(others.map(|(kind, value)| {
            let value = match *kind {
                libc::RTA_MULTIPATH => without_state(value),
                _ => value.clone(),
            };
            other(*kind, value)
        }));
        let expires = self
            .expires()
            .map(|seconds| other(EXPIRES, seconds.to_ne_bytes().to_vec()));
        message.attributes.extend(expires);
        message
    }

    /// In how many seconds it goes by itself, as one that a router has advertised.
    fn expires(&self) -> Option<u32> {
        let mut all = self.attributes.iter();
        let (_, info) = all.find(|(kind, _)| *kind == libc::RTA_CACHEINFO)?;
        let left = nla::as_i32(info.get(CACHE_EXPIRES..)?)?;
        u32::try_from(left)
            .ok()
            .filter(|left| *left > 0)
            .map(|left| left.div_ceil(CLOCK))
    }

    fn describe(&self) -> String {
        self.route.to_new().describe()
    }
}

fn other(kind: u16, value: Vec<u8>) -> RouteAttribute {
    RouteAttribute::Other(DefaultNla::new(kind, value))
}

/// The ways of a route, each as the kernel wrote it.
fn each_way(ways: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut rest = ways;
    while let Some([l0, l1, ..]) = rest.first_chunk::<NEXT_HOP_LEN>() {
        let length = usize::from(u16::from_ne_bytes([*l0, *l1]));
        let Some(way) = rest.get(..length.max(NEXT_HOP_LEN)) else {
            break;
        };
        all.push(way.to_vec());
        rest = rest
            .get(way.len().next_multiple_of(4)..)
            .unwrap_or_default();
    }
    all
}

/// The ways without what has become of them, which the kernel refuses to be told.
fn without_state(ways: &[u8]) -> Vec<u8> {
    let mut all = ways.to_vec();
    let mut rest = all.as_mut_slice();
    while let Some([l0, l1, flags, ..]) = rest.first_chunk_mut::<NEXT_HOP_LEN>() {
        *flags &= ONLINK;
        let length = usize::from(u16::from_ne_bytes([*l0, *l1])).next_multiple_of(4);
        if length < NEXT_HOP_LEN {
            break;
        }
        rest = rest.get_mut(length..).unwrap_or_default();
    }
    all
}

impl Handle {
    /// The routes of all tables for IPv4 (false) or IPv6 (true), each with everything the kernel tells of it. Those to one
    /// destination with one metric are in the order in which they are tried.
    ///
    /// An IPv6 route with several ways is several routes here, since the kernel makes one of any that have destination
    /// and metric in common, whoever has made them; and it takes each away by itself.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn exact_routes(&self, ipv6: bool) -> Result<Vec<ExactRoute>> {
        let request = read::list_request(ipv6, None);
        let routes = self.socket.exchange(&request, parse)?;
        Ok(routes.into_iter().flat_map(ExactRoute::split).collect())
    }
}

fn parse(kind: u16, payload: &[u8]) -> Option<ExactRoute> {
    let route = read::parse(kind, payload)?;
    let all = attributes(payload.get(HEADER_LEN..)?);
    Some(ExactRoute {
        route,
        header: RouteHeader::parse(payload).ok()?,
        attributes: all.map(|(kind, value)| (kind, value.to_vec())).collect(),
    })
}
