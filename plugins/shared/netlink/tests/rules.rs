//! Policy rules, and routes that are moved from one table to another.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

use common::{host_and_container, veth};
use ipnetwork::IpNetwork;
use netlink::{ExactRoute, Handle, NewAddress, NewRule, Rule, TABLE_MAIN, VethEnd};

fn net(text: &str) -> IpNetwork {
    text.parse().unwrap()
}

fn from(src: &str, table: u32) -> NewRule {
    NewRule {
        src: net(src),
        table,
        protocol: 203,
        priority: None,
    }
}

fn found(handle: &Handle, src: &str) -> Vec<Rule> {
    let rules = handle.rules(net(src).is_ipv6()).unwrap();
    rules
        .into_iter()
        .filter(|rule| rule.src == Some(net(src)))
        .collect()
}

/// iproute2 in the container, and what it printed.
fn ip(container: &Handle, arguments: &str) -> String {
    let output = container
        .inside(|| Command::new("ip").args(arguments.split(' ')).output())
        .unwrap()
        .expect("this test needs ip(8) from iproute2");
    assert!(output.status.success(), "ip {arguments}");
    String::from_utf8(output.stdout).unwrap()
}

/// A table as iproute2 sees it; the seconds until a route goes by itself do not count.
fn shown(container: &Handle, table: u32, ipv6: bool) -> Vec<String> {
    let family = if ipv6 { "-6 " } else { "" };
    let text = ip(container, &format!("{family}-d route show table {table}"));
    // The ways of a route follow it in lines of their own.
    let text = text.replace("\n\t", " ");
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let words = line.split_whitespace();
            let lasting = words.filter(|word| !word.ends_with("sec"));
            lasting.collect::<Vec<_>>().join(" ")
        })
        .collect();
    lines.sort();
    lines
}

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

fn in_table(container: &Handle, table: u32, ipv6: bool) -> Vec<ExactRoute> {
    let routes = container.exact_routes(ipv6).unwrap();
    routes
        .into_iter()
        .filter(|one| one.route().table == table)
        .collect()
}

