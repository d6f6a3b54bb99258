//! Connection tracking entries of published UDP ports.

use std::sync::atomic::{AtomicU16, Ordering};

use super::sandbox::*;
use netfilter::{Flows, Netfilter, Protocol, PublishedPort};

fn port(host_ip: Option<&str>, host_port: u16, protocol: Protocol) -> PublishedPort {
    PublishedPort {
        host_ip: host_ip.map(|ip| ip.parse().unwrap()),
        host_port,
        protocol,
    }
}

/// An entry from a client's next port to `destination`, answered by `answering`.
fn entry(protocol: &str, destination: &str, dport: u16, answering: &str) {
    static NEXT: AtomicU16 = AtomicU16::new(4000);
    let client = if destination.contains(':') {
        "2001:db8::9"
    } else {
        "198.51.100.9"
    };
    let state = if protocol == "tcp" {
        "--state ESTABLISHED"
    } else {
        ""
    };
    let sport = NEXT.fetch_add(1, Ordering::Relaxed);
    sh(&format!(
        "conntrack -I -p {protocol} {state} -t 600 -s {client} -d {destination} --sport {sport} --dport {dport} \
         -r {answering} -q {client} --reply-port-src {dport} --reply-port-dst {sport}"
    ));
}

/// What is left, as `protocol destination:port>answering`.
fn left() -> Vec<String> {
    let text = sh(
        "conntrack -L -f ipv4 -o extended 2>/dev/null; conntrack -L -f ipv6 -o extended 2>/dev/null",
    );
    let mut all: Vec<_> = text
        .lines()
        .map(|line| {
            let values = |key: &str| -> Vec<String> {
                line.split(' ')
                    .filter_map(|word| word.strip_prefix(key))
                    .map(str::to_owned)
                    .collect()
            };
            let protocol = line.split_whitespace().nth(2).unwrap();
            format!(
                "{protocol} {}:{}>{}",
                values("dst=")[0],
                values("dport=")[0],
                values("src=")[1]
            )
        })
        .collect();
    all.sort();
    all
}

fn forget(ports: &[PublishedPort], flows: Flows<'_>) -> usize {
    Netfilter::open().unwrap().forget_udp(ports, flows).unwrap()
}

sandboxed! {
    /// Only flows to the published port go: no other port, protocol, nor anything that passes through.
    fn of_the_port_go_and_no_other() {
        sh("ip addr add 192.0.2.1/24 dev lo; ip addr add 2001:db8::1/64 dev lo nodad");
        entry("udp", "192.0.2.1", 53, "10.88.0.9");
        entry("udp", "192.0.2.1", 53000, "192.0.2.1");
        entry("udp", "127.0.0.5", 53, "127.0.0.5");
        entry("udp", "9.9.9.9", 53, "9.9.9.9");
        entry("tcp", "192.0.2.1", 53, "192.0.2.1");
        entry("udp", "2001:db8::1", 53, "fd00::9");
        entry("udp", "2001:db8::53", 53, "2001:db8::53");
        assert_eq!(left().len(), 7, "{:?}", left());
        assert_eq!(forget(&[port(None, 53, Protocol::Tcp)], Flows::All), 0);
        assert_eq!(forget(&[], Flows::All), 0);
        assert_eq!(forget(&[port(None, 53, Protocol::Udp)], Flows::All), 3);
        assert_eq!(left(), [
            "tcp 192.0.2.1:53>192.0.2.1",
            "udp 192.0.2.1:53000>192.0.2.1",
            "udp 2001:db8::53:53>2001:db8::53",
            "udp 9.9.9.9:53>9.9.9.9",
        ]);
    }

    /// A host address narrows it, an unspecified one only to its family.
    fn of_one_host_address_go_alone() {
        sh("ip addr add 192.0.2.1/24 dev lo; ip addr add 2001:db8::1/64 dev lo nodad");
        let make = || {
            entry("udp", "192.0.2.1", 53, "10.88.0.9");
            entry("udp", "127.0.0.1", 53, "10.88.0.9");
            entry("udp", "2001:db8::1", 53, "fd00::9");
        };
        make();
        assert_eq!(forget(&[port(Some("192.0.2.1"), 53, Protocol::Udp)], Flows::All), 1);
        assert_eq!(left().len(), 2);
        assert_eq!(forget(&[port(Some("::"), 53, Protocol::Udp)], Flows::All), 1);
        assert_eq!(left(), ["udp 127.0.0.1:53>10.88.0.9"]);
    }

    /// After a removal only the flows of the container go, after an addition all but those of the container.
    fn of_one_container_are_told_apart() {
        sh("ip addr add 192.0.2.1/24 dev lo; ip addr add 192.0.2.2/24 dev lo");
        let make = || {
            entry("udp", "192.0.2.1", 53, "10.88.0.2");
            entry("udp", "192.0.2.2", 53, "10.88.0.3");
        };
        let (container, ports) = (["10.88.0.2".parse().unwrap()], [port(None, 53, Protocol::Udp)]);
        make();
        assert_eq!(forget(&ports, Flows::To(&container)), 1);
        assert_eq!(left(), ["udp 192.0.2.2:53>10.88.0.3"]);
        entry("udp", "192.0.2.1", 53, "10.88.0.2");
        assert_eq!(forget(&ports, Flows::NotTo(&container)), 1);
        assert_eq!(left(), ["udp 192.0.2.1:53>10.88.0.2"]);
    }

    /// All ports are looked for at once, in those families only that the container has addresses of.
    fn of_several_ports_go_together() {
        sh("ip addr add 192.0.2.1/24 dev lo; ip addr add 2001:db8::1/64 dev lo nodad");
        let udp = |host_port| port(None, host_port, Protocol::Udp);
        let container = ["10.88.0.2".parse().unwrap()];
        assert_eq!(forget(&[udp(53), udp(54)], Flows::All), 0);
        for dport in [53, 54, 55] {
            entry("udp", "192.0.2.1", dport, "192.0.2.1");
            entry("udp", "2001:db8::1", dport, "2001:db8::1");
        }
        assert_eq!(forget(&[udp(53), port(Some("192.0.2.1"), 54, Protocol::Udp)], Flows::NotTo(&container)), 2);
        assert_eq!(forget(&[udp(53), udp(54)], Flows::All), 2);
        assert_eq!(left(), ["udp 192.0.2.1:55>192.0.2.1", "udp 2001:db8::1:55>2001:db8::1"]);
    }
}
