//! What users of the reference set rely on, for every version of the specification.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::*;
use serde_json::json;

#[test]
fn addresses_routes_and_dns_and_exact_files() {
    for version in VERSIONS {
        let mut net = Net::with_ranges(
            version,
            &[&["10.1.2.0/24", "10.1.3.0/24"], &["2001:db8:1::/64"]],
        );
        let resolv = net.tmp.path().join("resolv.conf");
        fs::write(&resolv, "nameserver 192.0.2.3\nsearch example\n").unwrap();
        net.ipam["resolvConf"] = resolv.to_str().unwrap().into();
        net.ipam["routes"] = json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "192.168.0.0/16", "gw": "10.1.2.9"}]);

        let answer = net.add("dummy");
        assert_eq!(
            answer.addresses(),
            ["10.1.2.2/24", "2001:db8:1::2/64"],
            "{version}"
        );
        assert_eq!(answer.stderr, "", "{version}");
        let result = answer.json();
        assert_eq!(
            result["dns"]["nameservers"],
            json!(["192.0.2.3"]),
            "{version}"
        );
        assert_eq!(result["dns"]["search"], json!(["example"]));
        if version < "0.3.0" {
            assert_eq!(result["ip4"]["gateway"], "10.1.2.1");
            assert_eq!(result["ip6"]["gateway"], "2001:db8:1::1");
            assert_eq!(
                result["ip4"]["routes"],
                json!([{"dst": "0.0.0.0/0"}, {"dst": "192.168.0.0/16", "gw": "10.1.2.9"}])
            );
            assert_eq!(result["ip6"]["routes"], json!([{"dst": "::/0"}]));
        } else {
            assert_eq!(result["ips"][0]["gateway"], "10.1.2.1");
            assert!(
                result["ips"][0].get("interface").is_none() && result.get("interfaces").is_none()
            );
            assert_eq!(
                result["routes"],
                json!([{"dst": "0.0.0.0/0"}, {"dst": "::/0"}, {"dst": "192.168.0.0/16", "gw": "10.1.2.9"}])
            );
        }

        assert_eq!(
            net.files(),
            [
                "10.1.2.2",
                "2001:db8:1::2",
                "last_reserved_ip.0",
                "last_reserved_ip.1",
                "lock"
            ]
        );
        assert_eq!(net.read("10.1.2.2"), "dummy\r\neth0");
        assert_eq!(net.read("2001:db8:1::2"), "dummy\r\neth0");
        assert_eq!(net.read("last_reserved_ip.0"), "10.1.2.2");
        assert_eq!(net.read("last_reserved_ip.1"), "2001:db8:1::2");
        let mode = |name: &str| {
            fs::metadata(net.dir().join(name))
                .unwrap()
                .permissions()
                .mode()
                & 0o777
        };
        assert_eq!(
            (mode("10.1.2.2"), mode("last_reserved_ip.0")),
            (0o600, 0o600)
        );

        assert!(net.del("dummy").ok);
        assert_eq!(
            net.files(),
            ["last_reserved_ip.0", "last_reserved_ip.1", "lock"]
        );
    }
}

#[test]
fn several_sets_of_one_family_need_0_3_0() {
    for version in VERSIONS {
        let net = Net::with_ranges(
            version,
            &[&["10.1.2.0/24"], &["10.2.2.0/24"], &["2001:db8:1::/64"]],
        );
        let answer = net.add("dummy");
        if version < "0.3.0" {
            let (code, text) = answer.error();
            assert!(
                code == 7 && text.contains("more than 1 address per family"),
                "{text}"
            );
            assert!(!net.dir().exists());
        } else {
            assert_eq!(
                answer.addresses(),
                ["10.1.2.2/24", "10.2.2.2/24", "2001:db8:1::2/64"]
            );
        }
    }
}

#[test]
fn interfaces_of_one_container_are_apart() {
    for version in VERSIONS {
        let net = Net::with_ranges(version, &[&["10.1.2.0/24"]]);
        assert_eq!(
            net.call("ADD", "dummy", "eth0", "").addresses(),
            ["10.1.2.2/24"]
        );
        assert_eq!(
            net.call("ADD", "dummy", "eth1", "").addresses(),
            ["10.1.2.3/24"]
        );
        assert!(net.call("DEL", "dummy", "eth0", "").ok);
        assert_eq!(net.leases(), ["10.1.2.3"]);
        assert!(net.call("DEL", "dummy", "eth1", "").ok);
        assert!(net.leases().is_empty());
    }
}

