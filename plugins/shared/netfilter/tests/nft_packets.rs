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
use netfilter::{ApplyOptions, Backend, Hints, Kinds, Netfilter, Policy, Protocol, Snat};

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

#[test]
fn only_the_named_host_address_is_published() {
    isolated("only_the_named_host_address_is_published", || {
        world();
        serve("c1", 80);
        serve("c2", 80);
        apply(
            "one",
            &[publish_at(HOST4, Protocol::Tcp, 8080, "10.77.0.2/24", 80)],
        );
        apply(
            "two",
            &[publish_at(
                HOST4_SECOND,
                Protocol::Tcp,
                8080,
                "10.77.0.3/24",
                80,
            )],
        );
        apply(
            "three",
            &[publish_at(
                [127, 0, 0, 1],
                Protocol::Tcp,
                8090,
                "10.77.0.2/24",
                80,
            )],
        );
        sysctl("net.ipv4.conf.br0.route_localnet", "1");
        assert_eq!(tcp("client", HOST4, 8080), some(CLIENT4));
        assert_eq!(tcp("client", HOST4_SECOND, 8080), some(CLIENT4));
        assert_eq!(tcp("", GATEWAY4, 8080), None);
        assert_eq!(tcp("client", HOST4, 8090), None);
        assert_eq!(tcp("", [127, 0, 0, 1], 8090), some(GATEWAY4));
        remove("one", Kinds::PUBLISH);
        assert_eq!(tcp("client", HOST4, 8080), None);
        assert_eq!(tcp("client", HOST4_SECOND, 8080), some(CLIENT4));
    });
}

#[test]
fn unspecified_host_address_means_all_of_its_family() {
    isolated("unspecified_host_address_means_all_of_its_family", || {
        world();
        serve("c1", 80);
        let any4 = IpAddr::from([0, 0, 0, 0]);
        let to = ["10.77.0.2/24", "fd00:77::2/64"];
        apply(
            "one",
            &to.map(|to| publish_at(any4, Protocol::Tcp, 8080, to, 80)),
        );
        assert_eq!(tcp("client", HOST4, 8080), some(CLIENT4));
        assert_eq!(tcp("client", HOST6, 8080), None);
    });
}

#[test]
fn passing_traffic_is_not_hijacked() {
    isolated("passing_traffic_is_not_hijacked", || {
        world();
        neighbour(
            "far",
            "far0",
            &["198.51.100.9/24", "fd00:51::9/64"],
            "198.51.100.1",
            "fd00:51::1",
        );
        run("ip addr add 198.51.100.1/24 dev far0");
        run("ip addr add fd00:51::1/64 dev far0 nodad");
        serve("far", 8080);
        serve("c1", 80);
        apply(
            "one",
            &["10.77.0.2/24", "fd00:77::2/64"].map(|to| publish(Protocol::Tcp, 8080, to, 80)),
        );
        serve("c2", 8081);
        let far4 = IpAddr::from([198, 51, 100, 9]);
        let far6: IpAddr = "fd00:51::9".parse().unwrap();
        assert_eq!(tcp("client", HOST4, 8080), some(CLIENT4));
        remove("one", Kinds::PUBLISH);
        // Nobody answers on port 80 of the container's new forward: a hijacked connection would fail.
        apply(
            "one",
            &["10.77.0.2/24", "fd00:77::2/64"].map(|to| publish(Protocol::Tcp, 8080, to, 81)),
        );
        for namespace in ["client", "c2", ""] {
            assert!(
                tcp(namespace, far4, 8080).is_some(),
                "{namespace:?} to a host beyond us"
            );
            assert!(
                tcp(namespace, far6, 8080).is_some(),
                "{namespace:?} to a host beyond us"
            );
        }
    });
}

