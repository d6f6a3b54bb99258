//! bridge: what it makes, what it promises, and what it gives back.

use conformance::chain::Attachment;
use conformance::facts::{addresses, interfaces};
use conformance::net::{Netns, Rtnl};
use conformance::plugin::Answer;
use conformance::probe::{PATIENCE, ping};
use serde_json::{Value, json};

use super::support::{Lab, fine, sandboxed, with_previous};

/// How the container ids of these tests begin.
const ID: &str = "container-";

fn config(extra: Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.0.0", "name": "br-net", "type": "bridge", "bridge": "br0",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.2.0/24"}]]},
    });
    merge(&mut config, extra);
    config
}

/// A bridge without IPAM.
fn flat(extra: Value) -> Value {
    let mut config =
        json!({"cniVersion": "1.0.0", "name": "br-net", "type": "bridge", "bridge": "br0"});
    merge(&mut config, extra);
    config
}

fn merge(config: &mut Value, extra: Value) {
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
}

fn dual(v4: &str, v6: &str) -> Value {
    json!({"type": "host-local", "ranges": [[{"subnet": v4}], [{"subnet": v6}]]})
}

#[track_caller]
fn failure(answer: &Answer) -> String {
    let error = answer
        .error()
        .unwrap_or_else(|| panic!("no error object: {}", answer.text()));
    format!("{}; {}", error.msg, error.details)
}

fn attach(lab: &Lab, name: &str) -> (Netns, Attachment) {
    let netns = lab.container(name);
    let attachment = Attachment::new(&format!("{ID}{name}"), netns.path());
    (netns, attachment)
}

/// The setting of a bridge port on the host, by its result.
fn host_port(lab: &Lab, answer: &Answer) -> conformance::net::LinkFacts {
    let name = interfaces(&answer.json().unwrap())[1].name.clone();
    lab.rtnl().link(&name).unwrap().facts
}

