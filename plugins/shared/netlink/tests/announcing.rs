//! Announcements, seen from the other side: a neighbour that knew an older holder of the address.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::net::IpAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use common::{bridge, host_and_container};
use netlink::{Handle, MacAddr, NewAddress, NewVeth, Station, Veth};

fn ip(args: &[&str]) -> String {
    let output = Command::new("ip")
        .args(args)
        .output()
        .expect("this test needs ip(8) from iproute2");
    assert!(
        output.status.success(),
        "ip {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// eth0 in the container on a bridge with addresses; the host believes somebody else has the container's.
fn stale_neighbour() -> (Handle, Handle, Veth) {
    let (host, container) = host_and_container();
    let br = bridge(&host, "cni0");
    let wanted = NewVeth {
        master: Some(br.index),
        host_up: true,
        ..NewVeth::new("eth0").unwrap()
    };
    let made = host.create_veth(&wanted, &container).unwrap();
    container.set_up(&made.container).unwrap();
    for address in ["10.1.2.1/24", "fd00::1/64"] {
        host.add_address(&br, &NewAddress::new(address.parse().unwrap()).nodad())
            .unwrap();
    }
    for address in ["10.1.2.3/24", "fd00::3/64"] {
        container
            .add_address(
                &made.container,
                &NewAddress::new(address.parse().unwrap()).nodad(),
            )
            .unwrap();
    }
    for address in ["10.1.2.3", "fd00::3"] {
        ip(&[
            "neigh",
            "replace",
            address,
            "lladdr",
            "02:00:00:00:00:99",
            "nud",
            "stale",
            "dev",
            "cni0",
        ]);
    }
    let deadline = Instant::now() + Duration::from_secs(10);
    host.wait_running(&made.host, deadline).unwrap();
    host.wait_running(&br, deadline).unwrap();
    (host, container, made)
}

/// What the host believes. The frame has been through the bridge when the send returns or a moment later.
fn believed(address: &str, wanted: &str) -> String {
    let deadline = Instant::now() + Duration::from_secs(5);
    loop {
        let entry = ip(&["neigh", "show", address, "dev", "cni0"]);
        if entry.contains(wanted) || Instant::now() > deadline {
            return entry;
        }
        std::thread::yield_now();
    }
}

sandboxed! {
    fn neighbours_learn_the_new_holder() {
        let (_host, container, made) = stale_neighbour();
        let addresses: [IpAddr; 2] = ["10.1.2.3".parse().unwrap(), "fd00::3".parse().unwrap()];
        container.announce(&made.container, made.container.mac, &addresses, Station::Host).unwrap();
        let mac = made.container.mac.to_string();
        for address in ["10.1.2.3", "fd00::3"] {
            let entry = believed(address, &mac);
            assert!(entry.contains(&mac) && !entry.contains("router"), "{entry}");
        }
    }

    fn routers_say_so() {
        let (_host, container, made) = stale_neighbour();
        container.announce(&made.container, made.container.mac, &["fd00::3".parse().unwrap()], Station::Router).unwrap();
        let entry = believed("fd00::3", "router");
        assert!(entry.contains("router") && entry.contains(&made.container.mac.to_string()), "{entry}");
    }

    fn link_that_is_down_is_told() {
        let (_host, container, made) = stale_neighbour();
        container.set_down(&made.container).unwrap();
        let error = container
            .announce(&made.container, MacAddr::random().unwrap(), &["10.1.2.3".parse().unwrap()], Station::Host)
            .unwrap_err();
        assert_eq!(error.to_string(), "cannot announce 10.1.2.3 on eth0: network is down");
        container.announce(&4711, made.container.mac, &["10.1.2.3".parse().unwrap()], Station::Host).unwrap_err();
    }
}