#[test]
fn snat_follows_the_configuration() {
    isolated("snat_follows_the_configuration", || {
        world();
        serve("c1", 80);
        let with = |snat| {
            ["10.77.0.2/24", "fd00:77::2/64"].map(|to| match publish(Protocol::Tcp, 8080, to, 80) {
                netfilter::Intent::Publish {
                    host_ip,
                    host_port,
                    protocol,
                    to,
                    to_port,
                    conditions,
                    mark,
                    ..
                } => netfilter::Intent::Publish {
                    host_ip,
                    host_port,
                    protocol,
                    to,
                    to_port,
                    snat,
                    conditions,
                    mark,
                },
                other => other,
            })
        };
        apply("one", &with(Snat::All));
        assert_eq!(tcp("client", HOST4, 8080), some(GATEWAY4));
        assert_eq!(tcp("client", HOST6, 8080), some(GATEWAY6));
        assert_eq!(tcp("c2", HOST4, 8080), some(GATEWAY4));
        apply("one", &with(Snat::None));
        assert_eq!(tcp("client", HOST4, 8080), some(CLIENT4));
        assert_eq!(tcp("client", HOST6, 8080), some(CLIENT6));
        assert_eq!(
            tcp("c2", HOST4, 8080),
            None,
            "answers would bypass the host"
        );
    });
}

#[test]
fn published_connections_pass_a_dropping_forward_chain_and_only_they() {
    isolated(
        "published_connections_pass_a_dropping_forward_chain_and_only_they",
        || {
            world();
            serve("c1", 80);
            serve("c2", 80);
            run("ip -n client route add 10.77.0.0/24 via 192.0.2.1");
            // What iptables' FORWARD chain looks like with policy DROP and our static rule in it; the third rule is a
            // foreign forward, which must not profit.
            nft("table ip filter { chain FORWARD { type filter hook forward priority 0; policy drop;
                ct state established,related accept
                ct status dnat ct mark & 0x20000000 == 0x20000000 accept
             }
             }
             table ip foreign { chain prerouting { type nat hook prerouting priority -90;
                tcp dport 9090 dnat to 10.77.0.3:80
             }
             }");
            assert_eq!(tcp("client", HOST4, 8080), None);
            apply(
                "one",
                &[
                    publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80),
                    publish(Protocol::Udp, 8080, "10.77.0.2/24", 80),
                ],
            );
            assert_eq!(tcp("client", HOST4, 8080), some(CLIENT4));
            assert_eq!(udp("client", HOST4, 8080), some(CLIENT4));
            assert_eq!(tcp("client", C1, 80), None, "unpublished ways stay shut");
            assert_eq!(
                tcp("client", HOST4, 9090),
                None,
                "others' forwards are theirs"
            );
        },
    );
}

#[test]
fn other_tables_may_come_and_go() {
    isolated("other_tables_may_come_and_go", || {
        world();
        serve("c1", 80);
        serve("client", 80);
        let foreign = "table ip nat { set s { type ipv4_addr; }
            chain POSTROUTING { type nat hook postrouting priority srcnat; policy accept;
                ip saddr @s masquerade
            }
            }";
        nft(foreign);
        let before = run("nft list table ip nat");
        apply(
            "one",
            &[
                publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80),
                masquerade("10.77.0.2/24"),
            ],
        );
        assert_eq!(run("nft list table ip nat"), before);
        assert_eq!(tcp("client", HOST4, 8080), some(CLIENT4));
        run("nft delete table ip nat");
        // What a reload of an iptables firewall does.
        for table in ["filter", "nat"] {
            run(&format!("iptables-nft -t {table} -A OUTPUT -j ACCEPT"));
            run(&format!("iptables-nft -t {table} -F"));
            run(&format!("iptables-nft -t {table} -X"));
        }
        assert_eq!(tcp("client", HOST4, 8080), some(CLIENT4));
        assert_eq!(tcp("c1", CLIENT4, 80), some(HOST4));
    });
}

