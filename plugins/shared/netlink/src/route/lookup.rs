//! Asking the kernel which way a packet would take.

use std::net::IpAddr;

use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::libc;

use super::read;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::request::Request;

const HEADER_LEN: usize = 12;

/// The way to one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Way {
    /// The index of the link it leaves by; `lo` for an address of this host.
    pub oif: u32,
    /// The router, if there is one.
    pub gateway: Option<IpAddr>,
    /// The source address the kernel would choose.
    pub src: Option<IpAddr>,
    /// Whether the address is one of this host's own.
    pub local: bool,
}

impl Handle {
    /// Which way a packet to `destination` would take from here.
    ///
    /// # Errors
    /// The kernel's reason, such as "network is unreachable".
    pub fn way_to(&self, destination: IpAddr) -> Result<Way> {
        self.way(destination, None)
    }

    /// As [`Handle::way_to`], for a packet that has to leave by that link, or, if it is a VRF, by one of its ports.
    ///
    /// # Errors
    /// As [`Handle::way_to`].
    pub fn way_over(&self, oif: u32, destination: IpAddr) -> Result<Way> {
        self.way(destination, Some(oif))
    }

    fn way(&self, destination: IpAddr, oif: Option<u32>) -> Result<Way> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: if destination.is_ipv6() {
                AddressFamily::Inet6
            } else {
                AddressFamily::Inet
            },
            destination_prefix_length: if destination.is_ipv6() { 128 } else { 32 },
            protocol: RouteProtocol::Unspec,
            scope: RouteScope::Universe,
            kind: RouteType::Unspec,
            ..RouteHeader::default()
        };
        message
            .attributes
            .push(RouteAttribute::Destination(destination.into()));
        message.attributes.extend(oif.map(RouteAttribute::Oif));
        let request = Request::new(
            RouteNetlinkMessage::GetRoute(message),
            0,
            "find the way to",
            destination.to_string(),
        );
        self.socket
            .exchange(&request, parse)?
            .pop()
            .ok_or_else(|| Error::Malformed {
                what: request.what,
                object: request.object,
                why: "it holds no way".to_owned(),
            })
    }
}

fn parse(kind: u16, payload: &[u8]) -> Option<Way> {
    if kind != libc::RTM_NEWROUTE {
        return None;
    }
    let header = RouteHeader::parse(payload).ok()?;
    let route = read::read(&header, payload.get(HEADER_LEN..)?)?;
    let hop = route.next_hops.first()?;
    Some(Way {
        oif: hop.oif,
        gateway: hop.gateway,
        src: route.src,
        local: header.kind == RouteType::Local,
    })
}
