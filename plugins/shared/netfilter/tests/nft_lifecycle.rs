//! What the nftables backend leaves behind, and for whom.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use common::*;
use netfilter::{
    ApplyOptions, Backend, Error, Hints, Intent, Kinds, MarkStyle, Netfilter, Owner, Policy,
    Protocol, PublishedPort, Snat,
};

fn netfilter() -> Netfilter {
    Netfilter::open().unwrap()
}

fn apply(owner: &Owner, intents: &[Intent]) -> Result<(), Error> {
    netfilter().apply(Backend::Nftables, owner, intents, &ApplyOptions::default())
}

fn apply_where(owner: &Owner, intents: &[Intent], alive: bool) -> Result<(), Error> {
    let options = ApplyOptions {
        alive: &|_, _| alive,
        ..ApplyOptions::default()
    };
    netfilter().apply(Backend::Nftables, owner, intents, &options)
}

fn remove(owner: &Owner, kinds: Kinds) {
    netfilter().remove(owner, kinds, &Hints::default()).unwrap();
}

fn verify(owner: &Owner, intents: &[Intent]) -> Result<(), Error> {
    netfilter().verify(Backend::Nftables, owner, intents)
}

/// One of everything.
fn everything(number: u8) -> Vec<Intent> {
    let (v4, v6) = (
        format!("10.77.0.{number}/24"),
        format!("fd00:77::{number}/64"),
    );
    let port = 8000 + u16::from(number);
    let admit = |address: IpAddr| Intent::Admit {
        address,
        admin_chain: "CNI-ADMIN".into(),
        zone: None,
    };
    vec![
        masquerade(&v4),
        masquerade(&v6),
        publish(Protocol::Tcp, port, &v4, 80),
        publish(Protocol::Udp, port, &v4, 80),
        publish(Protocol::Sctp, port, &v6, 80),
        publish_at(HOST4, Protocol::Tcp, 9000 + u16::from(number), &v4, 81),
        admit(v4.parse::<ipnetwork::IpNetwork>().unwrap().ip()),
        admit(v6.parse::<ipnetwork::IpNetwork>().unwrap().ip()),
        Intent::Confine {
            bridge: "br0".into(),
            port: Some(format!("port{number}")),
            policy: Policy::Isolated,
        },
        Intent::GuardMac {
            port: format!("port{number}"),
            mac: [2, 0, 0, 0, 0, number],
        },
    ]
}

#[test]
fn nothing_of_an_owner_stays() {
    isolated("nothing_of_an_owner_stays", || {
        let (one, two) = (owner("one"), owner("two"));
        apply(&one, &everything(2)).unwrap();
        remove(&one, Kinds::ALL);
        let empty = ruleset();
        assert!(
            !empty.contains("elements") && !empty.contains("masq-") && !empty.contains("isolate-"),
            "{empty}"
        );
        apply(&one, &everything(2)).unwrap();
        let with_one = ruleset();
        apply(&two, &everything(3)).unwrap();
        verify(&one, &everything(2)).unwrap();
        verify(&two, &everything(3)).unwrap();
        remove(&two, Kinds::ALL);
        assert_eq!(ruleset(), with_one);
        remove(&two, Kinds::ALL);
        assert_eq!(ruleset(), with_one, "repeating it changes nothing");
        remove(&one, Kinds::ALL);
        assert_eq!(ruleset(), empty);
    });
}

#[test]
fn a_removal_finds_the_chains_that_one_before_it_left_idle() {
    isolated(
        "a_removal_finds_the_chains_that_one_before_it_left_idle",
        || {
            let (one, two) = (owner("one"), owner("two"));
            apply(&one, &everything(2)).unwrap();
            let before = ruleset();
            let idle = "add chain inet ferrule idle; add rule inet ferrule idle counter";
            for collects in [false, true] {
                nft(idle);
                assert_ne!(ruleset(), before);
                if collects {
                    netfilter()
                        .collect(&one.network, std::slice::from_ref(&one), Kinds::MASQUERADE)
                        .unwrap();
                } else {
                    remove(&two, Kinds::MASQUERADE);
                }
                assert_eq!(ruleset(), before);
            }
            verify(&one, &everything(2)).unwrap();
        },
    );
}

#[test]
fn owners_of_every_length_fit() {
    isolated("owners_of_every_length_fit", || {
        for length in 1..=100 {
            let one = owner(&"x".repeat(length));
            let outcome = apply(&one, &everything(2));
            assert!(outcome.is_ok(), "an id of {length} bytes: {outcome:?}");
            remove(&one, Kinds::ALL);
        }
        let left = ruleset();
        assert!(!left.contains("elements"), "{left}");
    });
}

