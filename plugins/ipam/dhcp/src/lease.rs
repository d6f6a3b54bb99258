//! A lease: what a server granted, and until when.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use cni_types::result::{CniResult, Ip, Route};
use dhcproto::v4::{DhcpOption, OptionCode};
use ipnetwork::IpNetwork;
use netlink::scope;
use serde::{Deserialize, Serialize};

use crate::clock::Time;
use crate::packet::Answer;

/// How long a lease is whose server does not say, in seconds.
const DEFAULT_SECONDS: u32 = 3600;
/// A lease without end (RFC 2131, 3.3).
const FOREVER: u32 = u32::MAX;

/// What a server granted. Times are in seconds since the machine was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    /// The address.
    pub address: Ipv4Addr,
    /// The length of its network's prefix.
    pub prefix: u8,
    /// The first router.
    pub gateway: Option<Ipv4Addr>,
    /// The routes.
    pub routes: Vec<LeaseRoute>,
    /// The server's address.
    pub server: Ipv4Addr,
    /// The hardware address from which the server's answer came: its own, or a router's on the way.
    #[serde(with = "crate::hex")]
    pub server_mac: [u8; 6],
    /// When it was asked for.
    pub since: u64,
    /// When its server is asked to extend it; never without.
    pub renew: Option<u64>,
    /// When any server is asked to.
    pub rebind: Option<u64>,
    /// When it ends.
    pub expire: Option<u64>,
}

/// A route that a server told of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseRoute {
    /// The destination.
    pub to: Ipv4Addr,
    /// The length of its prefix.
    pub prefix: u8,
    /// The router; unspecified where the destination is on the link.
    pub via: Ipv4Addr,
}

impl Lease {
    /// The lease in a server's acknowledgement of a request that was sent at `asked`; `None` without a mask for its
    /// address (option 1), with which nobody could use it.
    pub fn granted(answer: &Answer, server_mac: [u8; 6], asked: Time) -> Option<Self> {
        let options = &answer.options;
        let mask = match options.get(OptionCode::SubnetMask)? {
            DhcpOption::SubnetMask(mask) => *mask,
            _ => return None,
        };
        let gateway = match options.get(OptionCode::Router) {
            Some(DhcpOption::Router(routers)) => routers.first().copied(),
            _ => None,
        };
        let times = Times::of(answer);
        let since = asked.as_secs();
        let at = |seconds: u32| (times.lease != FOREVER).then(|| since + u64::from(seconds));
        Some(Self {
            address: answer.address,
            prefix: u8::try_from(u32::from(mask).leading_ones()).ok()?,
            gateway,
            routes: routes(answer, gateway),
            server: answer.server,
            server_mac,
            since,
            renew: at(times.renew),
            rebind: at(times.rebind),
            expire: at(times.lease),
        })
    }

    /// The address with its prefix length.
    pub fn network(&self) -> IpNetwork {
        network(self.address, self.prefix)
    }

    /// Whether it has ended.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expire
            .is_some_and(|end| now >= Duration::from_secs(end))
    }

    /// What ADD answers; a `priority` that is not 0 is the metric of every route.
    pub fn result(&self, priority: i64) -> CniResult {
        let route = |route: &LeaseRoute| {
            let on_link = route.via.is_unspecified();
            Route {
                priority,
                scope: on_link.then_some(i64::from(scope::LINK)),
                ..Route::new(network(route.to, route.prefix), Some(route.via.into()))
            }
        };
        CniResult {
            ips: vec![Ip {
                gateway: self.gateway.map(IpAddr::V4),
                ..Ip::new(self.network())
            }],
            routes: self.routes.iter().map(route).collect(),
            ..CniResult::default()
        }
    }
}

fn network(address: Ipv4Addr, prefix: u8) -> IpNetwork {
    // A prefix length that is too long is read as that of a single address.
    IpNetwork::new(address.into(), prefix).unwrap_or_else(|_| IpNetwork::from(IpAddr::V4(address)))
}

/// Classless routes (option 121) stand for all others (RFC 3442); else there are the classful ones (option 33), and a
/// default route through the router.
fn routes(answer: &Answer, gateway: Option<Ipv4Addr>) -> Vec<LeaseRoute> {
    let options = &answer.options;
    if let Some(DhcpOption::ClasslessStaticRoute(routes)) =
        options.get(OptionCode::ClasslessStaticRoute)
    {
        let route = |to: Ipv4Addr, prefix: u8, via: Ipv4Addr| LeaseRoute { to, prefix, via };
        return routes
            .iter()
            .map(|(to, via)| route(to.addr(), to.prefix_len(), *via))
            .collect();
    }
    let mut found = Vec::new();
    if let Some(DhcpOption::StaticRoutingTable(routes)) =
        options.get(OptionCode::StaticRoutingTable)
    {
        found.extend(routes.iter().filter_map(|(to, via)| {
            Some(LeaseRoute {
                to: *to,
                prefix: class(*to)?,
                via: *via,
            })
        }));
    }
    found.extend(gateway.map(|via| LeaseRoute {
        to: Ipv4Addr::UNSPECIFIED,
        prefix: 0,
        via,
    }));
    found
}

/// The prefix length of an address by its class; none for what is no host's or network's.
fn class(address: Ipv4Addr) -> Option<u8> {
    match address.octets() {
        [0, ..] => None,
        [1..=127, ..] => Some(8),
        [128..=191, ..] => Some(16),
        [192..=223, ..] => Some(24),
        _ => None,
    }
}

