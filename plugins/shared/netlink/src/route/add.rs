//! Adding and deleting routes.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use netlink_packet_core::{NLM_F_APPEND, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope,
    RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::{Route, TABLE_MAIN, scope};
use crate::error::Result;
use crate::handle::Handle;
use crate::request::Request;

/// What happens if a route to the same destination with the same metric exists in the table.
/// A route that is the same in all its parts is always refused as existing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum RouteConflict {
    /// Both exist. IPv4 puts the new one first and uses it; IPv6 makes one route with two ways of them.
    #[default]
    Coexist,
    /// Both exist, the new one behind the other (IPv4), or as another way of it (IPv6).
    Append,
    /// The new one takes the place of the other.
    Replace,
    /// The new one is refused.
    Refuse,
}

/// A route to be added.
#[derive(Debug, Clone)]
pub struct NewRoute {
    /// The destination. Bits behind the prefix are cleared.
    pub dst: IpNetwork,
    /// The router, if there is one, of the destination's family.
    pub gateway: Option<IpAddr>,
    /// The index of the link it leaves by.
    pub oif: Option<u32>,
    /// The source address for packets that have none.
    pub src: Option<IpAddr>,
    /// The metric.
    pub metric: Option<u32>,
    /// The table; none and 0 mean the main one.
    pub table: Option<u32>,
    /// The scope. None means the usual one: anywhere through a router, the link without one.
    pub scope: Option<u8>,
    /// The path MTU in bytes.
    pub mtu: Option<u32>,
    /// The MSS announced to TCP peers.
    pub advmss: Option<u32>,
    /// Who makes it (linux/rtnetlink.h); none is 3, boot.
    pub protocol: Option<u8>,
    /// Take the router to be on the link although no address there says so.
    pub onlink: bool,
    /// What to do about an existing route.
    pub conflict: RouteConflict,
}

impl NewRoute {
    /// A route to `dst` over the link with index `oif`, nothing else set.
    #[must_use]
    pub fn new(dst: IpNetwork, oif: u32) -> Self {
        Self {
            dst,
            gateway: None,
            oif: Some(oif),
            src: None,
            metric: None,
            table: None,
            scope: None,
            mtu: None,
            advmss: None,
            protocol: None,
            onlink: false,
            conflict: RouteConflict::default(),
        }
    }

    /// Through that router.
    #[must_use]
    pub fn via(mut self, gateway: IpAddr) -> Self {
        self.gateway = Some(gateway);
        self
    }

    /// The request that adds it.
    #[must_use]
    pub fn request(&self) -> Request {
        let conflict = match self.conflict {
            RouteConflict::Coexist => 0,
            RouteConflict::Append => NLM_F_APPEND,
            RouteConflict::Replace => NLM_F_REPLACE,
            RouteConflict::Refuse => NLM_F_EXCL,
        };
        let message = RouteNetlinkMessage::NewRoute(self.message());
        Request::new(
            message,
            NLM_F_CREATE | conflict,
            "add route",
            self.describe(),
        )
    }

    /// The request that deletes the route with these properties; those not set match any.
    #[must_use]
    pub fn delete_request(&self) -> Request {
        let mut message = self.message();
        if self.scope.is_none() {
            message.header.scope = RouteScope::NoWhere;
        }
        if self.protocol.is_none() {
            message.header.protocol = RouteProtocol::Unspec;
        }
        Request::new(
            RouteNetlinkMessage::DelRoute(message),
            0,
            "delete route",
            self.describe(),
        )
    }

    fn message(&self) -> RouteMessage {
        let mut message = RouteMessage::default();
        let table = self.table.filter(|table| *table != 0).unwrap_or(TABLE_MAIN);
        message.header = RouteHeader {
            address_family: if self.dst.is_ipv6() {
                AddressFamily::Inet6
            } else {
                AddressFamily::Inet
            },
            destination_prefix_length: self.dst.prefix(),
            table: u8::try_from(table).unwrap_or(RouteHeader::RT_TABLE_UNSPEC),
            protocol: self.protocol.map_or(RouteProtocol::Boot, Into::into),
            scope: self.wanted_scope().into(),
            kind: RouteType::Unicast,
            flags: if self.onlink {
                RouteFlags::Onlink
            } else {
                RouteFlags::empty()
            },
            ..RouteHeader::default()
        };
        message.attributes = self.attributes(table);
        message
    }

    fn wanted_scope(&self) -> u8 {
        match (self.scope, self.gateway) {
            (Some(scope), _) => scope,
            (None, None) if self.dst.is_ipv4() => scope::LINK,
            (None, _) => scope::UNIVERSE,
        }
    }

    fn attributes(&self, table: u32) -> Vec<RouteAttribute> {
        let mut attributes = vec![RouteAttribute::Table(table)];
        if self.dst.prefix() != 0 {
            attributes.push(RouteAttribute::Destination(self.dst.network().into()));
        }
        attributes.extend(self.oif.map(RouteAttribute::Oif));
        attributes.extend(self.gateway.map(|ip| RouteAttribute::Gateway(ip.into())));
        attributes.extend(self.src.map(|ip| RouteAttribute::PrefSource(ip.into())));
        attributes.extend(self.metric.map(RouteAttribute::Priority));
        let metrics: Vec<_> = [
            self.mtu.map(RouteMetric::Mtu),
            self.advmss.map(RouteMetric::Advmss),
        ]
        .into_iter()
        .flatten()
        .collect();
        if !metrics.is_empty() {
            attributes.push(RouteAttribute::Metrics(metrics));
        }
        attributes
    }

    pub(super) fn describe(&self) -> String {
        let mut text = self.dst.to_string();
        let parts = [
            ("via", self.gateway.map(|ip| ip.to_string())),
            ("src", self.src.map(|ip| ip.to_string())),
            ("dev", self.oif.map(|index| format!("#{index}"))),
            ("metric", self.metric.map(|metric| metric.to_string())),
            ("table", self.table.map(|table| table.to_string())),
            ("scope", self.scope.map(|scope| scope.to_string())),
        ];
        for (word, value) in parts {
            if let Some(value) = value {
                text.push_str(&format!(" {word} {value}"));
            }
        }
        text
    }
}

impl Route {
    /// The description of this route for deleting it or adding it elsewhere, by its first way.
    #[must_use]
    pub fn to_new(&self) -> NewRoute {
        let hop = self.next_hops.first().copied().unwrap_or_default();
        NewRoute {
            dst: self.dst,
            gateway: hop.gateway,
            oif: Some(hop.oif).filter(|index| *index != 0),
            src: self.src,
            metric: Some(self.metric).filter(|metric| *metric != 0),
            table: Some(self.table),
            scope: Some(self.scope),
            mtu: self.mtu,
            advmss: self.advmss,
            protocol: None,
            onlink: hop.onlink,
            conflict: RouteConflict::default(),
        }
    }
}

impl Handle {
    /// Adds a route.
    ///
    /// # Errors
    /// [`is_exists`](crate::Error::is_exists) if the very same route is there already, or by [`RouteConflict::Refuse`].
    pub fn add_route(&self, route: &NewRoute) -> Result<()> {
        self.execute(&route.request())
    }

    /// Deletes the first route with these properties.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found) if there is none.
    pub fn delete_route(&self, route: &NewRoute) -> Result<()> {
        self.execute(&route.delete_request())
    }
}