#[test]
fn kinds_are_removed_one_by_one() {
    isolated("kinds_are_removed_one_by_one", || {
        let one = owner("one");
        let of = |kinds: Kinds| {
            everything(2)
                .into_iter()
                .filter(move |intent| kinds.contains(intent.kind()))
                .collect::<Vec<_>>()
        };
        for kind in Kinds::ALL.iter() {
            apply(&one, &of(kind)).unwrap();
        }
        let mut left: Vec<_> = Kinds::ALL.iter().collect();
        while let Some(kind) = left.pop() {
            remove(&one, kind);
            assert!(
                matches!(verify(&one, &of(kind)), Err(Error::Missing { .. })),
                "{kind}"
            );
            for kind in &left {
                verify(&one, &of(*kind)).unwrap();
            }
        }
    });
}

#[test]
fn applying_again_replaces() {
    isolated("applying_again_replaces", || {
        let one = owner("one");
        apply(&one, &everything(2)).unwrap();
        let first = ruleset();
        apply(&one, &everything(2)).unwrap();
        assert_eq!(ruleset(), first);
        let moved = [
            publish(Protocol::Tcp, 8002, "10.77.0.9/24", 80),
            publish(Protocol::Tcp, 8003, "10.77.0.9/24", 80),
        ];
        apply(&one, &moved).unwrap();
        verify(&one, &moved).unwrap();
        assert!(
            !ruleset().contains("10.77.0.2 . 80"),
            "the old forward is gone: {}",
            ruleset()
        );
        assert!(
            ruleset().contains("10.77.0.2 comment"),
            "other kinds stay: {}",
            ruleset()
        );
        remove(&one, Kinds::ALL);
        assert!(!ruleset().contains("elements"));
    });
}

#[test]
fn many_ports_fit() {
    isolated("many_ports_fit", || {
        let long = Owner {
            network: "n".repeat(60),
            container_id: "c".repeat(200),
            ifname: "eth0".into(),
        };
        let ports: Vec<_> = (1..=100)
            .flat_map(|port| {
                [
                    publish(Protocol::Tcp, port, "10.77.0.2/24", port),
                    publish(Protocol::Udp, port, "fd00:77::2/64", port),
                ]
            })
            .collect();
        apply(&long, &ports).unwrap();
        verify(&long, &ports).unwrap();
        assert!(
            Netfilter::open()
                .unwrap()
                .verify(Backend::Nftables, &owner("one"), &ports)
                .is_err()
        );
        remove(&long, Kinds::PUBLISH);
        assert!(!ruleset().contains("elements"), "{}", ruleset());
    });
}

#[test]
fn live_ports_are_refused_and_dead_ones_taken_over() {
    isolated("live_ports_are_refused_and_dead_ones_taken_over", || {
        let (one, two) = (owner("one"), owner("two"));
        let tcp = |port, to| publish(Protocol::Tcp, port, to, 80);
        let at = |host: Ipv4Addr, to| publish_at(host, Protocol::Tcp, 8080, to, 80);
        apply(
            &one,
            &[tcp(8080, "10.77.0.2/24"), tcp(8081, "10.77.0.2/24")],
        )
        .unwrap();
        let before = ruleset();
        let mut clashing = everything(3);
        clashing.push(tcp(8080, "10.77.0.3/24"));
        match apply_where(&two, &clashing, true) {
            Err(Error::PortTaken {
                port: 8080,
                protocol: Protocol::Tcp,
                host_ip: None,
                holder,
            }) => {
                assert!(holder.is(&one));
                assert_eq!(holder.container_id, "one");
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            apply_where(&two, &[at(HOST4, "10.77.0.3/24")], true),
            Err(Error::PortTaken { .. })
        ));
        assert_eq!(ruleset(), before, "a refused request leaves nothing");
        // Another protocol, family or port is no conflict.
        apply_where(
            &two,
            &[
                publish(Protocol::Udp, 8080, "10.77.0.3/24", 80),
                tcp(8080, "fd00:77::3/64"),
            ],
            true,
        )
        .unwrap();
        remove(&two, Kinds::PUBLISH);
        // Our own earlier claim is none either.
        apply_where(&one, &[at(HOST4, "10.77.0.2/24")], true).unwrap();
        apply_where(&two, &[at(HOST4_SECOND, "10.77.0.3/24")], true).unwrap();
        let all = [tcp(8080, "10.77.0.4/24")];
        assert!(
            matches!(
                apply_where(&owner("three"), &all, true),
                Err(Error::PortTaken { .. })
            ),
            "overlaps two addresses"
        );
        apply_where(&owner("three"), &all, false).unwrap();
        verify(&owner("three"), &all).unwrap();
        let now = ruleset();
        assert!(
            !now.contains("10.77.0.2") && !now.contains("10.77.0.3"),
            "the dead have nothing: {now}"
        );
        // The late removal of the dead does not touch the new holder.
        remove(&one, Kinds::PUBLISH);
        remove(&two, Kinds::PUBLISH);
        assert_eq!(ruleset(), now);
    });
}