#[test]
fn loopback_services_stay_the_hosts_own() {
    isolated("loopback_services_stay_the_hosts_own", || {
        world();
        serve("", 6379);
        serve("c1", 80);
        sysctl("net.ipv4.conf.br0.route_localnet", "1");
        // An attacker with NET_ADMIN in the container.
        run("ip -n c1 addr del 127.0.0.1/8 dev lo");
        run("ip -n c1 route add 127.0.0.1 via 10.77.0.1");
        inside("c1", || sysctl("net.ipv4.conf.all.route_localnet", "1"));
        let loopback = IpAddr::from([127, 0, 0, 1]);
        assert!(
            tcp("c1", loopback, 6379).is_some(),
            "the hole is there without the guard"
        );
        Netfilter::open().unwrap().guard_localnet().unwrap();
        Netfilter::open().unwrap().guard_localnet().unwrap();
        assert_eq!(tcp("c1", loopback, 6379), None);
        assert!(
            tcp("", loopback, 6379).is_some(),
            "the host itself still gets there"
        );
        apply("one", &[publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80)]);
        assert_eq!(
            tcp("", loopback, 8080),
            some(GATEWAY4),
            "and so do forwards from loopback addresses"
        );
    });
}

#[test]
fn policed_bridges_do_not_reach_each_other() {
    isolated("policed_bridges_do_not_reach_each_other", || {
        world();
        run("ip link add br1 type bridge forward_delay 0");
        run("ip addr add 10.78.0.1/24 dev br1");
        run("ip addr add fd00:78::1/64 dev br1 nodad");
        run("ip link set br1 up");
        neighbour(
            "c3",
            "portc3",
            &["10.78.0.2/24", "fd00:78::2/64"],
            "10.78.0.1",
            "fd00:78::1",
        );
        run("ip link set portc3 master br1");
        for namespace in ["c1", "c2", "c3", "client"] {
            serve(namespace, 80);
        }
        run("ip -n client route add 10.0.0.0/8 via 192.0.2.1");
        let c3 = IpAddr::from([10, 78, 0, 2]);
        let c3_6: IpAddr = "fd00:78::2".parse().unwrap();
        let confine = |bridge: &str, port: &str, policy| netfilter::Intent::Confine {
            bridge: bridge.into(),
            port: Some(port.into()),
            policy,
        };
        apply("one", &[confine("br0", "portc1", Policy::SameBridge)]);
        assert_eq!(
            tcp("c1", c3, 80),
            some(C1),
            "only one of the two bridges is policed"
        );
        apply("three", &[confine("br1", "portc3", Policy::SameBridge)]);
        assert_eq!(tcp("c1", c3, 80), None);
        assert_eq!(tcp("c1", c3_6, 80), None);
        assert_eq!(tcp("c3", C1, 80), None);
        assert_eq!(tcp("c1", C2, 80), some(C1), "the own bridge is open");
        assert_eq!(
            tcp("client", C1, 80),
            some(CLIENT4),
            "the rest of the world too"
        );
        assert_eq!(tcp("c1", CLIENT4, 80), some(C1));
        apply("one", &[confine("br0", "portc1", Policy::Isolated)]);
        apply("two", &[confine("br0", "portc2", Policy::Isolated)]);
        for bridge_nf in ["0", "1"] {
            sysctl("net.bridge.bridge-nf-call-iptables", bridge_nf);
            assert_eq!(tcp("c1", C2, 80), None, "bridge-nf {bridge_nf}");
            assert_eq!(tcp("c1", C2_6, 80), None, "bridge-nf {bridge_nf}");
            assert_eq!(tcp("c1", c3, 80), None);
            assert_eq!(tcp("c1", CLIENT4, 80), some(C1));
        }
        for id in ["one", "two", "three"] {
            remove(id, Kinds::CONFINE);
        }
        assert_eq!(tcp("c1", C2, 80), some(C1));
        assert_eq!(tcp("c1", c3, 80), some(C1));
    });
}

#[test]
fn frames_with_a_false_source_are_dropped() {
    isolated("frames_with_a_false_source_are_dropped", || {
        world();
        serve("c2", 80);
        run("ip -n c1 link set eth0 address 02:00:00:00:00:02");
        apply(
            "one",
            &[netfilter::Intent::GuardMac {
                port: "portc1".into(),
                mac: [2, 0, 0, 0, 0, 2],
            }],
        );
        assert_eq!(tcp("c1", C2, 80), some(C1));
        run("ip -n c1 link set eth0 address 02:00:00:00:00:99");
        assert_eq!(tcp("c1", C2, 80), None);
        remove("one", Kinds::GUARD_MAC);
        for namespace in ["c1", "c2"] {
            run(&format!("ip -n {namespace} neigh flush all"));
        }
        assert_eq!(tcp("c1", C2, 80), some(C1));
    });
}

