//! Taps, and shaping and redirecting traffic.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::fs::File;
use std::io::{Read, Write};
use std::process::Command;

use common::{host_and_container, veth};
use netlink::tc::{Place, Redirect, Tbf};
use netlink::tun::{NewTap, require_tun};
use netlink::{Error, Handle, Link, LinkChange, MacAddr, NewIfb, Request};

/// A tap that stays, set up.
fn tap(handle: &Handle, name: &str) -> Link {
    let new = NewTap {
        name: Some(name.to_owned()),
        ..NewTap::default()
    };
    handle.create_tap(&new).unwrap().persist().unwrap();
    let link = handle.link(name).unwrap();
    let quiet = LinkChange::new().no_link_local();
    handle.change_link(&link, &quiet).unwrap();
    handle.set_up(&link).unwrap();
    link
}

/// tc(8), which must succeed.
fn tc(arguments: &str) -> String {
    let output = Command::new("tc")
        .args(arguments.split_whitespace())
        .output()
        .expect("this test needs tc(8) from iproute2");
    assert!(
        output.status.success(),
        "tc {arguments}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn read(file: &mut File) -> Vec<u8> {
    let mut frame = vec![0; 2000];
    let length = file.read(&mut frame).unwrap();
    frame.truncate(length);
    frame
}

sandboxed! {
    fn a_tap_has_what_it_was_given_and_lasts_only_if_told() {
        let (host, _container) = host_and_container();
        require_tun().unwrap();
        let new = NewTap { name: Some("t0".into()), multi_queue: true, vnet_hdr: true, owner: Some(0), group: Some(0) };
        let made = host.create_tap(&new).unwrap();
        assert_eq!(made.name(), "t0");
        let link = host.link("t0").unwrap();
        assert!(link.is_tun() && !link.up);
        let tun = link.tun.unwrap();
        assert_eq!((tun.tap, tun.multi_queue, tun.vnet_hdr, tun.packet_info, tun.persistent), (true, true, true, false, false));
        assert_eq!((tun.owner, tun.group), (Some(0), Some(0)));
        drop(made);
        assert!(host.find_link("t0").unwrap().is_none(), "it went with its file");

        host.create_tap(&NewTap { name: Some("t0".into()), ..NewTap::default() }).unwrap().persist().unwrap();
        let tun = host.link("t0").unwrap().tun.unwrap();
        assert_eq!((tun.persistent, tun.multi_queue, tun.vnet_hdr), (true, false, false));
        assert_eq!((tun.owner, tun.group), (None, None));
    }

    fn names_of_taps_are_minded() {
        let (host, container) = host_and_container();
        let first = container.create_tap(&NewTap::default()).unwrap();
        let second = container.create_tap(&NewTap::default()).unwrap();
        assert_eq!((first.name(), second.name()), ("tap0", "tap1"));
        assert!(host.find_link("tap0").unwrap().is_none(), "it was made in the other namespace");
        for taken in ["tap0", "lo"] {
            let error = container.create_tap(&NewTap { name: Some(taken.into()), ..NewTap::default() }).unwrap_err();
            assert!(error.is_exists() && error.to_string().contains(taken), "{error}");
        }
        for bad in ["", "a/b", "tap%d", "sixteen-bytes-xx"] {
            let error = container.create_tap(&NewTap { name: Some(bad.into()), ..NewTap::default() }).unwrap_err();
            assert!(matches!(error, Error::BadName { .. }), "{bad:?}: {error}");
        }
    }

    fn a_limit_is_reported_as_it_was_set() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container).host;
        assert_eq!(host.qdisc(&made, Place::Root).unwrap().and_then(|qdisc| qdisc.handle), None);
        let limits = [
            Tbf { rate: 125_000, limit: 128_125, buffer: 15_625_000, burst: None },
            Tbf { rate: 12_500_000_000, limit: u32::MAX, buffer: 15, burst: None },
            Tbf { rate: 1, limit: 10_000, buffer: u32::MAX, burst: Some(10_000) },
        ];
        for limit in limits {
            host.execute(&Request::add_tbf(&made, &limit).unwrap()).unwrap();
            let found = host.qdisc(&made, Place::Root).unwrap().unwrap();
            assert_eq!((found.kind.as_str(), found.handle, found.link), ("tbf", Some(0x1_0000), made.index));
            let tbf = found.tbf.unwrap();
            assert_eq!((tbf.rate, tbf.limit), (limit.rate, limit.limit));
            assert!(limit.burst.is_some() || tbf.buffer == limit.buffer, "{tbf:?}");
            assert!(host.execute(&Request::add_tbf(&made, &limit).unwrap()).unwrap_err().is_exists());
            host.execute(&Request::delete_qdisc(&made, Place::Root).unwrap()).unwrap();
        }
        assert!(host.execute(&Request::delete_qdisc(&made, Place::Root).unwrap()).unwrap_err().is_not_found());
        assert!(host.qdisc(&4711, Place::Root).unwrap_err().is_not_found());
    }

    fn frames_come_out_where_they_are_redirected_to() {
        let (host, _container) = host_and_container();
        let (a, b) = (tap(&host, "ta"), tap(&host, "tb"));
        assert!(host.qdisc(&a, Place::Ingress).unwrap().is_none());
        host.execute(&Request::add_ingress(&a).unwrap()).unwrap();
        let place = host.qdisc(&a, Place::Ingress).unwrap().unwrap();
        assert_eq!(place.kind, "ingress");
        assert!(host.filters(&a, &place).unwrap().is_empty());
        let redirect = Redirect { to: b.index, priority: Some(9) };
        host.execute(&Request::add_redirect(&a, &place, &redirect).unwrap()).unwrap();
        let filters = host.filters(&a, &place).unwrap();
        let ours: Vec<_> = filters.iter().filter(|filter| filter.redirect.is_some()).collect();
        assert_eq!(ours.len(), 1);
        assert_eq!((ours[0].kind.as_str(), ours[0].priority, ours[0].redirect), ("u32", 9, Some(b.index)));

        let (mut into, mut out) = (host.open_tap(&a).unwrap(), host.open_tap(&b).unwrap());
        host.wait_running(&b, std::time::Instant::now() + std::time::Duration::from_secs(5)).unwrap();
        let frame = [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1], &[0x88, 0xb5], &[7; 50]].concat();
        into.write_all(&frame).unwrap();
        // What the kernel has to say of its own accord comes between.
        while read(&mut out) != frame {}

        host.execute(&Request::delete_filter(&a, ours[0]).unwrap()).unwrap();
        assert!(host.filters(&a, &place).unwrap().iter().all(|filter| filter.redirect.is_none()));
        let error = host.execute(&Request::delete_filter(&a, ours[0]).unwrap()).unwrap_err();
        assert!(error.is_not_found(), "{error}");
        drop((into, out));
        host.execute(&Request::delete_qdisc(&a, Place::Ingress).unwrap()).unwrap();
        assert!(host.qdisc(&a, Place::Ingress).unwrap().is_none());
    }

    fn filters_go_into_a_place_that_was_there() {
        let (host, _container) = host_and_container();
        let (a, b) = (tap(&host, "ta"), tap(&host, "tb"));
        tc("qdisc add dev ta clsact");
        let place = host.qdisc(&a, Place::Ingress).unwrap().unwrap();
        assert_eq!(place.kind, "clsact");
        assert!(host.execute(&Request::add_ingress(&a).unwrap()).unwrap_err().is_exists());
        let redirect = Redirect { to: b.index, priority: None };
        host.execute(&Request::add_redirect(&a, &place, &redirect).unwrap()).unwrap();
        assert!(tc("filter show dev ta ingress").contains("Egress Redirect to device tb"));
        assert!(tc("filter show dev ta egress").is_empty());
        host.delete_link(&b).unwrap();
        let left: Vec<_> = host.filters(&a, &place).unwrap().into_iter().filter_map(|filter| filter.redirect).collect();
        assert_eq!(left, [0], "its link is gone");
    }

    fn a_block_is_born_down_and_quiet() {
        let (host, _container) = host_and_container();
        let new = NewIfb { name: "block0".into(), mac: "02:00:00:00:00:05".parse::<MacAddr>().unwrap(), mtu: 1234 };
        let link = host.create_ifb(&new).unwrap();
        assert!(link.is_ifb() && !link.up);
        assert_eq!((link.mac, link.mtu, link.tx_queue_len), (Some(new.mac), 1234, 0));
        assert!(host.create_ifb(&new).unwrap_err().is_exists());
    }

    fn asking_what_the_kernel_can_do_changes_nothing() {
        let (host, _container) = host_and_container();
        let before = (host.links().unwrap(), tc("qdisc show"), tc("actions ls action mirred"));
        host.require_tbf().unwrap();
        host.require_redirect().unwrap();
        host.require_ifb().unwrap();
        assert_eq!(before, (host.links().unwrap(), tc("qdisc show"), tc("actions ls action mirred")));
    }
}