#[test]
fn one_request_cannot_publish_a_port_twice() {
    isolated("one_request_cannot_publish_a_port_twice", || {
        let one = owner("one");
        let twice = [
            publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80),
            publish(Protocol::Tcp, 8080, "10.77.0.2/24", 81),
        ];
        assert!(matches!(
            apply(&one, &twice),
            Err(Error::PortRepeated {
                port: 8080,
                protocol: Protocol::Tcp
            })
        ));
        let over = [
            publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80),
            publish_at(HOST4, Protocol::Tcp, 8080, "10.77.0.2/24", 81),
        ];
        assert!(matches!(
            apply(&one, &over),
            Err(Error::PortRepeated { .. })
        ));
        assert_eq!(ruleset(), "");
        let same = [
            publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80),
            publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80),
        ];
        apply(&one, &same).unwrap();
        let two_ports = [
            publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80),
            publish(Protocol::Tcp, 8081, "10.77.0.2/24", 80),
        ];
        apply(&one, &two_ports).unwrap();
        verify(&one, &two_ports).unwrap();
    });
}

#[test]
fn an_address_that_changed_hands_is_taken_over() {
    isolated("an_address_that_changed_hands_is_taken_over", || {
        let (one, two) = (owner("one"), owner("two"));
        apply(
            &one,
            &[masquerade("10.77.0.2/24"), masquerade("fd00:77::2/64")],
        )
        .unwrap();
        apply(&two, &[masquerade("10.77.0.2/24")]).unwrap();
        verify(&two, &[masquerade("10.77.0.2/24")]).unwrap();
        verify(&one, &[masquerade("fd00:77::2/64")]).unwrap();
        assert!(verify(&one, &[masquerade("10.77.0.2/24")]).is_err());
        remove(&one, Kinds::MASQUERADE);
        verify(&two, &[masquerade("10.77.0.2/24")]).unwrap();
        remove(&two, Kinds::MASQUERADE);
        assert!(!ruleset().contains("elements"));
    });
}

#[test]
fn collecting_frees_exactly_what_is_not_listed() {
    isolated("collecting_frees_exactly_what_is_not_listed", || {
        let (one, two) = (owner("one"), owner("two"));
        let other = Owner {
            network: "net2".into(),
            ..owner("one")
        };
        apply(&one, &everything(2)).unwrap();
        apply(&other, &everything(4)).unwrap();
        let without_two = ruleset();
        apply(&two, &everything(3)).unwrap();
        netfilter()
            .collect("net1", &[one.clone(), two.clone()], Kinds::ALL)
            .unwrap();
        verify(&two, &everything(3)).unwrap();
        netfilter()
            .collect("net1", std::slice::from_ref(&one), Kinds::ALL)
            .unwrap();
        assert_eq!(ruleset(), without_two);
        // An element that lost its record is found too.
        run("nft flush set inet ferrule owners");
        netfilter().collect("net1", &[], Kinds::ALL).unwrap();
        let left = ruleset();
        assert!(
            !left.contains("net: net1") && left.contains("net: net2"),
            "{left}"
        );
    });
}

#[test]
fn a_lost_record_is_noticed_mended_and_done_without() {
    isolated("a_lost_record_is_noticed_mended_and_done_without", || {
        let (one, two) = (owner("one"), owner("two"));
        let intents = everything(2);
        apply(&two, &everything(3)).unwrap();
        let without_one = ruleset();
        apply(&one, &intents).unwrap();
        let lose = || {
            run("nft flush set inet ferrule owners");
            apply(&two, &everything(3)).unwrap();
        };
        lose();
        let found = verify(&one, &intents);
        assert!(matches!(found, Err(Error::Missing { .. })), "{found:?}");
        apply(&one, &intents).unwrap();
        verify(&one, &intents).unwrap();
        lose();
        let hints = Hints {
            addresses: vec!["10.77.0.2".parse().unwrap(), "fd00:77::2".parse().unwrap()],
            ports: vec![PublishedPort {
                host_ip: None,
                host_port: 8002,
                protocol: Protocol::Tcp,
            }],
            ..Hints::default()
        };
        netfilter().remove(&one, Kinds::ALL, &hints).unwrap();
        assert_eq!(ruleset(), without_one);
    });
}