#[test]
fn ports_are_published_under_conditions() {
    isolated("ports_are_published_under_conditions", || {
        world();
        serve("c1", 80);
        run("ip -n client addr add 192.0.2.10/24 dev eth0");
        let under = |conditions: &str, host_ip, to: &str| netfilter::Intent::Publish {
            host_ip,
            host_port: 8080,
            protocol: Protocol::Tcp,
            to: to.parse().unwrap(),
            to_port: 80,
            snat: Snat::Hairpin,
            conditions: conditions.split(' ').map(str::to_owned).collect(),
            mark: netfilter::MarkStyle::default(),
        };
        let v4 = "10.77.0.2/24";
        apply("one", &[under("ip saddr != 192.0.2.9", None, v4)]);
        assert_eq!(tcp("client", HOST4, 8080), None);
        assert_eq!(tcp("c2", HOST4, 8080), some(GATEWAY4));
        apply(
            "one",
            &[under("ip saddr 192.0.2.0/28 iifname up*", None, v4)],
        );
        assert_eq!(tcp("client", HOST4, 8080), some(CLIENT4));
        assert_eq!(tcp("c2", HOST4, 8080), None);
        apply(
            "one",
            &[under("iifname != br0", Some(HOST4_SECOND.into()), v4)],
        );
        assert_eq!(tcp("client", HOST4, 8080), None);
        assert_eq!(tcp("client", HOST4_SECOND, 8080), some(CLIENT4));
        let mut netfilter = Netfilter::open().unwrap();
        let clash = [publish(Protocol::Tcp, 8080, "10.77.0.3/24", 80)];
        let taken = netfilter.apply(
            Backend::Nftables,
            &owner("two"),
            &clash,
            &ApplyOptions::default(),
        );
        assert!(
            matches!(taken, Err(netfilter::Error::PortTaken { .. })),
            "{taken:?}"
        );
        let six = "fd00:77::2/64";
        apply("one", &[under("ip6 daddr fd00:2::/64", None, six)]);
        assert_eq!(tcp("client", HOST6, 8080), some(CLIENT6));
        assert_eq!(tcp("c2", GATEWAY6, 8080), None);
        let printed = ruleset();
        nft("flush ruleset");
        nft(&printed);
        assert_eq!(ruleset(), printed);
        remove("one", Kinds::PUBLISH);
        assert!(
            !ruleset().contains("elements") && !ruleset().contains("when-"),
            "{}",
            ruleset()
        );
    });
}

#[test]
fn an_operator_can_make_it_a_firewall() {
    isolated("an_operator_can_make_it_a_firewall", || {
        world();
        for namespace in ["client", "c1", "c2"] {
            serve(namespace, 80);
        }
        run("ip -n client route add 10.77.0.0/24 via 192.0.2.1");
        let intents = [
            netfilter::Intent::Admit {
                address: C1.into(),
                admin_chain: "CNI-ADMIN".into(),
                zone: None,
            },
            publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80),
        ];
        apply("one", &intents);
        nft("chain inet ferrule forward { policy drop; }");
        assert_eq!(
            tcp("c1", CLIENT4, 80),
            some(C1),
            "an admitted container gets out"
        );
        assert_eq!(
            tcp("client", HOST4, 8080),
            some(CLIENT4),
            "its published port can be reached"
        );
        assert_eq!(tcp("client", C1, 80), None, "nothing else of it");
        assert_eq!(tcp("c2", CLIENT4, 80), None, "others stay inside");
        nft(
            "add rule inet ferrule admin ip saddr 10.77.0.3 accept\n add rule inet ferrule admin ct state established accept",
        );
        assert_eq!(
            tcp("c2", CLIENT4, 80),
            some(C2),
            "but for the operator's exceptions"
        );
        // Writing the fixed part again keeps both.
        run("nft flush chain inet ferrule layout-1");
        apply("one", &intents);
        assert_eq!(tcp("client", C1, 80), None);
        assert_eq!(tcp("c2", CLIENT4, 80), some(C2));
    });
}