#[test]
fn a_repeated_add_is_refused_and_says_what_to_do() {
    for version in VERSIONS {
        let net = Net::with_ranges(version, &[&["10.1.2.0/24"]]);
        net.add("dummy").addresses();
        let (code, text) = net.add("dummy").error();
        assert_eq!(code, 999);
        let file = net.dir().join("10.1.2.2");
        for part in [
            "10.1.2.2",
            "container dummy (eth0)",
            file.to_str().unwrap(),
            "duplicate allocation is not allowed",
            "DEL that attachment first",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(net.leases(), ["10.1.2.2"]);
    }
}

#[test]
fn del_knows_the_early_format() {
    for version in VERSIONS {
        let net = Net::with_ranges(version, &[&["10.1.2.0/24"]]);
        net.write("10.1.2.2", "dummy");
        net.write("10.1.2.3", " dummy2\n");
        net.write("10.1.2.4", "other");
        assert!(net.del("dummy").ok);
        assert!(net.del("dummy2").ok);
        assert_eq!(net.leases(), ["10.1.2.4"]);
    }
}

#[test]
fn del_of_an_unknown_container_is_silent_and_makes_nothing() {
    for version in VERSIONS {
        let net = Net::with_ranges(version, &[&["10.1.2.0/24"]]);
        let answer = net.del("unknown");
        assert!(
            answer.ok && answer.stdout.is_empty() && answer.stderr.is_empty(),
            "{answer:?}"
        );
        assert!(!net.dir().exists());
    }
}

#[test]
fn requested_addresses_of_each_place() {
    for version in VERSIONS {
        let net = Net::with_ranges(version, &[&["10.1.2.0/24"]]);
        let args = "IgnoreUnknown=1;K8S_POD_NAME=x;IP=10.1.2.88";
        assert_eq!(
            net.call("ADD", "a", "eth0", args).addresses(),
            ["10.1.2.88/24"]
        );
        // Keys that are meant for others need no permission.
        assert_eq!(
            net.call("ADD", "b", "eth0", "IP=10.1.2.89/24;MAC=aa;")
                .addresses(),
            ["10.1.2.89/24"]
        );
        let mut net = net;
        net.extra = json!({"args": {"cni": {"ips": ["10.1.2.90/24"]}}});
        assert_eq!(net.add("c").addresses(), ["10.1.2.90/24"]);
        net.extra = json!({"runtimeConfig": {"ips": ["10.1.2.91"]}});
        assert_eq!(net.add("d").addresses(), ["10.1.2.91/24"]);
        net.extra = json!({});
        assert_eq!(net.add("e").addresses(), ["10.1.2.92/24"]);
    }
}

#[test]
fn requested_addresses_of_several_ranges_and_both_families() {
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let mut net = Net::with_ranges(
            version,
            &[&["10.1.2.0/24"], &["10.1.3.0/24"], &["2001:db8:1::/64"]],
        );
        net.extra = json!({"args": {"cni": {"ips": ["2001:db8:1::999", "10.1.3.99"]}}});
        assert_eq!(
            net.call("ADD", "a", "eth0", "IP=10.1.2.77").addresses(),
            ["10.1.2.77/24", "10.1.3.99/24", "2001:db8:1::999/64"]
        );
    }
}

#[test]
fn a_requested_address_of_no_range_fails_the_call() {
    for version in VERSIONS {
        let net = Net::with_ranges(version, &[&["10.1.2.0/24"], &["2001:db8:1::/64"]]);
        let (code, text) = net.call("ADD", "a", "eth0", "IP=192.0.2.1").error();
        assert!(code == 7 && text.contains("192.0.2.1"), "{text}");
        assert!(net.leases().is_empty());
    }
}

#[test]
fn a_requested_address_in_use_names_its_owner() {
    let net = Net::with_ranges("1.0.0", &[&["10.77.0.0/24"]]);
    net.call("ADD", "holder", "eth0", "IP=10.77.0.50")
        .addresses();
    let (_, text) = net.call("ADD", "other", "eth0", "IP=10.77.0.50").error();
    let file = net.dir().join("10.77.0.50");
    for part in [
        "10.77.0.50 is in use by container holder (eth0)",
        file.to_str().unwrap(),
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(net.leases(), ["10.77.0.50"]);
}

#[test]
fn a_full_range_says_so() {
    let net = Net::with_ranges("1.0.0", &[&["10.1.2.0/30"]]);
    assert_eq!(net.add("a").addresses(), ["10.1.2.2/30"]);
    let (code, text) = net.add("b").error();
    assert_eq!(code, 11);
    assert!(
        text.contains("no IP addresses available in range set 0 (10.1.2.1-10.1.2.2)"),
        "{text}"
    );
    assert_eq!(net.leases(), ["10.1.2.2"]);
}

#[test]
fn a_missing_resolv_conf_is_told_before_anything_is_made() {
    let mut net = Net::with_ranges("1.0.0", &[&["10.1.2.0/24"]]);
    net.ipam["resolvConf"] = "/nonexistent/resolv.conf".into();
    let (code, text) = net.add("a").error();
    assert!(
        code == 5 && text.contains("/nonexistent/resolv.conf"),
        "{text}"
    );
    assert!(!net.dir().exists());
}

#[test]
fn the_about_line_and_version() {
    let answer = run(OURS.as_ref(), "", "", "", "", "");
    assert!(
        answer.ok && answer.stderr.starts_with("CNI host-local plugin v"),
        "{answer:?}"
    );
    let answer = run(OURS.as_ref(), "VERSION", "", "", "", "");
    assert_eq!(answer.json()["supportedVersions"], json!(VERSIONS));
}