#[test]
fn losses_are_noticed_and_mended() {
    isolated("losses_are_noticed_and_mended", || {
        let one = owner("one");
        let intents = everything(2);
        apply(&one, &intents).unwrap();
        let whole = ruleset();
        for loss in [
            "delete element inet ferrule masquerade4 { 10.77.0.2 }",
            "delete element inet ferrule hairpin4 { tcp . 80 . 10.77.0.2 }",
            "flush chain inet ferrule publish",
            "flush chain inet ferrule masq-10.77.0.0/24",
            "flush table inet ferrule",
            "flush chain bridge ferrule prerouting",
            "delete table inet ferrule",
            "delete table bridge ferrule",
            "flush ruleset",
            "add rule inet ferrule forward drop",
        ] {
            nft(loss);
            let found = verify(&one, &intents);
            assert!(found.is_err(), "{loss} is noticed");
            apply(&one, &intents).unwrap();
            verify(&one, &intents).unwrap_or_else(|error| panic!("{loss} is mended: {error}"));
        }
        assert_eq!(
            whole.lines().collect::<BTreeSet<_>>(),
            ruleset().lines().collect::<BTreeSet<_>>()
        );
    });
}

#[test]
fn the_ruleset_can_be_printed_and_loaded_again() {
    isolated("the_ruleset_can_be_printed_and_loaded_again", || {
        let one = owner("one");
        let mut intents = everything(2);
        intents.push(Intent::Masquerade {
            source: "10.78.0.2/20".parse().unwrap(),
            except: vec![
                "10.0.0.0/8".parse().unwrap(),
                "172.16.0.0/12".parse().unwrap(),
            ],
        });
        intents.push(Intent::Publish {
            host_ip: None,
            host_port: 443,
            protocol: Protocol::Tcp,
            to: "10.77.0.2/24".parse().unwrap(),
            to_port: 443,
            snat: Snat::All,
            conditions: Vec::new(),
            mark: MarkStyle::default(),
        });
        apply(&owner("two"), &everything(3)).unwrap();
        apply(&one, &intents).unwrap();
        let printed = ruleset();
        nft("flush ruleset");
        nft(&printed);
        assert_eq!(ruleset(), printed);
        verify(&one, &intents).unwrap();
        apply(&one, &intents).unwrap();
        verify(&one, &intents).unwrap();
        remove(&owner("two"), Kinds::ALL);
        verify(&one, &intents).unwrap();
        nft("flush ruleset");
        nft(&printed);
        remove(&one, Kinds::ALL);
        verify(&owner("two"), &everything(3)).unwrap();
        remove(&owner("two"), Kinds::ALL);
        assert!(
            !ruleset().contains("elements") && !ruleset().contains("masq-"),
            "{}",
            ruleset()
        );
        // Protocols have names only where /etc/protocols is.
        let has = |name: &str, number: &str| {
            [name, number]
                .iter()
                .any(|protocol| printed.contains(&format!("{protocol} . 8002 comment")))
        };
        assert!(has("udp", "17") && has("sctp", "132"), "{printed}");
        assert!(
            printed.contains("\"port2\" . 02:00:00:00:00:02 comment"),
            "{printed}"
        );
    });
}

#[test]
fn the_policy_of_a_bridge_goes_with_its_last_container() {
    isolated(
        "the_policy_of_a_bridge_goes_with_its_last_container",
        || {
            let confine = |policy| {
                [Intent::Confine {
                    bridge: "br0".into(),
                    port: None,
                    policy,
                }]
            };
            apply(&owner("one"), &confine(Policy::SameBridge)).unwrap();
            apply(&owner("two"), &confine(Policy::SameBridge)).unwrap();
            apply(&owner("three"), &confine(Policy::Isolated)).unwrap();
            remove(&owner("one"), Kinds::CONFINE);
            assert!(ruleset().contains("jump confine-br0"));
            remove(&owner("two"), Kinds::CONFINE);
            assert!(!ruleset().contains("confine-br0"), "{}", ruleset());
            verify(&owner("three"), &confine(Policy::Isolated)).unwrap();
            remove(&owner("three"), Kinds::CONFINE);
            assert!(!ruleset().contains("br0"), "{}", ruleset());
        },
    );
}

