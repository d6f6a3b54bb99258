//! Addresses that were lost and come back, and namespaces in which one works at a time.
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

use common::{host_and_container, new_netns, veth};
use ipnetwork::IpNetwork;
use netlink::{Error, Handle, Locked, NewKind, VethEnd};

/// iproute2 in the container, and what it printed.
fn ip(container: &Handle, arguments: &str) -> String {
    let output = container
        .inside(|| Command::new("ip").args(arguments.split(' ')).output())
        .unwrap()
        .expect("this test needs ip(8) from iproute2");
    assert!(output.status.success(), "ip {arguments}");
    String::from_utf8(output.stdout).unwrap()
}

/// The global IPv6 addresses as iproute2 sees them, with their lifetimes, which go down second by second.
fn shown(container: &Handle) -> Vec<String> {
    let text = ip(container, "-o -6 address show dev eth0 scope global");
    let mut lines: Vec<String> = text
        .lines()
        .map(|line| {
            let words = line.split_whitespace().skip(2);
            let words = words.filter(|word| *word != "nodad" && !word.contains("sec"));
            words.collect::<Vec<_>>().join(" ")
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
    (host, container, made.container)
}

sandboxed! {
    fn lost_addresses_come_back_as_they_were() {
        let (_host, container, eth0) = container();
        for address in [
            "fd00::3/64 nodad", "fd00::4/128 nodad noprefixroute", "fd00::5/64 nodad valid_lft 5000 preferred_lft 3000",
            "fd00::6/64 nodad metric 77", "fd00::7 peer fd00::8/128 nodad",
        ] {
            ip(&container, &format!("-6 address add {address} dev eth0"));
        }
        let before = shown(&container);
        assert_eq!(before.len(), 5);
        let remembered = container.exact_addresses(&eth0).unwrap();
        container.set_down(&eth0).unwrap();
        assert!(shown(&container).is_empty(), "the kernel drops them");
        container.set_up(&eth0).unwrap();
        let net: IpNetwork = "fd00::3/64".parse().unwrap();
        for one in &remembered {
            let made = container.execute(&one.request(&eth0));
            // The kernel makes the link-local one by itself, sooner or later.
            assert!(made.is_ok() || one.address().scope == 253, "{made:?}");
            assert!(one.address().ip != net || container.execute(&one.request(&eth0)).unwrap_err().is_exists());
        }
        assert_eq!(shown(&container), before);
        let left = ip(&container, "-6 address show dev eth0 to fd00::5");
        assert!(left.contains("valid_lft 4") || left.contains("valid_lft 5000"), "{left}");
        let tentative = ip(&container, "-6 address show dev eth0 scope global tentative");
        assert!(!tentative.contains("inet6"), "{tentative}");
    }

    fn ipv4_addresses_are_remembered_too() {
        let (_host, container, eth0) = container();
        ip(&container, "address add 10.1.2.3/24 broadcast 10.1.2.255 label eth0:one dev eth0");
        let text = ip(&container, "-o -4 address show dev eth0");
        let remembered = container.exact_addresses(&eth0).unwrap();
        let one = remembered.iter().find(|one| one.address().ip.is_ipv4()).unwrap();
        container.delete_address(&eth0, one.address().ip).unwrap();
        container.execute(&one.request(&eth0)).unwrap();
        assert_eq!(ip(&container, "-o -4 address show dev eth0"), text);
    }

    fn one_at_a_time() {
        let path = new_netns("alone");
        let first = Locked::open(&path, Duration::ZERO).unwrap();
        assert!(first.find_link("lo").unwrap().is_some());
        let started = Instant::now();
        let error = Locked::open(&path, Duration::from_millis(200)).unwrap_err();
        assert!(matches!(error, Error::Locked { .. }), "{error}");
        assert!(error.to_string().contains("locked") && error.to_string().contains("process"), "{error}");
        assert!(started.elapsed() >= Duration::from_millis(200));
        drop(first);
        Locked::open(&path, Duration::from_secs(5)).unwrap();
        assert!(Locked::open("/run/netns/nowhere", Duration::ZERO).unwrap_err().is_netns_gone());
        assert!(!std::path::Path::new("/run/netns/nowhere").exists());
    }

    fn a_packet_over_a_link() {
        let (_host, container, eth0) = container();
        ip(&container, "address add 10.1.2.3/24 dev eth0");
        let way = container.way_over(eth0.index, "10.1.2.9".parse().unwrap()).unwrap();
        assert_eq!((way.oif, way.local), (eth0.index, false));
        assert!(container.way_over(eth0.index, "10.1.2.3".parse().unwrap()).unwrap().local);
        let lo = container.link("lo").unwrap();
        container.set_up(&lo).unwrap();
        assert_ne!(container.way_over(lo.index, "10.1.2.9".parse().unwrap()).ok().map(|way| way.oif), Some(eth0.index));
    }

    fn whether_there_are_vrfs_is_found_out_without_making_one() {
        let (_host, container) = host_and_container();
        let known = container.knows_kind(&NewKind::Vrf { table: 5 }).unwrap();
        let links = container.links().unwrap();
        assert_eq!(links.len(), 1);
        let made = container.inside(|| Command::new("ip").args(["link", "add", "v", "type", "vrf", "table", "5"]).output()).unwrap();
        assert_eq!(known, made.unwrap().status.success());
        if known {
            assert_eq!(container.link("v").unwrap().vrf_table(), Some(5));
        }
    }
}
