//! sbr: packets leave by the interface whose address they carry.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use conformance::chain::{Attachment, Network};
use conformance::net::{HOST_V4, HOST_V6, Netns, OUTSIDE_V4, OUTSIDE_V6, Rtnl};
use conformance::probe::{BRIEFLY, PATIENCE, Transport, ask_from, ping};
use serde_json::{Value, json};

use super::support::{
    Lab, address_of, ask, fine, network, nft, no_answer, one_of, reference, refused, sandboxed,
    serve, tool,
};

/// A container whose eth1 some main plugin could have made: two addresses, a router for each, and a route through one.
struct Container {
    netns: Netns,
    attachment: Attachment,
    before: Vec<String>,
}

impl Container {
    fn new(lab: &Lab, id: &str) -> Self {
        let netns = lab.container(id);
        interface(lab, &netns, id, "eth1", 2);
        for route in [
            "route add default via 10.2.0.1 dev eth1 mtu 1400",
            "route add 10.99.0.0/16 via 10.2.0.5 dev eth1 proto static",
            "route add default via fd00:2::1 dev eth1",
        ] {
            ip(&netns, route);
        }
        let attachment = Attachment::new(id, netns.path()).ifname("eth1");
        let before = routing(&netns);
        Self {
            netns,
            attachment,
            before,
        }
    }

    fn is_as_before(&self) {
        assert_eq!(routing(&self.netns), self.before);
    }

    fn table(&self, table: u32) -> Vec<String> {
        let end = format!(" table {table}");
        let lines = routing(&self.netns);
        lines
            .iter()
            .filter_map(|line| line.strip_suffix(&end).map(str::to_owned))
            .collect()
    }

    /// Sources and tables of the rules that are not the kernel's.
    fn rules(&self) -> Vec<(String, u32)> {
        rules(&self.netns)
    }
}

/// An interface that is up, with the addresses 10.N.0.2/24 and fd00:N::2/64.
fn interface(lab: &Lab, netns: &Netns, id: &str, name: &str, number: u8) {
    let host = format!("v{number}-{id}");
    lab.rtnl().add_veth(&host, netns, name).unwrap();
    lab.rtnl().set_up(&host).unwrap();
    let inside = Rtnl::open(netns).unwrap();
    inside.set_up(name).unwrap();
    for address in [
        format!("10.{number}.0.2/24"),
        format!("fd00:{number}::2/64"),
    ] {
        inside.add_address(name, address.parse().unwrap()).unwrap();
    }
}

/// iproute2 in a namespace, and what it printed.
fn ip(netns: &Netns, arguments: &str) -> String {
    let program = tool("ip", "iproute2");
    let output = netns
        .run(|| {
            Ok(Command::new(program)
                .args(arguments.split(' '))
                .output()
                .unwrap())
        })
        .unwrap();
    assert!(
        output.status.success(),
        "ip {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Everything that decides where packets go, but for what the kernel does by itself.
fn routing(netns: &Netns) -> Vec<String> {
    let mut lines = Vec::new();
    for family in ["-4", "-6"] {
        for line in ip(netns, &format!("{family} -d rule")).lines() {
            lines.push(format!("{family} {}", line.trim()));
        }
        for line in ip(netns, &format!("{family} -d route show table all")).lines() {
            if line.contains(" table local ") || line.starts_with("multicast") {
                continue;
            }
            let mut words: Vec<&str> = line.split_whitespace().collect();
            let table = match words.iter().position(|word| *word == "table") {
                Some(at) => words.drain(at..at + 2).nth(1).unwrap(),
                None => "main",
            };
            lines.push(format!("{} table {table}", words.join(" ")));
        }
    }
    lines.sort();
    lines
}

fn rules(netns: &Netns) -> Vec<(String, u32)> {
    let mut found = Vec::new();
    for family in ["-4", "-6"] {
        for line in ip(netns, &format!("{family} rule")).lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if let Ok(table) = words[4].parse() {
                found.push((words[2].to_owned(), table));
            }
        }
    }
    found.sort();
    found
}

fn pair(source: &str, table: u32) -> (String, u32) {
    (source.to_owned(), table)
}

/// sbr alone, behind a result that some main plugin could have given.
fn config(extra: Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.1.0", "name": "sbr-net", "type": "sbr",
        "prevResult": {
            "cniVersion": "1.1.0",
            "interfaces": [{"name": "v2"}, {"name": "eth1", "sandbox": "/run/netns/c1"}],
            "ips": [
                {"address": "10.2.0.2/24", "gateway": "10.2.0.1", "interface": 1},
                {"address": "fd00:2::2/64", "gateway": "fd00:2::1", "interface": 1},
            ],
            "routes": [{"dst": "10.99.0.0/16", "gw": "10.2.0.5"}],
        },
    });
    extend(&mut config, extra);
    config
}

