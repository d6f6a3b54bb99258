//! What the nftables backend does to real packets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::net::IpAddr;

use common::*;
use netfilter::{ApplyOptions, Backend, Hints, Kinds, Netfilter, Protocol};

fn apply(id: &str, intents: &[netfilter::Intent]) {
    let mut netfilter = Netfilter::open().unwrap();
    netfilter
        .apply(
            Backend::Nftables,
            &owner(id),
            intents,
            &ApplyOptions::default(),
        )
        .unwrap();
}

fn remove(id: &str, kinds: Kinds) {
    Netfilter::open()
        .unwrap()
        .remove(&owner(id), kinds, &Hints::default())
        .unwrap();
}

fn some(address: impl Into<IpAddr>) -> Option<IpAddr> {
    Some(address.into())
}

#[test]
fn masquerade_hides_the_container_only_outside_its_subnet() {
    isolated(
        "masquerade_hides_the_container_only_outside_its_subnet",
        || {
            world();
            run("ip -n client route add 10.77.0.0/24 via 192.0.2.1");
            run("ip -n client route add fd00:77::/64 via fd00:2::1");
            serve("client", 80);
            serve("c2", 80);
            serve("", 80);
            assert_eq!(tcp("c1", CLIENT4, 80), some(C1));
            apply(
                "one",
                &[masquerade("10.77.0.2/24"), masquerade("fd00:77::2/64")],
            );
            assert_eq!(tcp("c1", CLIENT4, 80), some(HOST4));
            assert_eq!(udp("c1", CLIENT4, 80), some(HOST4));
            assert_eq!(tcp("c1", CLIENT6, 80), some(HOST6));
            assert_eq!(tcp("c1", C2, 80), some(C1));
            assert_eq!(tcp("c1", C2_6, 80), some(C1_6));
            assert_eq!(tcp("c1", GATEWAY4, 80), some(C1));
            assert_eq!(
                tcp("c2", CLIENT4, 80),
                some(C2),
                "another container's traffic is not ours"
            );
            remove("one", Kinds::MASQUERADE);
            assert_eq!(tcp("c1", CLIENT4, 80), some(C1));
        },
    );
}

#[test]
fn published_port_is_reached_from_everywhere() {
    isolated("published_port_is_reached_from_everywhere", || {
        world();
        serve("c1", 80);
        let both = [Protocol::Tcp, Protocol::Udp];
        let intents: Vec<_> = both
            .iter()
            .flat_map(|p| {
                [
                    publish(*p, 8080, "10.77.0.2/24", 80),
                    publish(*p, 8080, "fd00:77::2/64", 80),
                ]
            })
            .collect();
        apply("one", &intents);
        sysctl("net.ipv4.conf.br0.route_localnet", "1");
        run("ip link set portc1 type bridge_slave hairpin on");
        for bridge_nf in ["0", "1"] {
            sysctl("net.bridge.bridge-nf-call-iptables", bridge_nf);
            sysctl("net.bridge.bridge-nf-call-ip6tables", bridge_nf);
            for ask in [
                |n: &str, a: IpAddr, p| tcp(n, a, p),
                |n: &str, a: IpAddr, p| udp(n, a, p),
            ] {
                assert_eq!(
                    ask("client", HOST4.into(), 8080),
                    some(CLIENT4),
                    "source kept, bridge-nf {bridge_nf}"
                );
                assert_eq!(ask("client", HOST6.into(), 8080), some(CLIENT6));
                assert_eq!(ask("", HOST4.into(), 8080), some(HOST4), "own address");
                assert_eq!(
                    ask("", [127, 0, 0, 1].into(), 8080),
                    some(GATEWAY4),
                    "loopback"
                );
                assert_eq!(
                    ask("", [127, 9, 9, 9].into(), 8080),
                    some(GATEWAY4),
                    "loopback"
                );
                assert_eq!(ask("", HOST6.into(), 8080), some(HOST6));
                assert_eq!(
                    ask("c2", HOST4.into(), 8080),
                    some(GATEWAY4),
                    "neighbour, bridge-nf {bridge_nf}"
                );
                assert_eq!(
                    ask("c2", HOST6.into(), 8080),
                    some(GATEWAY6),
                    "neighbour, bridge-nf {bridge_nf}"
                );
                assert_eq!(
                    ask("c1", HOST4.into(), 8080),
                    some(GATEWAY4),
                    "itself, bridge-nf {bridge_nf}"
                );
                assert_eq!(
                    ask("c1", HOST6.into(), 8080),
                    some(GATEWAY6),
                    "itself, bridge-nf {bridge_nf}"
                );
            }
        }
        remove("one", Kinds::PUBLISH);
        assert_eq!(tcp("client", HOST4, 8080), None);
        assert_eq!(tcp("client", HOST6, 8080), None);
    });
}
