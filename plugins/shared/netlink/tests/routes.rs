//! Routes: adding, listing, deleting, looking up.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use common::{host_and_container, veth};
use ipnetwork::IpNetwork;
use netlink::{Handle, NewAddress, NewRoute, Route, RouteConflict, TABLE_MAIN, VethEnd, scope};

fn net(text: &str) -> IpNetwork {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// A container with eth0 up, 10.1.2.3/24 and fd00::3/64.
fn container() -> (Handle, Handle, VethEnd) {
    let (host, container) = host_and_container();
    let made = veth(&host, &container);
    host.set_up(&made.host).unwrap();
    container.set_up(&made.container).unwrap();
    for address in ["10.1.2.3/24", "fd00::3/64"] {
        container
            .add_address(&made.container, &NewAddress::new(net(address)).nodad())
            .unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    container
        .wait_settled(&made.container, |a| a.scope == 0, deadline)
        .unwrap();
    (host, container, made.container)
}

fn found(container: &Handle, table: u32, dst: &str) -> Vec<Route> {
    let dst = net(dst);
    let routes = container.routes_in(table, dst.is_ipv6()).unwrap();
    routes
        .into_iter()
        .filter(|route| route.dst == dst)
        .collect()
}

sandboxed! {
    fn every_property_arrives() {
        let (_host, container, eth0) = container();
        for (dst, gateway, src) in [("10.7.0.0/16", "10.1.2.1", "10.1.2.3"), ("fd07::/32", "fd00::1", "fd00::3")] {
            let wanted = NewRoute {
                src: Some(ip(src)),
                metric: Some(42),
                table: Some(4242),
                mtu: Some(1300),
                advmss: Some(1200),
                ..NewRoute::new(net(dst), eth0.index).via(ip(gateway))
            };
            container.add_route(&wanted).unwrap();
            let routes = found(&container, 4242, dst);
            assert_eq!(routes.len(), 1);
            let route = &routes[0];
            assert_eq!((route.src, route.metric, route.table), (Some(ip(src)), 42, 4242));
            assert_eq!((route.mtu, route.advmss), (Some(1300), Some(1200)));
            assert_eq!((route.protocol, route.kind, route.scope), (3, 1, scope::UNIVERSE));
            assert_eq!((route.next_hops[0].gateway, route.next_hops[0].oif), (Some(ip(gateway)), eth0.index));
            assert!(found(&container, TABLE_MAIN, dst).is_empty());
            assert_eq!(container.routes().unwrap().iter().filter(|r| r.dst == net(dst)).count(), 1);
            container.delete_route(&wanted).unwrap();
            assert!(found(&container, 4242, dst).is_empty());
            assert!(container.delete_route(&wanted).unwrap_err().is_not_found());
        }
    }

    fn default_routes_and_networks_with_host_bits() {
        let (_host, container, eth0) = container();
        container.add_route(&NewRoute::new(net("0.0.0.0/0"), eth0.index).via(ip("10.1.2.1"))).unwrap();
        container.add_route(&NewRoute::new(net("::/0"), eth0.index).via(ip("fd00::1"))).unwrap();
        container.add_route(&NewRoute::new(net("10.8.9.9/16"), eth0.index)).unwrap();
        for dst in ["0.0.0.0/0", "::/0"] {
            let routes = found(&container, TABLE_MAIN, dst);
            assert!(routes.len() == 1 && routes[0].is_default() && routes[0].is_unicast(), "{routes:?}");
        }
        let on_link = found(&container, TABLE_MAIN, "10.8.0.0/16");
        assert_eq!((on_link[0].scope, on_link[0].next_hops[0].gateway), (scope::LINK, None));
    }

    /// A route without a router makes its destination a neighbour, so the next route can go through it.
    fn router_outside_the_network() {
        let (_host, container, eth0) = container();
        let default = NewRoute::new(net("0.0.0.0/0"), eth0.index).via(ip("169.254.1.1"));
        let error = container.add_route(&default).unwrap_err();
        assert!(error.to_string().starts_with("cannot add route 0.0.0.0/0 via 169.254.1.1"), "{error}");
        container.add_route(&NewRoute { onlink: true, ..default.clone() }).unwrap();
        let route = found(&container, TABLE_MAIN, "0.0.0.0/0").remove(0);
        assert!(route.next_hops[0].onlink);
        container.delete_route(&route.to_new()).unwrap();
        container.add_route(&NewRoute::new(net("169.254.1.1/32"), eth0.index)).unwrap();
        container.add_route(&default).unwrap();
        assert!(!found(&container, TABLE_MAIN, "0.0.0.0/0")[0].next_hops[0].onlink);
    }

    fn exact_duplicates_exist() {
        let (_host, container, eth0) = container();
        for (dst, gateway) in [("10.7.0.0/16", "10.1.2.1"), ("fd07::/32", "fd00::1")] {
            let mut wanted = NewRoute::new(net(dst), eth0.index).via(ip(gateway));
            container.add_route(&wanted).unwrap();
            for conflict in [RouteConflict::Coexist, RouteConflict::Append, RouteConflict::Refuse] {
                wanted.conflict = conflict;
                assert!(container.add_route(&wanted).unwrap_err().is_exists(), "{dst} {conflict:?}");
            }
            wanted.conflict = RouteConflict::Replace;
            container.add_route(&wanted).unwrap();
            assert_eq!(found(&container, TABLE_MAIN, dst).len(), 1);
        }
    }

    fn same_destination_through_two_routers() {
        let (_host, container, eth0) = container();
        for conflict in [RouteConflict::Coexist, RouteConflict::Append] {
            for last in [1, 2] {
                let v4 = NewRoute { conflict, ..NewRoute::new(net("10.7.0.0/16"), eth0.index).via(ip(&format!("10.1.2.{last}"))) };
                let v6 = NewRoute { conflict, ..NewRoute::new(net("fd07::/32"), eth0.index).via(ip(&format!("fd00::{last}"))) };
                container.execute_all(&[v4.request(), v6.request()]).unwrap();
            }
            let v4 = found(&container, TABLE_MAIN, "10.7.0.0/16");
            let routers: Vec<_> = v4.iter().map(|r| r.next_hops[0].gateway.unwrap()).collect();
            let first_wins = [ip("10.1.2.1"), ip("10.1.2.2")];
            let last_wins = [ip("10.1.2.2"), ip("10.1.2.1")];
            assert_eq!(routers, if conflict == RouteConflict::Append { first_wins } else { last_wins });
            let v6 = found(&container, TABLE_MAIN, "fd07::/32");
            let mut routers: Vec<_> = v6.iter().flat_map(|r| &r.next_hops).map(|hop| hop.gateway.unwrap()).collect();
            routers.sort();
            assert_eq!(routers, [ip("fd00::1"), ip("fd00::2")], "{v6:?}");
            assert!(v6.iter().flat_map(|r| &r.next_hops).all(|hop| hop.oif == eth0.index));
            for dst in ["10.7.0.0/16", "fd07::/32"] {
                while !found(&container, TABLE_MAIN, dst).is_empty() {
                    container.delete_route(&NewRoute::new(net(dst), eth0.index)).unwrap();
                }
            }
        }
        let other = NewRoute { conflict: RouteConflict::Refuse, ..NewRoute::new(net("10.7.0.0/16"), eth0.index) };
        container.add_route(&other).unwrap();
        assert!(container.add_route(&other.via(ip("10.1.2.1"))).unwrap_err().is_exists());
    }

    /// IPv4 multipath comes as one route with several ways.
    fn multipath_is_decoded() {
        let (_host, container, eth0) = container();
        let status = container
            .inside(|| {
                std::process::Command::new("ip")
                    .args(["route", "add", "10.7.0.0/16", "nexthop", "via", "10.1.2.1", "nexthop", "via", "10.1.2.2"])
                    .status()
                    .expect("this test needs ip(8) from iproute2")
            })
            .unwrap();
        assert!(status.success());
        let route = found(&container, TABLE_MAIN, "10.7.0.0/16").remove(0);
        let ways: Vec<_> = route.next_hops.iter().map(|hop| (hop.gateway.unwrap(), hop.oif)).collect();
        assert_eq!(ways, [(ip("10.1.2.1"), eth0.index), (ip("10.1.2.2"), eth0.index)]);
    }

    fn other_kinds_of_routes_lead_nowhere() {
        let (_host, container, _eth0) = container();
        let status = container
            .inside(|| {
                std::process::Command::new("ip")
                    .args(["route", "add", "unreachable", "default"])
                    .status()
                    .expect("this test needs ip(8) from iproute2")
            })
            .unwrap();
        assert!(status.success());
        let route = found(&container, TABLE_MAIN, "0.0.0.0/0").remove(0);
        assert!(!route.is_unicast() && route.next_hops.is_empty());
    }

    fn way_to_an_address() {
        let (_host, container, eth0) = container();
        let lo = container.link("lo").unwrap();
        container.set_up(&lo).unwrap();
        assert!(container.way_to(ip("192.0.2.1")).unwrap_err().to_string().starts_with("cannot find the way to 192.0.2.1: network is unreachable"));
        container.add_route(&NewRoute::new(net("0.0.0.0/0"), eth0.index).via(ip("10.1.2.1"))).unwrap();
        let way = container.way_to(ip("192.0.2.1")).unwrap();
        assert_eq!((way.oif, way.gateway, way.src, way.local), (eth0.index, Some(ip("10.1.2.1")), Some(ip("10.1.2.3")), false));
        let way = container.way_to(ip("fd00::77")).unwrap();
        assert_eq!((way.oif, way.gateway, way.src), (eth0.index, None, Some(ip("fd00::3"))));
        for own in ["10.1.2.3", "fd00::3"] {
            let way = container.way_to(ip(own)).unwrap();
            assert!(way.local && way.oif == lo.index, "{way:?}");
        }
    }

    fn table_nobody_made_is_empty() {
        let (_host, container, _eth0) = container();
        assert!(container.routes_in(777, false).unwrap().is_empty());
        assert!(container.routes_in(777, true).unwrap().is_empty());
        assert!(!container.routes().unwrap().is_empty());
    }
}