fn extend(config: &mut Value, extra: Value) {
    let extra = extra.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(extra);
}

#[track_caller]
fn works(lab: &Lab, config: &Value, container: &Container) {
    let answer = lab.one("ADD", config, &container.attachment);
    fine(&answer);
    assert_eq!(answer.json().unwrap(), config["prevResult"]);
    let now = routing(&container.netns);
    fine(&lab.one("CHECK", config, &container.attachment));
    assert_eq!(routing(&container.netns), now, "CHECK changes nothing");
}

#[track_caller]
fn leaves(lab: &Lab, config: &Value, container: &Container) {
    for _ in 0..2 {
        fine(&lab.one("DEL", config, &container.attachment));
        container.is_as_before();
    }
}

sandboxed! {
    fn each_address_gets_a_rule_and_a_table(lab) {
        let one = Container::new(lab, "c1");
        let before = lab.snapshot();
        let config = config(json!({}));
        works(lab, &config, &one);
        assert_eq!(one.rules(), [pair("10.2.0.2", 100), pair("fd00:2::2", 101)]);
        let (v4, v6) = (one.table(100), one.table(101));
        assert_eq!(v4.len(), 3, "{v4:?}");
        for (line, parts) in [
            (0, "unicast 10.2.0.0/24 dev eth1 proto kernel scope link src 10.2.0.2"),
            (1, "unicast 10.99.0.0/16 via 10.2.0.5 dev eth1 proto static scope global"),
            (2, "unicast default via 10.2.0.1 dev eth1 proto boot scope global mtu 1400"),
        ] {
            assert_eq!(v4[line], parts);
        }
        assert_eq!(v6.len(), 3, "{v6:?}");
        for (line, parts) in [(0, "unicast default via fd00:2::1 dev eth1"), (1, "unicast fd00:2::/64 dev eth1 proto kernel"),
            (2, "unicast fe80::/64 dev eth1 proto kernel")] {
            assert!(v6[line].starts_with(parts), "{v6:?}");
        }
        let main = ip(&one.netns, "-4 route");
        assert!(main.is_empty(), "{main}");
        assert!(!ip(&one.netns, "-6 route").contains("fd00"));
        leaves(lab, &config, &one);
        assert!(before.diff(&lab.snapshot()).is_empty(), "nothing on the host");
    }

    fn a_table_that_somebody_else_fills(lab) {
        let one = Container::new(lab, "c1");
        let config = config(json!({"table": 500, "gateways": ["nonsense"]}));
        works(lab, &config, &one);
        assert_eq!(one.rules(), [pair("10.2.0.2", 500), pair("fd00:2::2", 500)]);
        let routes = |lines: Vec<String>| lines.into_iter().filter(|line| line.starts_with("unicast")).collect::<Vec<_>>();
        assert_eq!(routes(routing(&one.netns)), routes(one.before.clone()), "routes are not touched");
        // Its routes are not ours to remove, even those over the interface.
        ip(&one.netns, "route add 10.7.0.0/16 via 10.2.0.1 dev eth1 table 500");
        fine(&lab.one("DEL", &config, &one.attachment));
        assert!(one.rules().is_empty());
        assert_eq!(one.table(500).len(), 1);
        ip(&one.netns, "route flush table 500");
        // It may be one that every namespace has.
        let mut in_main = config.clone();
        in_main["table"] = json!(254);
        works(lab, &in_main, &one);
        leaves(lab, &in_main, &one);
    }

    fn gateways_of_the_configuration_are_kept(lab) {
        let one = Container::new(lab, "c1");
        for (gateways, v4, v6) in [
            (json!(["10.2.0.99"]), "10.2.0.99", "fd00:2::1"),
            (json!(["fd00:2::99"]), "10.2.0.1", "fd00:2::99"),
            (json!(["fd00:2::99", "10.2.0.99"]), "10.2.0.99", "fd00:2::99"),
            (json!([]), "10.2.0.1", "fd00:2::1"),
            (Value::Null, "10.2.0.1", "fd00:2::1"),
        ] {
            let config = config(json!({"gateways": gateways}));
            works(lab, &config, &one);
            for (table, gateway) in [(100, v4), (101, v6)] {
                let routes = one.table(table);
                let defaults: Vec<_> = routes.iter().filter(|line| line.contains(" default ")).collect();
                assert_eq!(defaults.len(), 1, "{routes:?}");
                assert!(defaults[0].contains(&format!(" via {gateway} ")), "{gateways}: {defaults:?}");
            }
            fine(&lab.one("DEL", &config, &one.attachment));
            // The routers that were not wanted are not remembered.
            for route in ["route replace default via 10.2.0.1 dev eth1 mtu 1400", "-6 route replace default via fd00:2::1 dev eth1"] {
                ip(&one.netns, route);
            }
            one.is_as_before();
        }
        for bad in [json!(["10.2.0.1", "10.2.0.2"]), json!(["fd00::1", "fd00::2"]), json!(["10.0.0.1", "fd00::1", "fd00::2"]),
            json!(["10.2.0.1/24"]), json!(["x"]), json!("10.2.0.1")] {
            let config = config(json!({"gateways": bad}));
            refused(&lab.one("ADD", &config, &one.attachment), 7);
            one.is_as_before();
            fine(&lab.one("DEL", &config, &one.attachment));
        }
    }

    fn source_hints_keep_the_way_to_the_own_network(lab) {
        let one = Container::new(lab, "c1");
        let config = config(json!({"addSourceHints": true}));
        works(lab, &config, &one);
        let (v4, v6) = (ip(&one.netns, "-4 route"), ip(&one.netns, "-6 route show fd00:2::/64"));
        assert_eq!(v4.trim(), "10.2.0.0/24 dev eth1 proto kernel scope link src 10.2.0.2");
        assert!(v6.contains("dev eth1") && v6.contains("src fd00:2::2"), "{v6}");
        assert!(!ip(&one.netns, "-6 route").contains("default"));
        assert_eq!(one.table(100).len(), 3);
        // DEL puts back what was moved; the hint stays with the interface's own route.
        fine(&lab.one("DEL", &config, &one.attachment));
        assert!(one.rules().is_empty() && one.table(100).is_empty() && one.table(101).is_empty());
        assert!(ip(&one.netns, "-4 route").contains("default via 10.2.0.1"));
    }

    fn tables_in_use_are_left_alone(lab) {
        let one = Container::new(lab, "c1");
        ip(&one.netns, "link set lo up");
        ip(&one.netns, "route add 10.50.0.0/16 dev lo table 100");
        ip(&one.netns, "rule add from 10.60.0.1 lookup 101");
        ip(&one.netns, "-6 route add fd00:50::/64 dev lo table 102");
        ip(&one.netns, "-6 rule add fwmark 7 lookup 104");
        ip(&one.netns, "route add blackhole 10.70.0.0/16 table 105");
        let before = routing(&one.netns);
        let config = config(json!({}));
        works(lab, &config, &one);
        assert!(one.rules().contains(&pair("10.2.0.2", 103)) && one.rules().contains(&pair("fd00:2::2", 106)), "{:?}", one.rules());
        fine(&lab.one("DEL", &config, &one.attachment));
        assert_eq!(routing(&one.netns), before);
    }

    fn routes_of_others_stay_where_they_are(lab) {
        let one = Container::new(lab, "c1");
        interface(lab, &one.netns, "c1", "eth0", 1);
        ip(&one.netns, "route add 10.51.0.0/16 via 10.1.0.1 dev eth0");
        // An address of the interface that is not in the result, and a route that belongs to it.
        ip(&one.netns, "address add 10.3.0.2/24 dev eth1");
        ip(&one.netns, "route add 10.53.0.0/16 via 10.3.0.1 dev eth1");
        ip(&one.netns, "route add 10.54.0.0/16 dev eth1 src 10.3.0.2");
        ip(&one.netns, "route add 10.55.0.0/16 dev eth1");
        let before = routing(&one.netns);
        let mut config = config(json!({}));
        // A network of IPv4 only; what the interface has of IPv6 is somebody else's.
        config["prevResult"]["ips"].as_array_mut().unwrap().truncate(1);
        works(lab, &config, &one);
        let (main, own) = (one.table_of_main(), one.table(100));
        for (route, is_main, is_own) in [
            ("10.51.0.0/16", true, false), ("10.1.0.0/24", true, false), ("10.3.0.0/24", true, false), ("10.53.0.0/16", true, false),
            ("10.54.0.0/16", true, false), ("10.55.0.0/16", false, true), ("10.2.0.0/24", false, true), ("10.99.0.0/16", false, true),
            ("fd00:2::/64", true, false), ("default via fd00:2::1", true, false), ("default via 10.2.0.1", false, true),
        ] {
            let has = |lines: &[String]| lines.iter().any(|line| line.starts_with(&format!("unicast {route} ")));
            assert_eq!((has(&main), has(&own)), (is_main, is_own), "{route}\n{main:?}\n{own:?}");
        }
        fine(&lab.one("DEL", &config, &one.attachment));
        assert_eq!(routing(&one.netns), before);
    }

    fn a_router_outside_of_the_network(lab) {
        // As Calico gives it: an address alone, and a router that is on the link by decree.
        let netns = lab.container("c1");
        lab.rtnl().add_veth("v1", &netns, "eth1").unwrap();
        lab.rtnl().set_up("v1").unwrap();
        let inside = Rtnl::open(&netns).unwrap();
        inside.set_up("eth1").unwrap();
        inside.add_address("eth1", "10.2.0.2/32".parse().unwrap()).unwrap();
        ip(&netns, "route add 169.254.1.1 dev eth1 scope link");
        ip(&netns, "route add default via 169.254.1.1 dev eth1");
        let before = routing(&netns);
        let attachment = Attachment::new("c1", netns.path()).ifname("eth1");
        let mut config = config(json!({}));
        for gateway in [json!("169.254.1.1"), Value::Null, json!("192.0.2.200")] {
            config["prevResult"]["ips"] = json!([{"address": "10.2.0.2/32", "gateway": gateway, "interface": 1}]);
            config["prevResult"]["routes"] = json!([]);
            fine(&lab.one("ADD", &config, &attachment));
            fine(&lab.one("CHECK", &config, &attachment));
            let routes = ip(&netns, "route show table 100");
            assert!(routes.contains("default via 169.254.1.1") && routes.contains("169.254.1.1 dev eth1"), "{routes}");
            fine(&lab.one("DEL", &config, &attachment));
            assert_eq!(routing(&netns), before);
        }
        ip(&netns, "route del default");
        config["gateways"] = json!(["192.0.2.200"]);
        fine(&lab.one("ADD", &config, &attachment));
        assert!(ip(&netns, "route show table 100").contains("default via 192.0.2.200 dev eth1"));
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn a_failed_add_leaves_nothing_and_can_be_repeated(lab) {
        let one = Container::new(lab, "c1");
        for (broken, code) in [
            // No router has such an address; by the time the kernel says so, rules and routes were made.
            (json!({"gateways": ["224.0.0.1"]}), 999),
            (json!({"gateways": ["10.2.0.99", "ff02::1"]}), 999),
            (json!({"gateways": ["x"]}), 7),
            (json!({"table": -1}), 7),
        ] {
            for _ in 0..2 {
                let answer = lab.one("ADD", &config(broken.clone()), &one.attachment);
                refused(&answer, code);
                one.is_as_before();
            }
        }
        let good = config(json!({}));
        works(lab, &good, &one);
        assert_eq!(one.rules(), [pair("10.2.0.2", 100), pair("fd00:2::2", 101)]);
        // The same over what an earlier ADD has made.
        let now = routing(&one.netns);
        refused(&lab.one("ADD", &config(json!({"gateways": ["224.0.0.1"]})), &one.attachment), 999);
        assert_eq!(without_places(&routing(&one.netns)), without_places(&now));
        fine(&lab.one("CHECK", &good, &one.attachment));
        leaves(lab, &good, &one);
    }

    fn a_second_add_takes_the_place_of_the_first(lab) {
        let one = Container::new(lab, "c1");
        let config = config(json!({}));
        works(lab, &config, &one);
        let now = routing(&one.netns);
        works(lab, &config, &one);
        assert_eq!(without_places(&routing(&one.netns)), without_places(&now));
        leaves(lab, &config, &one);
        let mut given = config.clone();
        given["table"] = json!(500);
        for _ in 0..2 {
            works(lab, &given, &one);
            assert_eq!(one.rules().len(), 2);
        }
        // And one mode over the other.
        works(lab, &config, &one);
        assert_eq!(one.rules(), [pair("10.2.0.2", 100), pair("fd00:2::2", 101)]);
        leaves(lab, &given, &one);
    }

    fn del_without_a_namespace_makes_no_file(lab) {
        let one = Container::new(lab, "c1");
        let config = config(json!({}));
        works(lab, &config, &one);
        let path = one.netns.path().to_owned();
        let mut attachment = one.attachment.clone();
        attachment.netns = PathBuf::new();
        fine(&lab.one("DEL", &config, &attachment));
        drop(one);
        for netns in [path.as_path(), Path::new("/run/netns/x"), Path::new("/run/nowhere/x")] {
            attachment.netns = netns.to_owned();
            fine(&lab.one("DEL", &config, &attachment));
            assert!(!netns.exists());
            let answer = lab.one("ADD", &config, &attachment);
            refused(&answer, 8);
            assert!(!netns.exists());
        }
        // What the reference set has left there.
        fs::write("/run/netns/x", "").unwrap();
        attachment.netns = "/run/netns/x".into();
        fine(&lab.one("DEL", &config, &attachment));
        refused(&lab.one("ADD", &config, &attachment), 8);
        fs::remove_file("/run/netns/x").unwrap();
    }

    fn del_finds_rules_whose_address_is_gone(lab) {
        for (number, forget) in [true, false].into_iter().enumerate() {
            let one = Container::new(lab, &format!("c{number}"));
            interface(lab, &one.netns, &format!("c{number}"), "eth0", 1);
            let mut other = config(json!({}));
            other["prevResult"]["interfaces"][1]["name"] = json!("eth0");
            other["prevResult"]["ips"] = json!([{"address": "10.1.0.2/24", "gateway": "10.1.0.1", "interface": 1}]);
            other["prevResult"]["routes"] = json!([]);
            let mut config = config(json!({}));
            for gone in ["address flush dev eth1", "link del eth1"] {
                works(lab, &config, &one);
                fine(&lab.one("ADD", &other, &one.attachment.clone().ifname("eth0")));
                assert_eq!(one.rules().len(), 3);
                ip(&one.netns, gone);
                if forget {
                    config.as_object_mut().unwrap().remove("prevResult");
                }
                fine(&lab.one("DEL", &config, &one.attachment));
                // Those of the other interface stay.
                assert_eq!(one.rules(), [pair("10.1.0.2", 102)], "{gone}, {forget}");
                fine(&lab.one("CHECK", &other, &one.attachment.clone().ifname("eth0")));
                fine(&lab.one("DEL", &other, &one.attachment.clone().ifname("eth0")));
                assert!(one.rules().is_empty());
                if gone.starts_with("address") {
                    config = super::sbr::config(json!({}));
                    for command in ["address add 10.2.0.2/24 dev eth1", "-6 address add fd00:2::2/64 dev eth1 nodad",
                        "route add 10.99.0.0/16 via 10.2.0.5 dev eth1"] {
                        ip(&one.netns, command);
                    }
                }
            }
        }
    }

    fn a_rule_of_somebody_else_stays(lab) {
        let one = Container::new(lab, "c1");
        ip(&one.netns, "rule add from 10.2.0.2 lookup 700 priority 1000");
        ip(&one.netns, "rule add from 10.2.0.2 lookup 701");
        ip(&one.netns, "rule add from 10.2.0.2 to 10.9.0.0/16 lookup 702");
        ip(&one.netns, "route add 10.9.0.0/16 dev eth1 table 701 proto static");
        ip(&one.netns, "-6 rule add from fd00:2::2 lookup 500");
        let before = routing(&one.netns);
        for config in [config(json!({})), config(json!({"table": 700}))] {
            works(lab, &config, &one);
            fine(&lab.one("DEL", &config, &one.attachment));
            assert_eq!(routing(&one.netns), before);
        }
        works(lab, &config(json!({})), &one);
        fine(&lab.one("DEL", &config(json!({})), &one.attachment));
        fine(&lab.one("DEL", &config(json!({})), &one.attachment));
        assert_eq!(routing(&one.netns), before);
    }

    fn what_a_killed_add_has_left_is_taken_away(lab) {
        let one = Container::new(lab, "c1");
        // A rule without routes: killed right after it was made; and one whose interface is long gone.
        ip(&one.netns, "rule add from 10.2.0.2 lookup 100 protocol 203");
        ip(&one.netns, "rule add from 10.44.0.2 lookup 101 protocol 203");
        let config = config(json!({}));
        works(lab, &config, &one);
        assert_eq!(one.rules(), [pair("10.2.0.2", 100), pair("fd00:2::2", 101)]);
        leaves(lab, &config, &one);
    }

    fn check_tells_each_loss(lab) {
        let one = Container::new(lab, "c1");
        let whole = config(json!({}));
        let named = config(json!({"gateways": ["10.2.0.99"]}));
        for (config, lost) in [
            (&whole, "rule del from 10.2.0.2"), (&whole, "-6 rule del from fd00:2::2"), (&whole, "route del default table 100"),
            (&whole, "-6 route del default table 101"), (&whole, "route del 10.2.0.0/24 table 100"), (&whole, "route del 10.99.0.0/16 table 100"),
            (&whole, "route flush table 100"), (&named, "route replace default via 10.2.0.1 dev eth1 table 100"), (&whole, "link set eth1 name eth9"),
        ] {
            works(lab, config, &one);
            ip(&one.netns, lost);
            let now = routing(&one.netns);
            let answer = lab.one("CHECK", config, &one.attachment);
            refused(&answer, 999);
            assert_eq!(routing(&one.netns), now);
            if lost.starts_with("link") {
                break;
            }
            fine(&lab.one("DEL", config, &one.attachment));
            // What was lost does not come back by itself.
            for command in ["route replace 10.2.0.0/24 dev eth1 proto kernel scope link src 10.2.0.2",
                "-6 route replace fd00:2::/64 dev eth1 proto kernel metric 256", "route replace 10.99.0.0/16 via 10.2.0.5 dev eth1 proto static",
                "route replace default via 10.2.0.1 dev eth1 mtu 1400", "-6 route replace default via fd00:2::1 dev eth1"] {
                ip(&one.netns, command);
            }
            for table in [100, 101] {
                for family in ["-4", "-6"] {
                    if ip(&one.netns, &format!("{family} route show table all")).contains(&format!("table {table}")) {
                        ip(&one.netns, &format!("{family} route flush table {table}"));
                    }
                }
            }
            one.is_as_before();
        }
        let given = config(json!({"table": 500}));
        let two = Container::new(lab, "c2");
        works(lab, &given, &two);
        ip(&two.netns, "rule del from 10.2.0.2 lookup 500");
        refused(&lab.one("CHECK", &given, &two.attachment), 999);
    }

    fn a_result_without_addresses_is_refused(lab) {
        let one = Container::new(lab, "c1");
        for (ips, code) in [(json!([]), Some(999)), (json!([{"address": "10.8.0.2/24", "interface": 0}]), None)] {
            let mut config = config(json!({}));
            config["prevResult"]["ips"] = ips;
            let answer = lab.one("ADD", &config, &one.attachment);
            match code {
                Some(code) => drop(refused(&answer, code)),
                // An address of another interface is none of ours.
                None => fine(&answer),
            }
            one.is_as_before();
            fine(&lab.one("DEL", &config, &one.attachment));
        }
        let alone = json!({"cniVersion": "0.2.0", "name": "n", "type": "sbr"});
        let text = refused(&lab.one("ADD", &alone, &one.attachment), 999);
        assert!(text.contains("chained"), "{text}");
        fine(&lab.one("DEL", &alone, &one.attachment));
        // One that does not say which interface it is for counts, as does one that points nowhere.
        for interface in [Value::Null, json!(7)] {
            let mut config = config(json!({}));
            config["prevResult"]["ips"] = json!([{"address": "10.2.0.2/24", "interface": interface}]);
            config["prevResult"]["routes"] = json!([]);
            fine(&lab.one("ADD", &config, &one.attachment));
            assert_eq!(one.rules(), [pair("10.2.0.2", 100)]);
            leaves(lab, &config, &one);
        }
    }

    fn early_versions_are_served_too(lab) {
        let one = Container::new(lab, "c1");
        let modern = json!({"interfaces": [{"name": "eth1", "sandbox": "x"}],
            "ips": [{"version": "4", "address": "10.2.0.2/24", "gateway": "10.2.0.1", "interface": 0}]});
        for (version, result) in [("0.2.0", json!({"ip4": {"ip": "10.2.0.2/24", "gateway": "10.2.0.1"}})), ("0.3.0", modern.clone()), ("0.4.0", modern)] {
            // A result need not repeat the version.
            let config = json!({"cniVersion": version, "name": "n", "type": "sbr", "prevResult": result});
            let answer = lab.one("ADD", &config, &one.attachment);
            fine(&answer);
            assert_eq!(answer.json().unwrap()["cniVersion"], version);
            assert_eq!(one.rules(), [pair("10.2.0.2", 100)]);
            leaves(lab, &config, &one);
        }
    }

    fn what_the_reference_set_made_ours_takes_away_and_the_other_way_round(lab) {
        let theirs = reference();
        let one = Container::new(lab, "c1");
        // What Debian ships knows no 1.1.0.
        let mut config = config(json!({"cniVersion": "1.0.0"}));
        config["prevResult"]["cniVersion"] = json!("1.0.0");
        ip(&one.netns, "rule add from 10.2.0.2 lookup 700");
        fine(&one_of(&theirs, "ADD", &config, &one.attachment));
        assert_eq!(one.rules().len(), 3);
        fine(&lab.one("CHECK", &config, &one.attachment));
        fine(&lab.one("DEL", &config, &one.attachment));
        assert_eq!(one.rules(), [pair("10.2.0.2", 700)]);
        assert!(one.table(100).is_empty() && one.table(101).is_empty(), "{:?}", routing(&one.netns));
        ip(&one.netns, "rule del from 10.2.0.2 lookup 700");
        fine(&lab.one("ADD", &config, &one.attachment));
        fine(&one_of(&theirs, "DEL", &config, &one.attachment));
        assert!(one.rules().is_empty());
        // A later release than Debian's knows `table`; its rule looks as one by hand.
        ip(&one.netns, "rule add from 10.2.0.2 lookup 500");
        config["table"] = json!(500);
        fine(&lab.one("DEL", &config, &one.attachment));
        assert!(one.rules().is_empty());
    }

    fn two_at_once_in_one_container_get_different_tables(lab) {
        for round in 0..5 {
            let id = format!("c{round}");
            let netns = lab.container(&id);
            let names: Vec<String> = (1..5).map(|number| format!("eth{number}")).collect();
            for (name, number) in names.iter().zip(1..) {
                interface(lab, &netns, &id, name, number);
            }
            std::thread::scope(|scope| {
                for (name, number) in names.iter().zip(1..) {
                    let config = json!({"cniVersion": "1.0.0", "name": "n", "type": "sbr", "prevResult": {"cniVersion": "1.0.0",
                        "interfaces": [{"name": name, "sandbox": "x"}],
                        "ips": [{"address": format!("10.{number}.0.2/24"), "gateway": format!("10.{number}.0.1"), "interface": 0}]}});
                    let attachment = Attachment::new(&id, netns.path()).ifname(name);
                    let runtime = &lab.ours;
                    scope.spawn(move || fine(&one_of(runtime, "ADD", &config, &attachment)));
                }
            });
            let mut tables: Vec<u32> = rules(&netns).into_iter().map(|(_, table)| table).collect();
            tables.sort_unstable();
            assert_eq!(tables, [100, 101, 102, 103]);
        }
    }

    fn a_stuck_holder_of_the_lock_is_not_waited_for_forever(lab) {
        let one = Container::new(lab, "c1");
        let file = File::open(one.netns.path()).unwrap();
        let _held = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap();
        let answer = lab.one("ADD", &config(json!({})), &one.attachment);
        let text = refused(&answer, 11);
        assert!(text.contains("locked"), "{text}");
        assert!(answer.took < Duration::from_secs(25), "{:?}", answer.took);
        one.is_as_before();
    }

    fn status_and_gc_have_little_to_do(lab) {
        for (extra, good) in [(json!({}), true), (json!({"table": 5}), true), (json!({"table": 0}), false), (json!({"gateways": ["x"]}), false)] {
            let mut config = config(extra);
            config["cni.dev/valid-attachments"] = json!([]);
            for verb in ["STATUS", "GC"] {
                let answer = lab.ours.bare("sbr", verb).unwrap().stdin(config.to_string()).run().unwrap();
                if good || verb == "GC" {
                    fine(&answer);
                } else {
                    refused(&answer, 7);
                }
            }
        }
    }

    fn packets_leave_by_the_interface_whose_address_they_carry(lab) {
        tool("nft", "nftables");
        let list = |number: u8, plugins: Value| {
            let mut all = vec![json!({"type": "bridge", "bridge": format!("br{number}"), "isDefaultGateway": true,
                "ipam": {"type": "host-local", "ranges": [[{"subnet": format!("10.{number}.0.0/24")}], [{"subnet": format!("fd00:{number}::/64")}]]}})];
            all.extend(plugins.as_array().unwrap().clone());
            network(&json!({"cniVersion": "1.1.0", "name": format!("net{number}"), "plugins": all}))
        };
        // Either network takes no packets of the other, as any careful provider does.
        nft("table inet guard { chain pre { type filter hook prerouting priority -300; \
            iifname br1 ip saddr 10.2.0.0/24 drop; iifname br2 ip saddr 10.1.0.0/24 drop; \
            iifname br1 ip6 saddr fd00:2::/64 drop; iifname br2 ip6 saddr fd00:1::/64 drop; }; }");
        let outside = Rtnl::open(lab.host.outside()).unwrap();
        for number in [1, 2] {
            outside.add_route(format!("10.{number}.0.0/24").parse().unwrap(), HOST_V4).unwrap();
            outside.add_route(format!("fd00:{number}::/64").parse().unwrap(), HOST_V6).unwrap();
        }
        let _outside = [OUTSIDE_V4, OUTSIDE_V6].map(|address| serve(lab.host.outside(), Transport::Tcp, address, 7000, "outside"));
        let attach = |netns: &Netns, lists: [&Network; 2]| {
            let mut attachments = ["eth0", "eth1"].map(|ifname| Attachment::new("c1", netns.path()).ifname(ifname));
            for (list, attachment) in lists.iter().zip(&mut attachments) {
                lab.add(list, attachment);
            }
            attachments
        };
        let netns = lab.container("c1");
        let (plain, first) = (list(2, json!([])), list(1, json!([])));
        let attachments = attach(&netns, [&first, &plain]);
        // Without the plugin the answers of one interface get lost.
        for v4 in [true, false] {
            let address = address_of(attachments[0].result.as_ref().unwrap(), v4);
            let other = address_of(attachments[1].result.as_ref().unwrap(), v4);
            let _servers = [address, other].map(|address| serve(&netns, Transport::Tcp, address, 80, "web"));
            let answers = [address, other].map(|address| {
                let to = std::net::SocketAddr::new(address, 80);
                conformance::probe::ask(lab.host.outside(), Transport::Tcp, to, BRIEFLY).is_ok()
            });
            assert_ne!(answers, [true, true]);
        }
        lab.del(&plain, &attachments[1]);
        lab.del(&first, &attachments[0]);
        // With it, each interface answers for itself, and the first one stays the way for everything else.
        let routed = list(2, json!([{"type": "sbr"}]));
        let attachments = attach(&netns, [&first, &routed]);
        for v4 in [true, false] {
            for (attachment, name) in attachments.iter().zip(["one", "two"]) {
                let address = address_of(attachment.result.as_ref().unwrap(), v4);
                let _server = serve(&netns, Transport::Tcp, address, 80, name);
                assert_eq!(ask(lab.host.outside(), Transport::Tcp, address, 80).server, name);
                let to = std::net::SocketAddr::new(if v4 { OUTSIDE_V4 } else { OUTSIDE_V6 }, 7000);
                let seen = ask_from(&netns, Transport::Tcp, std::net::SocketAddr::new(address, 0), to, PATIENCE).unwrap();
                assert_eq!(seen.peer, address);
            }
            let first_address = address_of(attachments[0].result.as_ref().unwrap(), v4);
            assert_eq!(ask(&netns, Transport::Tcp, if v4 { OUTSIDE_V4 } else { OUTSIDE_V6 }, 7000).peer, first_address);
        }
        ping(&netns, "fd00:2::1".parse().unwrap(), PATIENCE).unwrap();
        // The plugin that made the interface finds its routes where they are now.
        lab.check(&routed, &attachments[1]);
        lab.check(&first, &attachments[0]);
        lab.del(&routed, &attachments[1]);
        for extra in [json!({"gateways": ["10.2.0.9", "fd00:2::9"]}), json!({"addSourceHints": true}), json!({"table": 7})] {
            let mut other = routed.clone();
            extend(&mut other.plugins[1], extra);
            let mut attachment = Attachment::new("c1", netns.path()).ifname("eth1");
            lab.add(&other, &mut attachment);
            lab.check(&other, &attachment);
            let address = address_of(attachment.result.as_ref().unwrap(), false);
            ip(&netns, &format!("-6 rule del from {address}"));
            lab.ours.check(&other, &attachment).expect_err("a rule is gone");
            lab.del(&other, &attachment);
        }
        assert!(rules(&netns).is_empty());
        ask(&netns, Transport::Tcp, OUTSIDE_V4, 7000);
        lab.del(&first, &attachments[0]);
        no_answer(&netns, Transport::Tcp, OUTSIDE_V4, 7000);
    }
}

impl Container {
    fn table_of_main(&self) -> Vec<String> {
        let lines = routing(&self.netns);
        lines
            .iter()
            .filter_map(|line| line.strip_suffix(" table main").map(str::to_owned))
            .collect()
    }
}

/// The same without the places of rules, which the kernel chooses anew.
fn without_places(lines: &[String]) -> Vec<String> {
    let mut all: Vec<String> = lines
        .iter()
        .map(|line| match line.split_once(":\t") {
            Some((_, rule)) => rule.to_owned(),
            None => line.clone(),
        })
        .collect();
    all.sort();
    all
}
