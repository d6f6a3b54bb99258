//! Side by side with the reference set's host-local, on one data directory.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::path::PathBuf;

use common::*;
use serde_json::{Value, json};

/// Each of the two adds, the other deletes.
fn both_ways() -> [(PathBuf, PathBuf); 2] {
    [(OURS.into(), reference()), (reference(), OURS.into())]
}

fn add_with(net: &mut Net, program: &PathBuf, id: &str) -> Vec<String> {
    net.program.clone_from(program);
    net.add(id).addresses()
}

#[test]
fn one_adds_and_the_other_deletes() {
    for (adder, deleter) in both_ways() {
        for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"] {
            let mut net = Net::with_ranges(version, &[&["10.1.2.0/24"], &["2001:db8:1::/64"]]);
            assert_eq!(
                add_with(&mut net, &adder, "a"),
                ["10.1.2.2/24", "2001:db8:1::2/64"]
            );
            assert_eq!(
                add_with(&mut net, &adder, "b"),
                ["10.1.2.3/24", "2001:db8:1::3/64"]
            );
            net.program.clone_from(&deleter);
            if version >= "0.4.0" {
                assert!(net.check("a").ok);
            }
            assert!(!net.add("a").ok, "the other kind's lease must count");
            assert!(net.del("a").ok);
            assert_eq!(net.leases(), ["10.1.2.3", "2001:db8:1::3"]);
            assert!(net.del("b").ok);
            assert_eq!(
                net.files(),
                ["last_reserved_ip.0", "last_reserved_ip.1", "lock"]
            );
        }
    }
}

#[test]
fn taking_turns_gives_the_sequence_of_one() {
    let sets: [&[&str]; 2] = [&["10.1.2.0/28", "10.1.3.0/29"], &["2001:db8:1::/123"]];
    let sequence = |programs: &[PathBuf]| -> Vec<String> {
        let mut net = Net::with_ranges("1.0.0", &sets);
        let mut given = Vec::new();
        for step in 0..60 {
            let program = &programs[step % programs.len()];
            given.extend(add_with(&mut net, program, &format!("c{step}")));
            // Keep some, free most in another order than they came.
            if step % 4 != 0 {
                net.program
                    .clone_from(&programs[(step + 1) % programs.len()]);
                assert!(net.del(&format!("c{}", step - step % 2)).ok);
            }
            if step > 30 {
                assert!(net.del(&format!("c{}", step - 30)).ok);
            }
        }
        given.extend(net.files());
        given
    };
    let theirs = sequence(&[reference()]);
    assert_eq!(sequence(&[OURS.into()]), theirs);
    assert_eq!(sequence(&[OURS.into(), reference()]), theirs);
    assert_eq!(sequence(&[reference(), OURS.into()]), theirs);
}

#[test]
fn results_are_the_same() {
    let resolv = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        resolv.path(),
        "nameserver 192.0.2.1\ndomain a<b\nsearch c d\noptions e\n",
    )
    .unwrap();
    let ipam = json!({
        "subnet": "10.1.0.0/16", "rangeStart": "10.1.0.20", "rangeEnd": "10.1.3.20", "gateway": "10.1.0.254",
        "ranges": [[{"subnet": "2001:db8:1::/64", "rangeStart": "2001:db8:1::ff"}]],
        "resolvConf": resolv.path(),
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0", "gw": "2001:db8:1::1"}],
    });
    for version in ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0"] {
        let result = |program: PathBuf| {
            let mut net = Net::new(version, ipam.clone());
            net.program = program;
            let answer = net.add("a");
            assert!(answer.ok, "{answer:?}");
            answer
        };
        let (ours, theirs) = (result(OURS.into()), result(reference()));
        if version < "1.0.0" {
            assert_eq!(ours.stdout, theirs.stdout, "{version}");
        } else {
            // The order of the keys has changed between releases of the reference set.
            assert_eq!(ours.json(), theirs.json(), "{version}");
        }
    }
}

#[test]
fn the_same_configurations_are_refused() {
    let cases: [(Value, Value, &str); 14] = [
        (
            json!({"ranges": [[{"subnet": "10.1.2.0/31"}]]}),
            json!({}),
            "",
        ),
        (
            json!({"ranges": [[{"subnet": "10.1.2.3/24"}]]}),
            json!({}),
            "",
        ),
        (
            json!({"ranges": [[{"subnet": "10.1.2.0/24", "rangeStart": "10.1.3.1"}]]}),
            json!({}),
            "",
        ),
        (
            json!({"ranges": [[{"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.3"}]]}),
            json!({}),
            "",
        ),
        (
            json!({"ranges": [[{"subnet": "10.1.2.0/24"}, {"subnet": "2001:db8::/64"}]]}),
            json!({}),
            "",
        ),
        (
            json!({"ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.2.0/25"}]]}),
            json!({}),
            "",
        ),
        (json!({"ranges": []}), json!({}), ""),
        (json!({"ranges": [[]]}), json!({}), ""),
        (json!({"ranges": [[{}]]}), json!({}), ""),
        (json!({"subnet": "10.1.2.0"}), json!({}), ""),
        (
            json!({"subnet": "10.1.2.0/24"}),
            json!({"runtimeConfig": {"ips": [""]}}),
            "",
        ),
        (
            json!({"subnet": "10.1.2.0/24"}),
            json!({"args": {"cni": {"ips": ["10.1.3.1"]}}}),
            "",
        ),
        (json!({"subnet": "10.1.2.0/24"}), json!({}), "IP=10.1.2.1"),
        (json!({"subnet": "10.1.2.0/24"}), json!({}), "IP=bogus"),
    ];
    for (ipam, extra, args) in cases {
        for program in [OURS.into(), reference()] {
            let mut net = Net::new("1.0.0", ipam.clone());
            net.extra = extra.clone();
            net.program = program;
            let answer = net.call("ADD", "a", "eth0", args);
            assert!(
                !answer.ok,
                "{} {ipam} {extra} {args}",
                net.program.display()
            );
            assert!(net.leases().is_empty());
        }
    }
}

#[test]
fn the_same_ranges_are_accepted() {
    for range in [
        json!({"subnet": "10.1.2.0/30"}),
        json!({"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.0"}),
        json!({"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.255", "rangeEnd": "10.1.2.255"}),
        json!({"subnet": "10.1.2.0/24", "gateway": "192.0.2.1"}),
        json!({"subnet": "10.1.2.0/24", "gateway": "10.1.2.2", "rangeStart": "10.1.2.2"}),
        json!({"subnet": "10.1.2.0/24", "rangeStart": "::ffff:10.1.2.9"}),
        json!({"subnet": "2001:db8::/126"}),
        json!({"SUBNET": "2001:DB8::/64", "RangeStart": "2001:db8:0:0:0::A"}),
        json!({"subnet": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124", "rangeStart": "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}),
    ] {
        let given = |program: PathBuf| {
            let mut net = Net::new("1.0.0", json!({"ranges": [[range]]}));
            net.program = program;
            let answer = net.add("a");
            assert!(answer.ok, "{range} {answer:?}");
            (answer.addresses(), net.files())
        };
        assert_eq!(given(OURS.into()), given(reference()));
    }
}