#[test]
fn impossible_wishes_are_refused() {
    isolated("impossible_wishes_are_refused", || {
        let bad = [
            publish(Protocol::Tcp, 0, "10.77.0.2/24", 80),
            publish(Protocol::Tcp, 80, "10.77.0.2/24", 0),
            Intent::Confine {
                bridge: "much-too-long-a-name".into(),
                port: None,
                policy: Policy::Isolated,
            },
            Intent::GuardMac {
                port: String::new(),
                mac: [0; 6],
            },
        ];
        for intent in bad {
            let error = apply(&owner("one"), std::slice::from_ref(&intent)).unwrap_err();
            assert!(
                matches!(error, Error::Invalid { .. }),
                "{intent:?}: {error}"
            );
        }
        assert_eq!(ruleset(), "");
    });
}

#[test]
fn status_changes_nothing() {
    isolated("status_changes_nothing", || {
        netfilter().status(Backend::Nftables, Kinds::ALL).unwrap();
        assert_eq!(ruleset(), "");
        apply(&owner("one"), &everything(2)).unwrap();
        let before = ruleset();
        netfilter().status(Backend::Nftables, Kinds::ALL).unwrap();
        assert_eq!(ruleset(), before);
    });
}

/// Objects as the reference set's plugins write them, for containers `one` and `two` of network `net1`.
fn reference_objects() -> String {
    let masquerade = |id: &str, address: &str| {
        format!(
            "ip saddr {address} ip daddr != 10.1.2.0/24 masquerade comment \"{}\"",
            owner(id).comment()
        )
    };
    let spoof = |id: &str, port: &str| {
        format!(
            "add chain bridge nat cni-br-iface-{id}-eth0
             add chain bridge nat cni-br-iface-{id}-eth0-mac
             add rule bridge nat PREROUTING iifname {port} jump cni-br-iface-{id}-eth0 comment \"macspoofchk-{id}-eth0\"
             add rule bridge nat cni-br-iface-{id}-eth0 jump cni-br-iface-{id}-eth0-mac comment \"macspoofchk-{id}-eth0\"
             add rule bridge nat cni-br-iface-{id}-eth0-mac ether saddr 02:00:00:00:00:01 return comment \"macspoofchk-{id}-eth0\"
             add rule bridge nat cni-br-iface-{id}-eth0-mac drop comment \"macspoofchk-{id}-eth0\"\n"
        )
    };
    format!(
        "table inet cni_plugins_masquerade {{
            comment \"Masquerading for plugins from github.com/containernetworking/plugins\"
            chain masq_checks {{
                {}
                {}
            }}
            chain postrouting {{
                type nat hook postrouting priority 100; policy accept;
                ip daddr 224.0.0.0/4 return
                goto masq_checks
            }}
        }}
        table ip cni_hostport {{
            chain hostports {{
                tcp dport 8080 dnat to 10.1.2.2:80 comment \"one\"
                ip daddr 192.0.2.1 udp dport 8081 dnat to 10.1.2.3:80 comment \"two\"
            }}
            chain hostip_hostports {{
            }}
            chain masquerading {{
                type nat hook postrouting priority 100; policy accept;
                ip saddr 10.1.2.2 ip daddr 10.1.2.2 masquerade comment \"one\"
                ip saddr 127.0.0.1 ip daddr 10.1.2.2 masquerade comment \"one\"
                ip saddr 10.1.2.3 ip daddr 10.1.2.3 masquerade comment \"two\"
            }}
        }}
        table ip6 cni_hostport {{
            chain hostports {{
                tcp dport 8080 dnat to [fd00::2]:80 comment \"one\"
            }}
        }}
        table bridge nat {{
            chain PREROUTING {{
                type filter hook prerouting priority -300; policy accept;
            }}
        }}
        {}{}",
        masquerade("one", "10.1.2.2"),
        masquerade("two", "10.1.2.3"),
        spoof("one", "veth1"),
        spoof("two", "veth2")
    )
}