/// Durations in seconds.
struct Times {
    lease: u32,
    renew: u32,
    rebind: u32,
}

impl Times {
    /// What the server says, or half the lease and 85 % of it; also where what it says is out of order.
    fn of(answer: &Answer) -> Self {
        let options = &answer.options;
        let lease = match options.get(OptionCode::AddressLeaseTime) {
            Some(DhcpOption::AddressLeaseTime(seconds)) => (*seconds).max(1),
            _ => DEFAULT_SECONDS,
        };
        let renew = match options.get(OptionCode::Renewal) {
            Some(DhcpOption::Renewal(seconds)) => Some(*seconds),
            _ => None,
        };
        let rebind = match options.get(OptionCode::Rebinding) {
            Some(DhcpOption::Rebinding(seconds)) => Some(*seconds),
            _ => None,
        };
        let renew_default = lease / 2;
        let rebind_default = u32::try_from(u64::from(lease) * 85 / 100).unwrap_or(lease);
        let (renew, rebind) = (
            renew.unwrap_or(renew_default),
            rebind.unwrap_or(rebind_default),
        );
        if 0 < renew && renew <= rebind && rebind <= lease {
            Self {
                lease,
                renew,
                rebind,
            }
        } else {
            Self {
                lease,
                renew: renew_default,
                rebind: rebind_default,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dhcproto::v4::{DhcpOptions, MessageType};

    fn answer(options: Vec<DhcpOption>) -> Answer {
        Answer {
            kind: MessageType::Ack,
            server: Ipv4Addr::new(10, 0, 0, 1),
            address: Ipv4Addr::new(10, 0, 0, 2),
            options: options.into_iter().collect::<DhcpOptions>(),
        }
    }

    fn lease(mut options: Vec<DhcpOption>) -> Lease {
        options.push(DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 0)));
        Lease::granted(&answer(options), [2; 6], Duration::from_secs(100)).unwrap()
    }

    fn ip(text: &str) -> Ipv4Addr {
        text.parse().unwrap()
    }

    #[test]
    fn times_are_those_of_the_server_or_parts_of_the_lease() {
        let times = |options| {
            let lease = lease(options);
            (lease.renew, lease.rebind, lease.expire)
        };
        let seconds = DhcpOption::AddressLeaseTime;
        assert_eq!(times(vec![]), (Some(1900), Some(3160), Some(3700)));
        assert_eq!(times(vec![seconds(100)]), (Some(150), Some(185), Some(200)));
        let told = vec![
            seconds(100),
            DhcpOption::Renewal(10),
            DhcpOption::Rebinding(20),
        ];
        assert_eq!(times(told), (Some(110), Some(120), Some(200)));
        let disordered = vec![
            seconds(100),
            DhcpOption::Renewal(90),
            DhcpOption::Rebinding(20),
        ];
        assert_eq!(times(disordered), (Some(150), Some(185), Some(200)));
        assert_eq!(times(vec![seconds(u32::MAX)]), (None, None, None));
    }

    #[test]
    fn classful_routes_and_the_router_make_the_routes() {
        let routes = vec![
            (ip("10.1.2.3"), ip("10.0.0.5")),
            (ip("172.16.0.9"), ip("10.0.0.6")),
            (ip("192.168.3.4"), ip("10.0.0.7")),
            (ip("224.0.0.1"), ip("10.0.0.8")),
            (ip("0.0.0.0"), ip("10.0.0.8")),
        ];
        let options = vec![
            DhcpOption::StaticRoutingTable(routes),
            DhcpOption::Router(vec![ip("10.0.0.1"), ip("10.0.0.9")]),
        ];
        let result = lease(options).result(7);
        assert_eq!(result.ips[0].address.to_string(), "10.0.0.2/24");
        assert_eq!(result.ips[0].gateway, Some(ip("10.0.0.1").into()));
        let texts: Vec<String> = result
            .routes
            .iter()
            .map(|route| route.dst.to_string())
            .collect();
        assert_eq!(
            texts,
            ["10.1.2.3/8", "172.16.0.9/16", "192.168.3.4/24", "0.0.0.0/0"]
        );
        assert!(result.routes.iter().all(|route| route.priority == 7));
    }

    #[test]
    fn classless_routes_stand_for_all_others() {
        let options = vec![
            DhcpOption::ClasslessStaticRoute(vec![
                ("10.88.1.0/24".parse().unwrap(), ip("10.0.0.6")),
                ("10.88.2.0/24".parse().unwrap(), ip("0.0.0.0")),
            ]),
            DhcpOption::Router(vec![ip("10.0.0.1")]),
        ];
        let result = lease(options).result(0);
        assert_eq!(result.ips[0].gateway, Some(ip("10.0.0.1").into()));
        assert_eq!(result.routes.len(), 2);
        assert_eq!(
            (result.routes[0].scope, result.routes[1].scope),
            (None, Some(253))
        );
        assert_eq!(result.routes[1].gw, Some(ip("0.0.0.0").into()));
    }

    #[test]
    fn an_address_without_a_mask_is_of_no_use() {
        assert!(Lease::granted(&answer(vec![]), [2; 6], Duration::ZERO).is_none());
    }
}