sandboxed! {
    fn rules_come_and_go() {
        let (host, container) = host_and_container();
        for (src, table) in [("10.1.2.3/32", 100), ("10.1.0.0/16", 70_000), ("fd00::3/128", 254), ("fd00::/8", 4_294_967_295)] {
            let rule = from(src, table);
            container.add_rule(&rule).unwrap();
            let rules = found(&container, src);
            assert_eq!(rules.len(), 1);
            assert!(container.add_rule(&rules[0].to_new().unwrap()).unwrap_err().is_exists());
            assert_eq!((rules[0].table, rules[0].protocol, rules[0].plain), (table, 203, true));
            assert!(rules[0].priority > 0 && rules[0].priority < 32766);
            assert_eq!(rules[0].is_from(net(src).ip()), src.ends_with("/32") || src.ends_with("/128"));
            assert!(found(&host, src).is_empty());
            container.delete_rule(&rules[0].to_new().unwrap()).unwrap();
            assert!(found(&container, src).is_empty());
            assert!(container.delete_rule(&rule).unwrap_err().is_not_found());
        }
    }

    fn a_rule_of_somebody_else_is_another_one() {
        let (_host, container) = host_and_container();
        let (ours, theirs) = (from("10.1.2.3/32", 100), NewRule { protocol: 0, ..from("10.1.2.3/32", 100) });
        container.add_rule(&theirs).unwrap();
        container.add_rule(&ours).unwrap();
        assert_eq!(found(&container, "10.1.2.3/32").len(), 2);
        container.delete_rule(&ours).unwrap();
        let left = found(&container, "10.1.2.3/32");
        assert_eq!((left.len(), left[0].protocol), (1, 0));
    }

    fn only_what_the_source_decides_is_plain() {
        let (_host, container) = host_and_container();
        for (rule, plain) in [("", true), ("to 10.9.0.0/16", false), ("iif lo", false), ("oif lo", false), ("fwmark 7", false), ("not", false),
            ("tos 8", false), ("ipproto tcp", false), ("suppress_prefixlength 0", false), ("uidrange 0-0", false), ("dport 80", false)] {
            let not = if rule == "not" { "not " } else { "" };
            let rest = if not.is_empty() && !rule.is_empty() { format!(" {rule}") } else { String::new() };
            let text = format!("{not}from 10.1.2.3{rest} lookup 100");
            ip(&container, &format!("rule add {text}"));
            let rules = found(&container, "10.1.2.3/32");
            assert_eq!((rules.len(), rules[0].plain), (1, plain), "{text}");
            assert_eq!(rules[0].to_new().is_some(), plain);
            ip(&container, &format!("rule del {text}"));
        }
        ip(&container, "rule add from 10.1.2.3 prohibit");
        let rules = found(&container, "10.1.2.3/32");
        assert_eq!((rules[0].table, rules[0].plain), (0, false));
    }

    fn routes_are_moved_with_everything_about_them() {
        let (_host, container, eth0) = container();
        for route in [
            "route add default via 10.1.2.1 dev eth0 proto static metric 7 mtu 1400 advmss 1200 window 9000 rto_min 5ms",
            "route add 10.7.0.0/16 via 192.0.2.1 dev eth0 onlink",
            "route add 10.8.0.0/16 nexthop via 10.1.2.1 dev eth0 weight 3 nexthop via 10.1.2.2 dev eth0",
            "route add 10.9.0.0/16 dev eth0 scope link src 10.1.2.3 proto 99 tos 8",
            "-6 route add default via fd00::1 dev eth0 proto ra expires 500 pref high metric 99",
            "-6 route add fd08::/16 nexthop via fd00::1 dev eth0 nexthop via fd00::2 dev eth0 weight 2",
            "-6 route add fd09::/16 via fd00::1 dev eth0 src fd00::3 mtu 1300",
        ] {
            ip(&container, route);
        }
        for (ipv6, count) in [(false, 5), (true, 6)] {
            let before = in_table(&container, TABLE_MAIN, ipv6);
            // The routes above, and the kernel's own: to the network, and with IPv6 to link-local addresses. One of IPv6
            // has two ways.
            assert_eq!(before.len(), count);
            let listed = shown(&container, TABLE_MAIN, ipv6);
            assert!(before.iter().all(|one| one.route().next_hops.iter().all(|hop| hop.oif == eth0.index)));
            let mut ordered = before.clone();
            ordered.sort_by_key(|one| one.route().next_hops.iter().any(|hop| hop.gateway.is_some()));
            for one in &ordered {
                container.execute(&one.in_table(70_000).request()).unwrap();
                assert!(container.execute(&one.in_table(70_000).request()).unwrap_err().is_exists());
            }
            for one in ordered.iter().rev() {
                container.execute(&one.delete_request()).unwrap();
            }
            assert!(in_table(&container, TABLE_MAIN, ipv6).is_empty());
            assert_eq!(shown(&container, 70_000, ipv6), listed);
            for one in &ordered {
                container.execute(&one.request()).unwrap();
                container.execute(&one.in_table(70_000).delete_request()).unwrap();
            }
            assert_eq!(shown(&container, TABLE_MAIN, ipv6), listed);
            assert!(in_table(&container, 70_000, ipv6).is_empty());
        }
    }

    fn a_source_can_be_put_into_the_kernels_own_route() {
        let (_host, container, _eth0) = container();
        let to_network = |container: &Handle| {
            let mut all = in_table(container, TABLE_MAIN, true);
            all.retain(|one| one.route().dst == net("fd00::/64"));
            all
        };
        let before = to_network(&container);
        container.execute(&before[0].with_src("fd00::3".parse().unwrap()).replace_request()).unwrap();
        let after = to_network(&container);
        assert_eq!((after.len(), after[0].route().src), (1, Some("fd00::3".parse().unwrap())));
        assert_eq!(after[0].route().metric, before[0].route().metric);
        container.execute(&before[0].replace_request()).unwrap();
        assert_eq!(to_network(&container)[0].route().src, None);
    }
}