#[test]
fn objects_of_the_reference_set_are_removed_too() {
    isolated("objects_of_the_reference_set_are_removed_too", || {
        nft(&reference_objects());
        let count = |text: &str, id: &str| {
            text.matches(&format!("id: {id}\"")).count()
                + text.matches(&format!("\"{id}\"")).count()
        };
        let before = ruleset();
        assert_eq!(
            (count(&before, "one"), count(&before, "two")),
            (5, 3),
            "{before}"
        );
        remove(&owner("one"), Kinds::ALL);
        let after = ruleset();
        assert_eq!(
            (count(&after, "one"), count(&after, "two")),
            (0, 3),
            "{after}"
        );
        assert!(
            !after.contains("br-iface-one") && after.contains("br-iface-two"),
            "{after}"
        );
        netfilter().collect("net2", &[], Kinds::ALL).unwrap();
        assert_eq!(ruleset(), after, "another network's");
        netfilter().collect("net1", &[], Kinds::ALL).unwrap();
        assert!(!ruleset().contains("id: two"), "{}", ruleset());
        remove(&owner("two"), Kinds::ALL);
        assert_eq!(count(&ruleset(), "two"), 0);
        assert!(!ruleset().contains("br-iface"), "{}", ruleset());
    });
}

#[test]
fn a_host_gets_the_backend_that_fits() {
    isolated("a_host_gets_the_backend_that_fits", || {
        let choose = |kinds| netfilter().choose(None, kinds).unwrap();
        assert_eq!(choose(Kinds::MASQUERADE), Backend::Nftables);
        assert_eq!(choose(Kinds::ADMIT), Backend::Nftables);
        nft("add table ip filter
 add chain ip filter FORWARD { type filter hook forward priority 0; policy drop; }");
        assert_eq!(choose(Kinds::PUBLISH), Backend::Nftables);
        assert_eq!(choose(Kinds::ADMIT), Backend::Iptables);
        assert_eq!(
            netfilter()
                .choose(Some(Backend::Firewalld), Kinds::ADMIT)
                .unwrap(),
            Backend::Firewalld
        );
    });
}

#[test]
fn a_container_on_two_networks_is_given_its_ports_once() {
    isolated(
        "a_container_on_two_networks_is_given_its_ports_once",
        || {
            let (one, two) = (
                owner("one"),
                Owner {
                    network: "net2".into(),
                    ifname: "eth1".into(),
                    ..owner("one")
                },
            );
            let first = [publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80)];
            let second = [
                publish_at(HOST4, Protocol::Tcp, 8080, "10.88.0.2/24", 80),
                publish(Protocol::Udp, 53, "10.88.0.2/24", 53),
            ];
            apply(&one, &first).unwrap();
            apply(&two, &second).unwrap();
            verify(&one, &first).unwrap();
            verify(&two, &second).unwrap();
            assert!(!ruleset().contains("192.0.2.1 . "), "{}", ruleset());
            let other = [publish(Protocol::Tcp, 8080, "10.77.0.3/24", 80)];
            assert!(matches!(
                apply(&owner("two"), &other),
                Err(Error::PortTaken { .. })
            ));
            remove(&two, Kinds::PUBLISH);
            verify(&one, &first).unwrap();
            remove(&one, Kinds::PUBLISH);
            assert!(!ruleset().contains("elements"));
        },
    );
}

#[test]
fn ports_are_claimed_across_backends() {
    isolated("ports_are_claimed_across_backends", || {
        let (one, two) = (owner("one"), owner("two"));
        let (first, second) = (
            [publish(Protocol::Tcp, 8080, "10.77.0.2/24", 80)],
            [publish(Protocol::Tcp, 8080, "10.77.0.3/24", 80)],
        );
        let apply = |backend, owner: &Owner, intents: &[Intent], alive: bool| {
            let options = ApplyOptions {
                alive: &|_, _| alive,
                ..ApplyOptions::default()
            };
            netfilter().apply(backend, owner, intents, &options)
        };
        for (here, there) in [
            (Backend::Nftables, Backend::Iptables),
            (Backend::Iptables, Backend::Nftables),
        ] {
            apply(here, &one, &first, true).unwrap();
            let taken = apply(there, &two, &second, true);
            assert!(
                matches!(taken, Err(Error::PortTaken { port: 8080, .. })),
                "{there} beside {here}: {taken:?}"
            );
            netfilter().verify(here, &one, &first).unwrap();
            apply(there, &two, &second, false).unwrap();
            assert!(
                netfilter().verify(here, &one, &first).is_err(),
                "the dead have nothing"
            );
            netfilter().verify(there, &two, &second).unwrap();
            remove(&two, Kinds::PUBLISH);
        }
    });
}