sandboxed! {
    fn an_address_in_the_way_is_named_with_the_cures(lab) {
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl().add_address("br0", "10.99.0.1/24".parse().unwrap()).unwrap();
        let (_netns, attachment) = attach(lab, "c1");
        let config = config(json!({"isGateway": true}));
        let text = failure(&lab.one("ADD", &config, &attachment));
        for part in ["br0", "10.99.0.1/24", "10.1.2.1/24", "forceAddress"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    fn a_bridge_that_has_lost_its_last_port_is_as_good_as_new(lab) {
        // The kernel takes the MAC address from a bridge that nobody has given one.
        lab.rtnl().add_bridge("br0").unwrap();
        let other = lab.container("other");
        lab.rtnl().add_veth("port0", &other, "far").unwrap();
        lab.rtnl().set_master("port0", "br0").unwrap();
        lab.rtnl().delete_link("port0").unwrap();
        let (netns, attachment) = attach(lab, "c1");
        let answer = lab.added(&config(json!({"isGateway": true})), &attachment);
        let mac = &interfaces(&answer.json().unwrap())[0].mac;
        assert_ne!(mac, "00:00:00:00:00:00");
        ping(&netns, "10.1.2.1".parse().unwrap(), PATIENCE).unwrap();
    }

    fn force_address_replaces_what_is_in_the_way(lab) {
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl()
            .add_address("br0", "10.99.0.1/24".parse().unwrap())
            .unwrap();
        let (_netns, attachment) = attach(lab, "c1");
        let forced = config(json!({"isGateway": true, "forceAddress": true}));
        lab.added(&forced, &attachment);
        let now: Vec<String> =
            lab.rtnl().addresses_of("br0").unwrap().iter().map(ToString::to_string).collect();
        assert!(now.contains(&"10.1.2.1/24".into()) && !now.contains(&"10.99.0.1/24".into()), "{now:?}");
    }

    fn it_makes_the_bridge_the_pair_and_the_gateway(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"isDefaultGateway": true, "mtu": 5000}));
        let answer = lab.added(&config, &attachment);
        let result = answer.json().unwrap();
        let listed = interfaces(&result);
        assert_eq!(listed.len(), 3, "{result}");
        let (bridge, host, inside) = (&listed[0], &listed[1], &listed[2]);
        assert_eq!((bridge.name.as_str(), bridge.sandbox.as_str()), ("br0", ""));
        assert_eq!(inside.sandbox, netns.path().to_str().unwrap());

        let real = lab.rtnl().link("br0").unwrap();
        assert_eq!((real.facts.kind.as_str(), real.facts.mtu), ("bridge", 5000));
        assert_eq!(real.facts.promiscuity, 0);
        assert_eq!(real.facts.mac, bridge.mac);
        assert_ne!(bridge.mac, host.mac, "the bridge has a MAC address of its own");
        let port = lab.rtnl().link(&host.name).unwrap();
        assert_eq!(port.master, Some(real.index));
        assert_eq!((port.facts.mac.as_str(), port.facts.mtu), (host.mac.as_str(), 5000));
        assert!(port.facts.port_has("Isolated(false)"), "{:?}", port.facts.port);
        assert_eq!(lab.rtnl().addresses_of("br0").unwrap()[0].to_string(), "10.1.2.1/24");

        let container = Rtnl::open(&netns).unwrap();
        let eth0 = container.link("eth0").unwrap();
        assert_eq!((eth0.facts.mac.as_str(), eth0.facts.up, eth0.facts.mtu), (inside.mac.as_str(), true, 5000));
        assert!(container.addresses_of("eth0").unwrap().contains(&addresses(&result)[0].address));
        assert_eq!(result["routes"][0], json!({"dst": "0.0.0.0/0", "gw": "10.1.2.1"}));
        ping(&netns, "10.1.2.1".parse().unwrap(), PATIENCE).unwrap();

        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
        assert!(container.link("eth0").is_err());
        assert!(lab.rtnl().link(&host.name).is_err());
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn default_routes_of_every_family(lab) {
        let cases = [
            ("v4", json!([[{"subnet": "10.1.2.0/24"}]]), 1),
            ("v6", json!([[{"subnet": "2001:db8:42::/64"}]]), 1),
            ("dual", json!([[{"subnet": "10.1.3.0/24"}], [{"subnet": "2001:db8:43::/64"}]]), 2),
            ("three", json!([[{"subnet": "10.1.4.0/24"}], [{"subnet": "2001:db8:44::/64"}], [{"subnet": "2001:db8:45::/64"}]]), 2),
        ];
        for (name, ranges, routes) in cases {
            let (netns, attachment) = attach(lab, name);
            let config = config(json!({
                "bridge": format!("br-{name}"), "name": name, "isDefaultGateway": true,
                "ipam": {"type": "host-local", "ranges": ranges},
            }));
            let answer = lab.added(&config, &attachment);
            let result = answer.json().unwrap();
            assert_eq!(result["routes"].as_array().unwrap().len(), routes, "{result}");
            for one in addresses(&result) {
                ping(&netns, one.gateway.unwrap(), PATIENCE).unwrap();
            }
            fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn two_addresses_of_a_family_need_a_later_version(lab) {
        let (_netns, attachment) = attach(lab, "c1");
        let before = lab.snapshot();
        let config = config(json!({"cniVersion": "0.2.0", "ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.3.0/24"}]]}}));
        failure(&lab.one("ADD", &config, &attachment));
        let links = before.diff(&lab.snapshot());
        assert!(links.added.iter().all(|item| !item.to_string().starts_with("address")), "{links}");
    }

    fn several_subnets_of_a_family_each_get_their_gateway(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"isGateway": true, "ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.3.0/24"}]]}}));
        lab.added(&config, &attachment);
        for gateway in ["10.1.2.1", "10.1.3.1"] {
            ping(&netns, gateway.parse().unwrap(), PATIENCE).unwrap();
        }
    }

    fn a_second_subnet_of_one_set_gets_its_gateway_too(lab) {
        let config = config(json!({"isGateway": true, "ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.70.0.0/30"}, {"subnet": "10.71.0.0/24"}]]}}));
        for (name, gateway) in [("c1", "10.70.0.1"), ("c2", "10.71.0.1")] {
            let (netns, attachment) = attach(lab, name);
            lab.added(&config, &attachment);
            ping(&netns, gateway.parse().unwrap(), PATIENCE).unwrap();
        }
    }

    fn an_existing_bridge_is_adopted(lab) {
        lab.rtnl().add_bridge("br0").unwrap();
        let index = lab.rtnl().link("br0").unwrap().index;
        let (_netns, attachment) = attach(lab, "c1");
        lab.added(&config(json!({})), &attachment);
        assert_eq!(lab.rtnl().link("br0").unwrap().index, index);
    }

    fn a_link_that_is_no_bridge_is_left_alone(lab) {
        let other = lab.container("other");
        lab.rtnl().add_veth("br0", &other, "far").unwrap();
        let before = lab.snapshot();
        let (_netns, attachment) = attach(lab, "c1");
        let text = failure(&lab.one("ADD", &config(json!({})), &attachment));
        assert!(text.contains("br0") && text.contains("not a bridge"), "{text}");
        let diff = before.diff(&lab.snapshot());
        assert!(diff.added.iter().all(|item| item.to_string().starts_with("file")), "{diff}");
    }

    fn ipv6_addresses_are_in_the_way_only_when_they_overlap(lab) {
        let ipam = json!({"type": "host-local", "ranges": [[{"subnet": "fd00:5::/64"}]]});
        for (bridge, present, fits) in [("br1", "fd00:5::2/80", false), ("br2", "fd00:6::1/64", true)] {
            lab.rtnl().add_bridge(bridge).unwrap();
            lab.rtnl().add_address(bridge, present.parse().unwrap()).unwrap();
            let (_netns, attachment) = attach(lab, bridge);
            let config = config(json!({"bridge": bridge, "name": bridge, "isGateway": true, "ipam": ipam}));
            let answer = lab.one("ADD", &config, &attachment);
            assert_eq!(answer.ok(), fits, "{bridge}: {}", answer.text());
        }
    }

    fn without_ipam_every_command_works(lab) {
        let (netns, attachment) = attach(lab, "c1");
        for config in [flat(json!({})), flat(json!({"ipam": {}})), flat(json!({"ipam": null}))] {
            let answer = lab.added(&config, &attachment);
            assert!(addresses(&answer.json().unwrap()).is_empty());
            assert!(Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.up);
            fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
        }
        let status = json!({"cniVersion": "1.1.0", "name": "br-net", "type": "bridge", "bridge": "br0"});
        fine(&lab.one("STATUS", &status, &attachment));
        fine(&lab.one("GC", &status, &attachment));
    }

    fn without_ipam_an_early_version_has_no_result(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let before = lab.snapshot();
        failure(&lab.one("ADD", &flat(json!({"cniVersion": "0.2.0"})), &attachment));
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
        let diff = before.diff(&lab.snapshot());
        assert!(diff.added.iter().all(|item| !item.to_string().contains("veth")), "{diff}");
    }

    fn the_mac_of_an_l2_bridge_does_not_move(lab) {
        let mut macs = Vec::new();
        for name in ["c1", "c2", "c3"] {
            let (_netns, attachment) = attach(lab, name);
            let answer = lab.added(&flat(json!({})), &attachment);
            macs.push(interfaces(&answer.json().unwrap())[0].mac.clone());
        }
        assert!(macs.windows(2).all(|pair| pair[0] == pair[1]), "{macs:?}");
        assert_eq!(lab.rtnl().link("br0").unwrap().facts.mac, macs[0]);
    }

    fn the_mac_of_the_bridge_survives_its_containers(lab) {
        for (name, ipam) in [
            ("v4", json!({"type": "host-local", "subnet": "10.1.2.0/24"})),
            ("v6", json!({"type": "host-local", "subnet": "fd00:9::/64"})),
        ] {
            let config = config(json!({"bridge": name, "name": name, "isGateway": true, "ipam": ipam}));
            let (_one, first) = attach(lab, &format!("{name}-1"));
            let (_two, second) = attach(lab, &format!("{name}-2"));
            let answer = lab.added(&config, &first);
            let mac = interfaces(&answer.json().unwrap())[0].mac.clone();
            lab.added(&config, &second);
            fine(&lab.one("DEL", &config, &first));
            assert_eq!(lab.rtnl().link(name).unwrap().facts.mac, mac);
            fine(&lab.one("DEL", &config, &second));
            assert_eq!(lab.rtnl().link(name).unwrap().facts.mac, mac);
        }
    }

    fn a_mac_address_can_be_asked_for_in_three_places(lab) {
        let (argument, structured, capability) = ("c2:11:22:33:44:55", "c2:11:22:33:44:66", "c2:11:22:33:44:77");
        let cases = [
            (json!({}), argument),
            (json!({"args": {"cni": {"mac": structured}}}), structured),
            (json!({"args": {"cni": {"mac": structured}}, "runtimeConfig": {"mac": capability}}), capability),
        ];
        for (number, (extra, wanted)) in cases.into_iter().enumerate() {
            let (netns, attachment) = attach(lab, &format!("c{number}"));
            let attachment = attachment.args(&format!("IgnoreUnknown=true;MAC={argument}"));
            let answer = lab.added(&config(extra), &attachment);
            assert_eq!(interfaces(&answer.json().unwrap())[2].mac, wanted);
            assert_eq!(Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.mac, wanted);
        }
    }

    fn a_bad_mac_address_is_refused(lab) {
        let (_netns, attachment) = attach(lab, "c1");
        for mac in ["nonsense", "01:02:03", "c2:11:22:33:44:zz"] {
            let text = failure(&lab.one("ADD", &config(json!({"args": {"cni": {"mac": mac}}})), &attachment));
            assert!(text.contains(mac), "{text}");
        }
    }

    fn promiscuous_mode_is_set_once(lab) {
        let (_netns, attachment) = attach(lab, "c1");
        let config = config(json!({"promiscMode": true}));
        let answer = lab.added(&config, &attachment);
        assert_eq!(lab.rtnl().link("br0").unwrap().facts.promiscuity, 1);
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
    }

    fn hairpin_and_isolation_reach_the_port(lab) {
        for (number, (key, setting)) in
            [("hairpinMode", "HairpinMode"), ("portIsolation", "Isolated")].into_iter().enumerate()
        {
            for on in [true, false] {
                let (_netns, attachment) = attach(lab, &format!("c{number}{on}"));
                let answer = lab.added(&config(json!({key: on})), &attachment);
                let port = host_port(lab, &answer);
                assert!(port.port_has(&format!("{setting}({on})")), "{key} {on}: {:?}", port.port);
            }
        }
    }

    fn isolated_ports_do_not_talk_to_each_other(lab) {
        let (one, first) = attach(lab, "c1");
        let (_two, second) = attach(lab, "c2");
        let config = config(json!({"isGateway": true, "portIsolation": true}));
        lab.added(&config, &first);
        let other = addresses(&lab.added(&config, &second).json().unwrap())[0].address.ip();
        ping(&one, "10.1.2.1".parse().unwrap(), PATIENCE).unwrap();
        assert!(ping(&one, other, conformance::probe::BRIEFLY).is_err());
    }

    fn options_that_exclude_each_other_are_refused_before_any_change(lab) {
        let (_netns, attachment) = attach(lab, "c1");
        let before = lab.snapshot();
        let cases = [
            (config(json!({"disableContainerInterface": true})), "disableContainerInterface"),
            (config(json!({"hairpinMode": true, "promiscMode": true})), "hairpin"),
            (config(json!({"vlan": -100})), "-100"),
            (config(json!({"vlan": 5000})), "5000"),
            (config(json!({"bridge": "a-name-that-is-too-long"})), "a-name-that-is-too-long"),
            (config(json!({"ipMasq": true, "ipMasqBackend": "ebtables"})), "ebtables"),
        ];
        for (config, wanted) in cases {
            let text = failure(&lab.one("ADD", &config, &attachment));
            assert!(text.to_lowercase().contains(&wanted.to_lowercase()), "{wanted}: {text}");
        }
        let diff = before.diff(&lab.snapshot());
        assert!(diff.is_empty(), "{diff}");
    }

    fn trunks_are_checked_and_nothing_panics(lab) {
        let (_netns, attachment) = attach(lab, "c1");
        let bad = [
            json!([{"minID": 1}]), json!([{"maxID": 5}]), json!([{"minID": -1, "maxID": 5}]),
            json!([{"minID": 5000, "maxID": 5001}]), json!([{"minID": 1, "maxID": 5000}]),
            json!([{"minID": 10, "maxID": 5}]), json!([{"id": 5000}]), json!([{"id": -1}]),
        ];
        for trunk in bad {
            failure(&lab.one("ADD", &flat(json!({"vlanTrunk": trunk})), &attachment));
        }
        // A null element crashes the reference set. Without VLAN filtering in the kernel the
        // rest may still fail, but as the protocol wants.
        let answer = lab.one("ADD", &flat(json!({"vlanTrunk": [null]})), &attachment);
        assert!(answer.ok() || answer.error().is_some(), "{}", answer.text());
        fine(&lab.one("DEL", &flat(json!({"vlanTrunk": [null]})), &attachment));
    }

    fn the_container_interface_can_stay_down(lab) {
        let (netns, attachment) = attach(lab, "c1");
        lab.added(&flat(json!({"disableContainerInterface": true})), &attachment);
        assert!(!Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.up);
    }

    fn a_default_route_of_ipam_and_default_gateway_go_together(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"isDefaultGateway": true, "ipam": {"type": "host-local",
            "subnet": "10.1.2.0/24", "routes": [{"dst": "0.0.0.0/0"}]}}));
        let answer = lab.added(&config, &attachment);
        let default = |message: &netlink_packet_route::route::RouteMessage| {
            message.header.destination_prefix_length == 0
                && message.header.address_family == netlink_packet_route::AddressFamily::Inet
        };
        let routes = Rtnl::open(&netns).unwrap().routes().unwrap();
        assert_eq!(routes.iter().filter(|route| default(route)).count(), 1);
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
    }

    fn dns_of_ipam_is_kept_and_dns_of_the_config_wins(lab) {
        let ipam = json!({"type": "host-local", "subnet": "10.1.2.0/24", "resolvConf": "/etc/resolv.conf"});
        let (_one, first) = attach(lab, "c1");
        let result = lab.added(&config(json!({"ipam": ipam})), &first).json().unwrap();
        assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.53"]));
        assert_eq!(result["dns"]["search"], json!(["example.test"]));
        let (_two, second) = attach(lab, "c2");
        let own = json!({"nameservers": ["10.9.9.9"]});
        let result = lab.added(&config(json!({"ipam": ipam, "dns": own})), &second).json().unwrap();
        assert_eq!(result["dns"]["nameservers"], json!(["10.9.9.9"]));
        assert!(result["dns"].get("search").is_none(), "{result}");
    }

    fn a_failed_add_leaves_nothing(lab) {
        // eth0 is taken: the pair cannot be made. The second failure comes after IPAM.
        let (netns, attachment) = attach(lab, "c1");
        let other = lab.container("other");
        Rtnl::open(&netns).unwrap().add_veth("eth0", &other, "far").unwrap();
        lab.added(&flat(json!({})), &attachment.clone().ifname("eth9"));
        fine(&lab.one("DEL", &flat(json!({})), &attachment.clone().ifname("eth9")));
        let before = lab.snapshot();
        let text = failure(&lab.one("ADD", &config(json!({"isGateway": true})), &attachment));
        assert!(text.contains("eth0"), "{text}");
        let left = before.diff(&lab.snapshot());
        assert!(left.added.iter().all(|item| is_furniture(&item.to_string())), "{left}");
        lab.rtnl().add_address("br0", "10.1.2.77/32".parse().unwrap()).unwrap();
        let before = lab.snapshot();
        let late = config(json!({"isGateway": true, "name": "late"}));
        failure(&lab.one("ADD", &late, &attachment.clone().ifname("eth8")));
        let left = before.diff(&lab.snapshot());
        assert!(left.added.iter().all(|item| is_furniture(&item.to_string())), "{left}");
        assert!(Rtnl::open(&netns).unwrap().link("eth8").is_err());
    }

    fn del_works_without_namespace_result_or_a_valid_config(lab) {
        let good = config(json!({"isGateway": true, "ipMasq": true}));
        for (number, spoil) in ["", "vlan", "args", "gone"].into_iter().enumerate() {
            let (netns, mut attachment) = attach(lab, &format!("c{number}"));
            let before = lab.snapshot();
            lab.added(&good, &attachment);
            let mut config = good.clone();
            match spoil {
                "vlan" => config["vlan"] = json!(9999),
                "args" => attachment = attachment.args("A=b=c;;broken"),
                "gone" => {
                    drop(netns);
                    lab.rtnl().wait_without_ports("br0", PATIENCE).unwrap();
                    attachment.netns = "".into();
                }
                _ => {}
            }
            fine(&lab.one("DEL", &config, &attachment));
            if number > 0 {
                let diff = before.diff(&lab.snapshot());
                assert!(diff.is_empty(), "{spoil}:\n{diff}");
            }
        }
    }

    fn check_tells_what_is_gone(lab) {
        type Breakage = fn(&Lab, &Netns, &Answer);
        let breakages: [(&str, Breakage); 5] = [
            ("the container's interface is gone", |_, netns, _| {
                Rtnl::open(netns).unwrap().delete_link("eth0").unwrap();
            }),
            ("the container's interface is down", |_, netns, _| {
                Rtnl::open(netns).unwrap().set_down("eth0").unwrap();
            }),
            ("the address is gone", |_, netns, _| {
                Rtnl::open(netns).unwrap().flush_addresses("eth0").unwrap();
            }),
            ("the bridge is gone", |lab, _, _| lab.rtnl().delete_link("br0").unwrap()),
            ("the lease is gone", |_, _, answer| {
                let ip = addresses(&answer.json().unwrap())[0].address.ip();
                std::fs::remove_file(format!("/var/lib/cni/networks/br-net/{ip}")).unwrap();
            }),
        ];
        for (number, (what, breakage)) in breakages.into_iter().enumerate() {
            let (netns, attachment) = attach(lab, &format!("c{number}"));
            let config = config(json!({"isDefaultGateway": true}));
            let answer = lab.added(&config, &attachment);
            let with = with_previous(&config, &answer);
            fine(&lab.one("CHECK", &with, &attachment));
            breakage(lab, &netns, &answer);
            let checked = lab.one("CHECK", &with, &attachment);
            assert!(checked.error().is_some(), "{what}: {}", checked.text());
            fine(&lab.one("DEL", &with, &attachment));
        }
    }

    fn the_address_of_the_family_that_is_off_is_explained(lab) {
        for key in ["all", "default"] {
            lab.host.sysctl(&format!("net/ipv6/conf/{key}/disable_ipv6"), "1").unwrap();
        }
        let (netns, attachment) = attach(lab, "c1");
        let only_v4 = config(json!({"isGateway": true}));
        lab.added(&only_v4, &attachment);
        fine(&lab.one("DEL", &only_v4, &attachment));
        let config = config(json!({"isGateway": true, "name": "dual", "bridge": "br-dual",
            "ipam": dual("10.5.0.0/24", "fd00:5::/64")}));
        let answer = lab.one("ADD", &config, &attachment);
        if answer.ok() {
            // Switching IPv6 on for the one bridge is as good; then it has to work.
            ping(&netns, "fd00:5::1".parse().unwrap(), PATIENCE).unwrap();
        } else {
            let text = failure(&answer);
            assert!(text.contains("IPv6") && text.contains("disable"), "{text}");
            assert!(lab.rtnl().link("br-dual").is_err());
        }
    }

    fn the_gateway_answers_ipv6_when_add_returns(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"isGateway": true, "ipam": dual("10.5.0.0/24", "fd00:5::/64")}));
        let answer = lab.added(&config, &attachment);
        assert!(answer.took < std::time::Duration::from_secs(1), "{:?}", answer.took);
        ping(&netns, "fd00:5::1".parse().unwrap(), PATIENCE).unwrap();
        ping(lab.host.netns(), "fd00:5::2".parse().unwrap(), PATIENCE).unwrap();
    }

    fn router_advertisements_are_not_taken(lab) {
        let (netns, attachment) = attach(lab, "c1");
        lab.added(&config(json!({})), &attachment);
        let value = netns
            .run(|| Ok(std::fs::read_to_string("/proc/sys/net/ipv6/conf/eth0/accept_ra").unwrap()))
            .unwrap();
        assert_eq!(value.trim(), "0");
    }

    fn neighbours_hear_at_once_who_holds_an_address_now(lab) {
        let config = config(json!({"ipam": {"type": "host-local", "ranges": [
            [{"subnet": "10.5.0.0/24", "rangeStart": "10.5.0.2", "rangeEnd": "10.5.0.3"}],
            [{"subnet": "fd00:5::/64", "rangeStart": "fd00:5::2", "rangeEnd": "fd00:5::3"}],
        ]}}));
        let (neighbour, attachment) = attach(lab, "neighbour");
        lab.added(&config, &attachment);
        // Without word from the new holder the kernel believes the old one for five seconds and more.
        let at_once = std::time::Duration::from_secs(1);
        for id in ["first", "second", "third"] {
            let (_netns, attachment) = attach(lab, id);
            let result = lab.added(&config, &attachment).json().unwrap();
            for ip in addresses(&result) {
                ping(&neighbour, ip.address.ip(), at_once).unwrap();
            }
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn an_interface_without_ipv6_addresses_has_no_ipv6(lab) {
        for (id, accept, expected) in [("c1", false, 1), ("c2", true, 2)] {
            let (netns, attachment) = attach(lab, id);
            let answer = lab.added(&config(json!({"acceptRA": accept})), &attachment);
            let given = addresses(&answer.json().unwrap())[0].address;
            let rtnl = Rtnl::open(&netns).unwrap();
            let present = rtnl.addresses_of("eth0").unwrap();
            assert!(present.contains(&given), "{present:?}");
            assert_eq!(present.len(), expected, "{present:?}");
        }
    }

    fn many_at_once_on_a_fresh_host(lab) {
        let config = config(json!({"isGateway": true, "ipMasq": true, "ipam": dual("10.5.0.0/24", "fd00:5::/64")}));
        let containers: Vec<_> = (0..24).map(|number| attach(lab, &format!("c{number}"))).collect();
        let seen: Vec<String> = std::thread::scope(|scope| {
            let running: Vec<_> = containers
                .iter()
                .map(|(_, attachment)| scope.spawn(|| lab.added(&config, attachment).json().unwrap()))
                .collect();
            let results = running.into_iter().map(|one| one.join().unwrap());
            results.flat_map(|result| addresses(&result)).map(|one| one.address.to_string()).collect()
        });
        let distinct: std::collections::HashSet<&String> = seen.iter().collect();
        assert_eq!((seen.len(), distinct.len()), (48, 48));
        for (netns, _) in &containers {
            ping(netns, "10.5.0.1".parse().unwrap(), PATIENCE).unwrap();
            ping(netns, "fd00:5::1".parse().unwrap(), PATIENCE).unwrap();
        }
        std::thread::scope(|scope| {
            for (_, attachment) in &containers {
                scope.spawn(|| fine(&lab.one("DEL", &config, attachment)));
            }
        });
        let after = lab.snapshot();
        for mention in [ID, "0a050002", "port of"] {
            assert!(after.mentioning(mention).is_empty(), "{:?}", after.mentioning(mention));
        }
    }

    fn two_interfaces_of_one_container_live_apart(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"isGateway": true, "ipMasq": true}));
        let second = attachment.clone().ifname("eth1");
        lab.added(&config, &attachment);
        let answer = lab.added(&config, &second);
        fine(&lab.one("DEL", &config, &attachment));
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &second));
        assert!(Rtnl::open(&netns).unwrap().link("eth1").is_ok());
        fine(&lab.one("DEL", &config, &second));
    }

    fn mac_spoofing_is_stopped_when_asked(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"isGateway": true, "macspoofchk": true}));
        let answer = lab.added(&config, &attachment);
        let gateway = "10.1.2.1".parse().unwrap();
        ping(&netns, gateway, PATIENCE).unwrap();
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        let rtnl = Rtnl::open(&netns).unwrap();
        rtnl.set_mac("eth0", [0xc2, 0, 0, 0, 0, 1]).unwrap();
        assert!(ping(&netns, gateway, conformance::probe::BRIEFLY).is_err(), "a false MAC address passes");
        fine(&lab.one("DEL", &config, &attachment));
        assert!(lab.snapshot().mentioning(ID).is_empty(), "{:?}", lab.snapshot().mentioning(ID));
    }
}

/// What a first ADD on a host may leave even when it fails.
fn is_furniture(item: &str) -> bool {
    [
        "link br0",
        "address",
        "route",
        "sysctl",
        "nft table",
        "nft chain",
        "nft set",
        "nft rule",
        "file",
    ]
    .iter()
    .any(|kind| item.starts_with(kind))
        && !item.contains("veth")
        && !item.contains(ID)
}
