//! ptp: what it makes, what it promises, and what it gives back.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use conformance::chain::Attachment;
use conformance::facts::{addresses, interfaces};
use conformance::net::{HOST_V4, HOST_V6, Netns, OUTSIDE_V4, OUTSIDE_V6, Rtnl};
use conformance::probe::{PATIENCE, Transport, ping};
use serde_json::{Value, json};

use super::support::{
    Lab, ask, fine, hide_tools, ip, iptables, leases_in, network, nft, no_answer, one_of,
    reference, refused, sandboxed, serve, with_previous,
};

const NETWORK: &str = "ptp-net";

fn config(extra: Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.0.0", "name": NETWORK, "type": "ptp",
        "ipam": {"type": "host-local", "subnet": "10.6.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]},
    });
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn dual() -> Value {
    json!({"type": "host-local", "ranges": [[{"subnet": "10.6.0.0/24"}], [{"subnet": "fd00:6::/64"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]})
}

fn attach(lab: &Lab, name: &str) -> (Netns, Attachment) {
    let netns = lab.container(name);
    let attachment = Attachment::new(&format!("container-{name}"), netns.path());
    (netns, attachment)
}

fn host_ip(lab: &Lab, arguments: &str) -> String {
    ip(lab.host.netns(), arguments)
}

fn veths(lab: &Lab) -> usize {
    let links = lab.rtnl().links().unwrap();
    links
        .iter()
        .filter(|link| link.name.starts_with("veth"))
        .count()
}

fn leases() -> usize {
    leases_in(&Path::new("/var/lib/cni/networks").join(NETWORK)).len()
}

/// No pair, no address, no rule.
#[track_caller]
fn nothing_stays(lab: &Lab, netns: &Netns) {
    let links = Rtnl::open(netns).unwrap().links().unwrap();
    assert!(links.iter().all(|link| link.name == "lo"), "{links:?}");
    assert_eq!((veths(lab), leases()), (0, 0));
    let mentioned = lab.snapshot();
    assert!(
        mentioned.mentioning("10.6.0.").is_empty(),
        "{:?}",
        mentioned.mentioning("10.6.0.")
    );
}

/// Everybody reaches everybody, and the outside sees the host.
fn traffic_flows(lab: &Lab, netns: &Netns, own: IpAddr, gateway: IpAddr) {
    let (host, outside) = match own {
        IpAddr::V4(_) => (HOST_V4, OUTSIDE_V4),
        IpAddr::V6(_) => (HOST_V6, OUTSIDE_V6),
    };
    ping(netns, gateway, PATIENCE).unwrap();
    let _inside = serve(netns, Transport::Tcp, own, 80, "container");
    assert_eq!(
        ask(lab.host.netns(), Transport::Tcp, own, 80).server,
        "container"
    );
    let _outside = serve(lab.host.outside(), Transport::Tcp, outside, 81, "outside");
    let seen = ask(netns, Transport::Tcp, outside, 81);
    assert_eq!((seen.server.as_str(), seen.peer), ("outside", host));
}

sandboxed! {
    fn it_makes_a_pair_with_routes_at_both_ends(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"mtu": 5000, "ipMasq": true, "dns": {"nameservers": ["192.0.2.7"]}}));
        let answer = lab.added(&config, &attachment);
        let result = answer.json().unwrap();
        let listed = interfaces(&result);
        assert_eq!(listed.len(), 2, "{result}");
        let (host, inside) = (&listed[0], &listed[1]);
        assert_eq!((host.sandbox.as_str(), inside.name.as_str()), ("", "eth0"));
        assert_eq!(inside.sandbox, netns.path().to_str().unwrap());
        assert_eq!(addresses(&result)[0].interface, Some(1));
        assert_eq!(result["routes"], json!([{"dst": "0.0.0.0/0"}]));
        assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.7"]));

        let end = lab.rtnl().link(&host.name).unwrap().facts;
        assert_eq!((end.mac.as_str(), end.mtu, end.up, end.tx_queue_len), (host.mac.as_str(), 5000, true, 0));
        assert!(end.alias.contains("id: container-c1"), "{}", end.alias);
        let far = Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts;
        assert_eq!((far.mac.as_str(), far.mtu, far.up), (inside.mac.as_str(), 5000, true));

        let routes = ip(&netns, "route show");
        let lines: Vec<&str> = routes.lines().map(str::trim).collect();
        assert_eq!(lines, [
            "default via 10.6.0.1 dev eth0",
            "10.6.0.0/24 via 10.6.0.1 dev eth0 src 10.6.0.2",
            "10.6.0.1 dev eth0 scope link src 10.6.0.2",
        ]);
        assert!(host_ip(lab, "route show 10.6.0.2").contains(&format!("dev {} scope host", host.name)));
        assert!(host_ip(lab, &format!("addr show {}", host.name)).contains("inet 10.6.0.1/32 scope global"));
        assert_eq!(std::fs::read_to_string("/proc/sys/net/ipv4/ip_forward").unwrap(), "1\n");
        traffic_flows(lab, &netns, "10.6.0.2".parse().unwrap(), "10.6.0.1".parse().unwrap());

        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
        nothing_stays(lab, &netns);
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn both_families_at_once_and_no_wait(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"ipMasq": true, "ipam": dual()}));
        let answer = lab.added(&config, &attachment);
        assert!(answer.took < Duration::from_secs(2), "{:?}", answer.took);
        let host = interfaces(&answer.json().unwrap())[0].name.clone();
        for text in [ip(&netns, "-6 addr show eth0"), host_ip(lab, &format!("-6 addr show {host}"))] {
            assert!(text.contains("fe80::") && !text.contains("tentative"), "{text}");
        }
        let lines = ip(&netns, "-6 route show");
        for part in ["fd00:6::1 dev eth0 src fd00:6::2", "fd00:6::/64 via fd00:6::1 dev eth0 src fd00:6::2",
            "default via fd00:6::1"] {
            assert!(lines.contains(part), "{part} in {lines}");
        }
        traffic_flows(lab, &netns, "10.6.0.2".parse().unwrap(), "10.6.0.1".parse().unwrap());
        traffic_flows(lab, &netns, "fd00:6::2".parse().unwrap(), "fd00:6::1".parse().unwrap());
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &config, &attachment));
        nothing_stays(lab, &netns);
    }

    fn containers_reach_one_another_and_are_reached_at_once(lab) {
        let (one, first) = attach(lab, "c1");
        let (two, second) = attach(lab, "c2");
        let config = config(json!({"ipam": dual()}));
        for attachment in [&first, &second] {
            lab.added(&config, attachment);
        }
        for (from, to) in [(&one, "10.6.0.3"), (&one, "fd00:6::3"), (&two, "10.6.0.2"), (&two, "fd00:6::2")] {
            ping(from, to.parse().unwrap(), PATIENCE).unwrap();
        }
        // Somebody else's packets reach a container that the host has not spoken with.
        let (_three, third) = attach(lab, "c3");
        lab.host.outside().run(|| Ok(())).unwrap();
        let outside = Rtnl::open(lab.host.outside()).unwrap();
        outside.add_route("fd00:6::/64".parse().unwrap(), HOST_V6).unwrap();
        outside.add_route("10.6.0.0/24".parse().unwrap(), HOST_V4).unwrap();
        lab.added(&config, &third);
        for to in ["fd00:6::4", "10.6.0.4"] {
            ping(lab.host.outside(), to.parse().unwrap(), Duration::from_millis(500)).unwrap();
        }
    }

    fn every_version_has_its_result(lab) {
        for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
            let (netns, attachment) = attach(lab, &format!("c{version}"));
            let config = config(json!({"cniVersion": version, "ipam": dual(), "ipMasq": true}));
            if version == "1.1.0" {
                fine(&lab.one("STATUS", &config, &attachment));
            }
            let answer = lab.added(&config, &attachment);
            let result = answer.json().unwrap();
            assert_eq!(result["cniVersion"], version);
            assert_eq!(addresses(&result).len(), 2, "{result}");
            let check = lab.one("CHECK", &with_previous(&config, &answer), &attachment);
            if version < "0.4.0" {
                assert!(refused(&check, 1).contains("config version does not allow CHECK"));
            } else {
                fine(&check);
            }
            fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
            nothing_stays(lab, &netns);
        }
    }

    fn masquerade_by_each_backend(lab) {
        for backend in [Value::Null, json!("nftables"), json!("iptables")] {
            let (netns, attachment) = attach(lab, &format!("c-{}", backend.as_str().unwrap_or("any")));
            let config = config(json!({"ipMasq": true, "ipMasqBackend": backend, "ipam": dual()}));
            let answer = lab.added(&config, &attachment);
            let rules = iptables("iptables", "-t nat -S");
            assert_eq!(rules.contains("-A POSTROUTING -s 10.6.0."), backend == json!("iptables"), "{rules}");
            let own = addresses(&answer.json().unwrap());
            for one in own {
                traffic_flows(lab, &netns, one.address.ip(), one.gateway.unwrap());
            }
            fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            fine(&lab.one("DEL", &config, &attachment));
            nothing_stays(lab, &netns);
        }
        let (netns, attachment) = attach(lab, "bad");
        let text = refused(&lab.one("ADD", &config(json!({"ipMasqBackend": "pf"})), &attachment), 7);
        assert!(text.contains("unknown ipmasq backend \"pf\""), "{text}");
        nothing_stays(lab, &netns);
    }

    fn masquerade_needs_no_tools(lab) {
        hide_tools(&["iptables", "ip6tables", "nft"]);
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"ipMasq": true}));
        lab.added(&config, &attachment);
        traffic_flows(lab, &netns, "10.6.0.2".parse().unwrap(), "10.6.0.1".parse().unwrap());
        fine(&lab.one("DEL", &config, &attachment));
        assert_eq!((veths(lab), leases()), (0, 0));
    }

    fn a_foreign_nat_table_is_no_obstacle(lab) {
        nft("add table ip nat; add set ip nat s {type ipv4_addr;}; \
            add chain ip nat POSTROUTING {type nat hook postrouting priority 100;}; \
            add rule ip nat POSTROUTING ip saddr @s masquerade");
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"ipMasq": true}));
        lab.added(&config, &attachment);
        traffic_flows(lab, &netns, "10.6.0.2".parse().unwrap(), "10.6.0.1".parse().unwrap());
        fine(&lab.one("DEL", &config, &attachment));
        nothing_stays(lab, &netns);
    }

    fn the_masquerade_comes_back_after_a_reload(lab) {
        for backend in ["nftables", "iptables"] {
            let (netns, attachment) = attach(lab, backend);
            let config = config(json!({"ipMasq": true, "ipMasqBackend": backend}));
            let answer = lab.added(&config, &attachment);
            let config = with_previous(&config, &answer);
            nft("flush ruleset");
            refused(&lab.one("CHECK", &config, &attachment), 999);
            fine(&lab.one("REAPPLY", &config, &attachment));
            fine(&lab.one("CHECK", &config, &attachment));
            let own = addresses(&answer.json().unwrap())[0].clone();
            traffic_flows(lab, &netns, own.address.ip(), own.gateway.unwrap());
            fine(&lab.one("DEL", &config, &attachment));
            // Of what is no more, nothing comes back.
            refused(&lab.one("REAPPLY", &config, &attachment), 999);
            nothing_stays(lab, &netns);
        }
    }

    fn without_ipam_it_is_a_bare_pair(lab) {
        let (netns, attachment) = attach(lab, "c1");
        for ipam in [Value::Null, json!({})] {
            let config = config(json!({"ipam": ipam, "cniVersion": "1.1.0", "ipMasq": true}));
            fine(&lab.one("STATUS", &config, &attachment));
            let answer = lab.added(&config, &attachment);
            let listed = interfaces(&answer.json().unwrap());
            assert!(Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.up);
            lab.rtnl().add_address(&listed[0].name, "10.6.9.1/24".parse().unwrap()).unwrap();
            Rtnl::open(&netns).unwrap().add_address("eth0", "10.6.9.2/24".parse().unwrap()).unwrap();
            ping(&netns, "10.6.9.1".parse().unwrap(), PATIENCE).unwrap();
            fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            let mut gc = config.clone();
            gc["cni.dev/valid-attachments"] = json!([{"containerID": attachment.container_id, "ifname": "eth0"}]);
            fine(&lab.one("GC", &gc, &attachment));
            fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            fine(&lab.one("DEL", &config, &attachment));
            nothing_stays(lab, &netns);
        }
        // An early version cannot say "no address".
        refused(&lab.one("ADD", &config(json!({"ipam": {}, "cniVersion": "0.2.0"})), &attachment), 999);
        nothing_stays(lab, &netns);
    }

    fn dns_of_ipam_stays_unless_the_configuration_says_something(lab) {
        std::fs::write("/run/resolv.conf", "nameserver 192.0.2.53\nsearch example.net\n").unwrap();
        let cases = [
            (json!({}), json!({"nameservers": ["192.0.2.53"], "search": ["example.net"]})),
            (json!({"dns": {"nameservers": ["192.0.2.8"]}}), json!({"nameservers": ["192.0.2.8"]})),
            (json!({"dns": {"domain": "example.org"}}), json!({"domain": "example.org"})),
            (json!({"dns": {"search": ["a.b"]}}), json!({"search": ["a.b"]})),
            (json!({"dns": {"options": ["ndots:2"]}}), json!({"options": ["ndots:2"]})),
            (json!({"dns": {"nameservers": [], "search": []}}), Value::Null),
        ];
        for (number, (extra, wanted)) in cases.into_iter().enumerate() {
            let (_netns, attachment) = attach(lab, &format!("c{number}"));
            let mut config = config(extra);
            config["ipam"]["resolvConf"] = json!("/run/resolv.conf");
            let result = lab.added(&config, &attachment).json().unwrap();
            assert_eq!(result["dns"], wanted, "{config}");
        }
    }

    fn a_gateway_that_ipam_does_not_name_is_the_first_address(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let of = |address: &str, gateway: Option<&str>| {
            let mut one = json!({"address": address});
            if let Some(gateway) = gateway {
                one["gateway"] = json!(gateway);
            }
            config(json!({"ipam": {"type": "static", "addresses": [one], "routes": [{"dst": "0.0.0.0/0"}]}}))
        };
        let answer = lab.added(&of("10.6.0.9/24", None), &attachment);
        assert_eq!(answer.json().unwrap()["ips"][0]["gateway"], "10.6.0.1");
        assert!(ip(&netns, "route show default").contains("via 10.6.0.1"));
        ping(&netns, HOST_V4, PATIENCE).unwrap();
        fine(&lab.one("DEL", &of("10.6.0.9/24", None), &attachment));
        for (address, gateway, part) in [
            ("10.6.0.9/32", None, "10.6.0.9/32"),
            ("10.6.0.1/24", None, "without a gateway"),
            ("10.6.0.9/24", Some("10.6.0.9"), "own address"),
            ("10.6.0.9/24", Some("fd00::1"), "IP family"),
        ] {
            let text = refused(&lab.one("ADD", &of(address, gateway), &attachment), 7);
            assert!(text.contains(part), "{text}");
            nothing_stays(lab, &netns);
        }
    }

    fn a_gateway_outside_of_the_subnet_serves_as_well(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let ipam = json!({"type": "static", "addresses": [
            {"address": "10.6.0.9/32", "gateway": "169.254.1.1"}, {"address": "fd00:6::9/128", "gateway": "fd00:66::1"}],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "10.8.0.0/16", "gw": "10.6.0.77"}]});
        let config = config(json!({"ipMasq": true, "ipam": ipam}));
        let answer = lab.added(&config, &attachment);
        traffic_flows(lab, &netns, "10.6.0.9".parse().unwrap(), "169.254.1.1".parse().unwrap());
        traffic_flows(lab, &netns, "fd00:6::9".parse().unwrap(), "fd00:66::1".parse().unwrap());
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &config, &attachment));
        nothing_stays(lab, &netns);
    }

    fn several_addresses_of_one_subnet_and_several_routes(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let ipam = json!({"type": "static", "addresses": [
            {"address": "10.6.0.8/24", "gateway": "10.6.0.1"}, {"address": "10.6.0.9/24", "gateway": "10.6.0.1"},
            {"address": "10.6.1.9/24", "gateway": "10.6.1.1"}],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "192.168.0.0/16", "mtu": 1300}, {"dst": "10.9.0.0/16", "gw": "10.6.1.1"},
                {"dst": "10.10.0.0/16", "table": 100}]});
        let config = config(json!({"ipMasq": true, "ipam": ipam}));
        let answer = lab.added(&config, &attachment);
        for to in ["10.6.0.8", "10.6.0.9", "10.6.1.9"] {
            ping(lab.host.netns(), to.parse().unwrap(), PATIENCE).unwrap();
        }
        assert!(ip(&netns, "route show 192.168.0.0/16").contains("mtu 1300"));
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &config, &attachment));
        nothing_stays(lab, &netns);
    }

    fn the_route_to_a_lost_container_is_replaced(lab) {
        for v6 in [false, true] {
            let (address, gateway) = if v6 { ("fd00:6::9", "fd00:6::1") } else { ("10.6.0.9", "10.6.0.1") };
            let prefix = if v6 { 64 } else { 24 };
            let config = config(json!({"ipam": {"type": "static",
                "addresses": [{"address": format!("{address}/{prefix}"), "gateway": gateway}]}}));
            let (lost, old) = attach(lab, &format!("lost-{v6}"));
            let (netns, attachment) = attach(lab, &format!("c-{v6}"));
            lab.added(&config, &old);
            let _silent = serve(&lost, Transport::Tcp, address.parse().unwrap(), 80, "the lost");
            lab.added(&config, &attachment);
            let _server = serve(&netns, Transport::Tcp, address.parse().unwrap(), 80, "the new");
            assert_eq!(ask(lab.host.netns(), Transport::Tcp, address.parse().unwrap(), 80).server, "the new");
            // What is removed late takes nothing with it.
            fine(&lab.one("DEL", &config, &old));
            assert_eq!(ask(lab.host.netns(), Transport::Tcp, address.parse().unwrap(), 80).server, "the new");
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn the_address_of_a_living_container_of_another_network_is_refused(lab) {
        let of = |name: &str| config(json!({"name": name, "ipam": {"type": "static",
            "addresses": [{"address": "10.6.0.9/24", "gateway": "10.6.0.1"}]}}));
        let (one, first) = attach(lab, "c1");
        let (two, second) = attach(lab, "c2");
        lab.added(&of("one"), &first);
        let before = lab.snapshot();
        let text = refused(&lab.one("ADD", &of("two"), &second), 999);
        for part in ["10.6.0.9", "container-c1", "network one"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert!(before.diff(&lab.snapshot()).is_empty());
        ping(lab.host.netns(), "10.6.0.9".parse().unwrap(), PATIENCE).unwrap();
        // It is not alive without its interface.
        ip(&one, "link set eth0 down");
        lab.added(&of("two"), &second);
        ping(&two, "10.6.0.1".parse().unwrap(), PATIENCE).unwrap();
        ping(lab.host.netns(), "10.6.0.9".parse().unwrap(), PATIENCE).unwrap();
        // A route of the administrator's is nobody's to replace.
        let (_three, third) = attach(lab, "c3");
        lab.rtnl().add_bridge("lan0").unwrap();
        lab.rtnl().set_up("lan0").unwrap();
        host_ip(lab, "route add 10.6.0.10/32 dev lan0");
        let text = refused(&lab.one("ADD", &config(json!({"ipam": {"type": "static",
            "addresses": [{"address": "10.6.0.10/24"}]}})), &third), 999);
        assert!(text.contains("lan0"), "{text}");
    }

    fn names_that_are_taken_are_refused_before_any_change(lab) {
        let (netns, attachment) = attach(lab, "c1");
        refused(&lab.one("ADD", &config(json!({})), &attachment.clone().ifname("lo")), 999);
        nothing_stays(lab, &netns);
        lab.added(&config(json!({})), &attachment);
        let text = refused(&lab.one("ADD", &config(json!({})), &attachment), 999);
        assert!(text.contains("eth0") && text.contains("already exists"), "{text}");
        assert_eq!((leases(), veths(lab)), (1, 1));
    }

    fn ipv6_that_is_off_on_the_host_is_named(lab) {
        lab.host.sysctl("net/ipv6/conf/default/disable_ipv6", "1").unwrap();
        let (netns, attachment) = attach(lab, "c1");
        let text = refused(&lab.one("ADD", &config(json!({"ipam": dual()})), &attachment), 999);
        for part in ["disable_ipv6", NETWORK, "fd00:6::2/64"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        nothing_stays(lab, &netns);
        refused(&lab.one("STATUS", &config(json!({"ipam": dual(), "cniVersion": "1.1.0"})), &attachment), 50);
        let config = config(json!({}));
        let answer = lab.added(&config, &attachment);
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
    }

    fn the_container_cannot_tell_the_host_its_way(lab) {
        let (_netns, attachment) = attach(lab, "c1");
        let answer = lab.added(&config(json!({"ipam": dual()})), &attachment);
        let name = interfaces(&answer.json().unwrap())[0].name.clone();
        let file = format!("/proc/sys/net/ipv6/conf/{name}/accept_ra");
        assert_eq!(std::fs::read_to_string(file).unwrap(), "0\n");
    }

    fn unknown_arguments_are_for_others(lab) {
        let (_netns, attachment) = attach(lab, "c1");
        let config = config(json!({}));
        let answer = lab.added(&config, &attachment.clone().args("IP=10.6.0.50;K8S_POD_NAME=x;MAC=02:00:00:00:00:01"));
        assert_eq!(answer.json().unwrap()["ips"][0]["address"], "10.6.0.50/24");
    }

    fn a_failed_add_leaves_nothing(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let failing = [
            json!({"mtu": 1000, "ipam": dual()}),
            json!({"mtu": 67}),
            json!({"mtu": 1_000_000}),
            json!({"ipam": {"type": "host-local", "subnet": "10.6.0.0/24", "routes": [{"dst": "10.9.0.0/16", "gw": "fd00::1"}]}}),
            json!({"ipam": {"type": "missing-ipam"}}),
            json!({"ipam": {"type": "static"}}),
            json!({"cniVersion": "0.2.0", "ipMasq": true, "ipam": {"type": "host-local",
                "ranges": [[{"subnet": "10.6.0.0/24"}], [{"subnet": "10.6.1.0/24"}]]}}),
        ];
        for extra in failing {
            let answer = lab.one("ADD", &config(extra.clone()), &attachment);
            assert!(answer.error().is_some(), "{extra}: {}", answer.text());
            nothing_stays(lab, &netns);
        }
        lab.added(&config(json!({})), &attachment);
    }

    fn check_tells_what_is_gone(lab) {
        let losses = [
            (true, "link set eth0 down"),
            (true, "link set eth0 mtu 1300"),
            (true, "addr del 10.6.0.2/24 dev eth0"),
            (true, "route del default"),
            (true, "route del 10.6.0.0/24"),
            (true, "link del eth0"),
            (false, "link set HOST down"),
            (false, "link set HOST address 02:00:00:00:00:77"),
            (false, "addr del 10.6.0.1/32 dev HOST"),
            (false, "route del 10.6.0.2"),
        ];
        for (number, (inside, loss)) in losses.into_iter().enumerate() {
            let (netns, attachment) = attach(lab, &format!("c{number}"));
            let mut config = config(json!({"mtu": 1400, "ipMasq": true, "name": format!("net{number}")}));
            let answer = lab.added(&config, &attachment);
            let host = interfaces(&answer.json().unwrap())[0].name.clone();
            config = with_previous(&config, &answer);
            fine(&lab.one("CHECK", &config, &attachment));
            let place = if inside { &netns } else { lab.host.netns() };
            ip(place, &loss.replace("HOST", &host));
            let text = refused(&lab.one("CHECK", &config, &attachment), 999);
            assert!(!text.is_empty());
            fine(&lab.one("DEL", &config, &attachment));
        }
        let (_netns, attachment) = attach(lab, "last");
        let answer = lab.added(&config(json!({})), &attachment);
        refused(&lab.one("CHECK", &config(json!({})), &attachment), 999);
        lab.host.sysctl("net/ipv4/ip_forward", "0").unwrap();
        let text = refused(&lab.one("CHECK", &with_previous(&config(json!({})), &answer), &attachment), 999);
        assert!(text.contains("ip_forward"), "{text}");
    }

    fn del_works_without_namespace_result_or_a_valid_config(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        for backend in ["nftables", "iptables"] {
            let config = config(json!({"ipMasq": true, "ipMasqBackend": backend}));
            lab.added(&config, &attachment);
            let broken = super::ptp::config(json!({"mtu": "wide", "ipMasq": 7, "dns": [], "ipMasqBackend": {}}));
            fine(&lab.one("DEL", &broken, &attachment));
            nothing_stays(lab, &netns);
            // The namespace lives on, but the runtime does not know it any more.
            lab.added(&config, &attachment);
            let known = attachment.netns.clone();
            attachment.netns = "".into();
            fine(&lab.one("DEL", &config, &attachment));
            nothing_stays(lab, &netns);
            attachment.netns = known;
        }
        lab.added(&config(json!({"ipMasq": true})), &attachment);
        for path in ["/tmp", "/run/netns/missing"] {
            attachment.netns = path.into();
            fine(&lab.one("DEL", &config(json!({})), &attachment));
            nothing_stays(lab, &netns);
        }
    }

    fn del_removes_the_masquerade_of_a_container_that_is_gone(lab) {
        for backend in ["nftables", "iptables"] {
            let (netns, attachment) = attach(lab, backend);
            let config = config(json!({"ipMasq": true, "ipMasqBackend": backend}));
            lab.added(&config, &attachment);
            drop(netns);
            lab.rtnl().wait_links_gone("veth", 1, PATIENCE).unwrap();
            fine(&lab.one("DEL", &config, &attachment));
            let after = lab.snapshot();
            assert!(after.mentioning("10.6.0.").is_empty(), "{:?}", after.mentioning("10.6.0."));
        }
    }

    fn del_goes_on_past_an_ipam_that_fails(lab) {
        let (netns, attachment) = attach(lab, "c1");
        lab.added(&config(json!({"ipMasq": true})), &attachment);
        let broken = config(json!({"ipam": {"type": "missing-ipam"}}));
        refused(&lab.one("DEL", &broken, &attachment), 999);
        assert_eq!((veths(lab), leases()), (0, 1));
        fine(&lab.one("DEL", &config(json!({})), &attachment));
        nothing_stays(lab, &netns);
    }

    fn gc_removes_what_is_not_listed(lab) {
        let mut config = config(json!({"cniVersion": "1.1.0", "ipMasq": true}));
        let (_lost, lost) = attach(lab, "lost");
        let (live_netns, live) = attach(lab, "live");
        let (_other, other) = attach(lab, "other");
        let answer = lab.added(&config, &live);
        lab.added(&config, &lost);
        let mut elsewhere = config.clone();
        elsewhere["name"] = json!("elsewhere");
        elsewhere["ipam"]["subnet"] = json!("10.7.0.0/24");
        let kept = lab.added(&elsewhere, &other);
        fine(&lab.one("GC", &config, &lost));
        assert_eq!(veths(lab), 3, "without a list there is nothing to do");
        config["cni.dev/valid-attachments"] = json!([{"containerID": live.container_id, "ifname": "eth0"}]);
        fine(&lab.one("GC", &config, &lost));
        assert_eq!((veths(lab), leases()), (2, 1));
        assert!(lab.snapshot().mentioning("10.6.0.3").is_empty());
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &live));
        fine(&lab.one("CHECK", &with_previous(&elsewhere, &kept), &other));
        traffic_flows(lab, &live_netns, "10.6.0.2".parse().unwrap(), "10.6.0.1".parse().unwrap());
    }

    fn status_fails_when_an_add_would(lab) {
        let (_netns, attachment) = attach(lab, "c1");
        let ok = config(json!({"cniVersion": "1.1.0", "ipMasq": true}));
        fine(&lab.one("STATUS", &ok, &attachment));
        for extra in [json!({"ipam": {"type": "missing-ipam"}}), json!({"mtu": 60}), json!({"ipMasqBackend": "x"})] {
            let mut config = ok.clone();
            for (key, value) in extra.as_object().unwrap() {
                config[key] = value.clone();
            }
            assert!(lab.one("STATUS", &config, &attachment).error().is_some(), "{extra}");
        }
    }

    fn published_ports_reach_it_from_everywhere(lab) {
        let list = network(&json!({"cniVersion": "1.0.0", "name": NETWORK, "plugins": [
            {"type": "ptp", "ipMasq": true, "ipam": {"type": "host-local", "subnet": "10.6.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}},
            {"type": "firewall"},
            {"type": "portmap", "capabilities": {"portMappings": true}}]}));
        let netns = lab.container("c1");
        let ports = json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]);
        let mut attachment = Attachment::new("c1", netns.path()).capability("portMappings", ports);
        lab.add(&list, &mut attachment);
        let _server = serve(&netns, Transport::Tcp, "10.6.0.2".parse().unwrap(), 80, "published");
        for from in [lab.host.outside(), lab.host.netns(), &netns] {
            assert_eq!(ask(from, Transport::Tcp, HOST_V4, 8080).server, "published");
        }
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
        no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
    }

    fn it_and_the_reference_set_undo_each_other(lab) {
        let theirs = reference();
        for backend in ["iptables"] {
            let (netns, attachment) = attach(lab, "c1");
            let config = config(json!({"ipMasq": true, "ipMasqBackend": backend}));
            for (adds, removes) in [(&theirs, &lab.ours), (&lab.ours, &theirs)] {
                let answer = one_of(adds, "ADD", &config, &attachment);
                fine(&answer);
                let known = with_previous(&config, &answer);
                fine(&one_of(&lab.ours, "CHECK", &known, &attachment));
                fine(&one_of(removes, "DEL", &known, &attachment));
                nothing_stays(lab, &netns);
            }
        }
    }
}
