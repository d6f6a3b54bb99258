//! DEL from nothing, CHECK, GC, STATUS and reboots.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime};

use common::*;
use serde_json::{Value, json};

fn net() -> Net {
    Net::with_ranges("1.1.0", &[&["10.1.2.0/29"], &["2001:db8:1::/64"]])
}

#[test]
fn del_needs_no_valid_configuration() {
    let net = net();
    let data_dir = net.tmp.path().to_str().unwrap();
    for (args, ipam) in [
        ("", json!({"ranges": [[{"subnet": "10.1.2.3/24"}]]})),
        ("", json!({"ranges": [[{"subnet": "10.0.0.0/31"}], []]})),
        ("", json!({"ranges": "none"})),
        ("", json!({"subnet": 5, "resolvConf": "/nonexistent"})),
        ("", json!({})),
        ("", json!({"routes": [{"dst": "x"}]})),
        (
            "nonsense;MAC=aa;IP=bogus;=",
            json!({"ranges": [[{"subnet": "10.1.2.0/29"}]]}),
        ),
    ] {
        assert_eq!(net.add("a").addresses().len(), 2);
        let mut ipam = ipam;
        ipam["dataDir"] = data_dir.into();
        let config = json!({"cniVersion": "1.1.0", "name": "net1", "ipam": ipam, "runtimeConfig": {"ips": ["bogus"]}});
        let answer = net.call_with("DEL", "a", "eth0", args, &config.to_string());
        assert!(answer.ok, "{config} {answer:?}");
        assert!(net.leases().is_empty(), "{config}");
    }
    for config in [
        json!({"name": "net1"}),
        json!({"name": "net1", "ipam": null}),
        json!({"name": "net1", "ipam": {"dataDir": net.tmp.path().join("none")}}),
    ] {
        assert!(
            net.call_with("DEL", "a", "eth0", "", &config.to_string())
                .ok,
            "{config}"
        );
    }
}

#[test]
fn del_frees_leases_of_ranges_that_are_gone_and_is_idempotent() {
    let mut net = net();
    net.add("a").addresses();
    net.ipam["ranges"] = json!([[{"subnet": "192.168.0.0/24"}]]);
    assert!(net.del("a").ok && net.del("a").ok);
    assert!(net.leases().is_empty());
    assert_eq!(
        net.files(),
        ["last_reserved_ip.0", "last_reserved_ip.1", "lock"]
    );
}

#[test]
fn check_wants_the_lease_and_the_right_addresses() {
    let mut net = net();
    let (code, text) = net.check("a").error();
    assert!(
        code == 999 && text.contains("container a (eth0) has no lease in") && !net.dir().exists(),
        "{text}"
    );
    let result = net.add("a").json();
    assert!(net.check("a").ok);
    let with = |net: &mut Net, result: &Value| {
        net.extra = json!({ "prevResult": result });
        net.check("a")
    };
    assert!(with(&mut net, &result).ok);
    // A result without addresses says nothing about leases; addresses of elsewhere are not ours to check.
    assert!(with(&mut net, &json!({"cniVersion": "1.1.0"})).ok);
    let mut more = result.clone();
    more["ips"]
        .as_array_mut()
        .unwrap()
        .push(json!({"address": "192.168.7.7/24"}));
    assert!(with(&mut net, &more).ok);
    let mut other = result.clone();
    other["ips"][0]["address"] = "10.1.2.4/29".into();
    let (_, text) = with(&mut net, &other).error();
    assert!(
        text.contains("[10.1.2.2 2001:db8:1::2]") && text.contains("[10.1.2.4 2001:db8:1::2]"),
        "{text}"
    );
    fs::remove_file(net.dir().join("10.1.2.2")).unwrap();
    assert!(!with(&mut net, &result).ok);
    assert!(!net.call("CHECK", "a", "eth1", "").ok);
}

#[test]
fn check_changes_nothing() {
    let net = net();
    net.add("a").addresses();
    let stat = |net: &Net| {
        let names = net.files();
        let texts: Vec<String> = names.iter().map(|n| net.read(n)).collect();
        (names, texts)
    };
    let before = stat(&net);
    assert!(net.check("a").ok && !net.check("b").ok);
    assert_eq!(stat(&net), before);
}

#[test]
fn gc_frees_what_is_not_listed() {
    let mut net = net();
    for id in ["a", "b", "c"] {
        net.add(id).addresses();
    }
    net.write("10.1.2.6", "early");
    let list = |ids: &[&str]| -> Value {
        ids.iter()
            .map(|id| json!({"containerID": id, "ifname": "eth0"}))
            .collect()
    };
    let mut gc = |extra: Value| {
        net.extra = extra;
        assert!(net.call("GC", "", "", "").ok);
        net.leases()
            .into_iter()
            .filter(|n| n.contains('.'))
            .collect::<Vec<_>>()
    };
    let all = ["10.1.2.2", "10.1.2.3", "10.1.2.4", "10.1.2.6"];
    assert_eq!(gc(json!({})), all);
    assert_eq!(
        gc(json!({"cni.dev/valid-attachments": list(&["a", "b", "c", "early"])})),
        all
    );
    assert_eq!(
        gc(json!({"cni.dev/valid-attachments": list(&["a"]), "cni.dev/attachments": list(&["c"])})),
        ["10.1.2.2", "10.1.2.4"]
    );
    assert_eq!(
        gc(json!({"cni.dev/attachments": list(&["a"])})),
        ["10.1.2.2"]
    );
    assert!(gc(json!({"cni.dev/valid-attachments": null})).is_empty());
    assert!(net.leases().is_empty());
    assert_eq!(
        net.files(),
        ["last_reserved_ip.0", "last_reserved_ip.1", "lock"]
    );
}

#[test]
fn gc_frees_what_the_reference_set_left() {
    let mut net = Net::with_ranges("1.0.0", &[&["10.1.2.0/29"]]);
    net.program = reference();
    for id in ["a", "b"] {
        net.add(id).addresses();
    }
    net.program = OURS.into();
    net.version = "1.1.0".to_owned();
    net.extra = json!({"cni.dev/valid-attachments": [{"containerID": "b", "ifname": "eth0"}]});
    assert!(net.call("GC", "", "", "").ok);
    assert_eq!(net.leases(), ["10.1.2.3"]);
}

#[test]
fn gc_of_a_network_never_used_makes_nothing() {
    let mut net = net();
    net.extra = json!({"cni.dev/valid-attachments": []});
    assert!(net.call("GC", "", "", "").ok);
    assert!(!net.dir().exists());
}

#[test]
fn status_fails_when_nothing_can_be_handed_out() {
    let mut net = Net::with_ranges("1.1.0", &[&["10.1.2.0/30"], &["10.2.0.0/29"]]);
    assert!(net.call("STATUS", "", "", "").ok);
    assert!(!net.dir().exists());
    net.add("a").addresses();
    // The second set has addresses left.
    assert!(net.call("STATUS", "", "", "").ok);
    net.ipam["ranges"] = json!([[{"subnet": "10.1.2.0/30"}]]);
    let (code, text) = net.call("STATUS", "", "", "").error();
    assert_eq!(code, 50);
    for part in [
        "no range set",
        "range set 0 (10.1.2.1-10.1.2.2) has 1 lease;",
        "oldest: 10.1.2.2 container a (eth0)",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    net.del("a");
    assert!(net.call("STATUS", "", "", "").ok);
}

#[test]
fn status_fails_when_an_add_would() {
    let mut net = net();
    net.ipam["resolvConf"] = "/nonexistent".into();
    assert!(
        net.call("STATUS", "", "", "")
            .error()
            .1
            .contains("/nonexistent")
    );
    let mut net = net_of(json!({"subnet": "10.1.2.3/24"}));
    assert_eq!(net.call("STATUS", "", "", "").error().0, 7);
    net.ipam = json!({"subnet": "10.1.2.0/24", "dataDir": "/proc/sys/net"});
    let (code, text) = net.call("STATUS", "", "", "").error();
    assert!(code == 50 && text.contains("/proc/sys/net"), "{text}");
    fs::write(net.tmp.path().join("file"), "").unwrap();
    net.ipam["dataDir"] = net.tmp.path().join("file").to_str().unwrap().into();
    assert_eq!(net.call("STATUS", "", "", "").error().0, 50);
}

fn net_of(ipam: Value) -> Net {
    Net::new("1.1.0", ipam)
}

/// As if the machine had been started anew since: leases older than this boot, the marker of another one.
fn reboot(net: &Net) {
    age(net);
    net.write(
        ".ferrule-boot",
        "boot 00000000-0000-0000-0000-000000000000\n",
    );
    fs::remove_file(net.dir().join(".ferrule-index")).unwrap();
}

fn age(net: &Net) {
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    for name in net.leases() {
        let file = File::open(net.dir().join(name)).unwrap();
        file.set_times(FileTimes::new().set_modified(long_ago))
            .unwrap();
    }
}

#[test]
fn another_boot_id_of_the_kernel_is_a_reboot() {
    let mut net = Net::with_ranges("1.1.0", &[&["10.1.2.0/29"]]);
    net.add("a").addresses();
    net.add("b").addresses();
    age(&net);
    let boot_id = net.tmp.path().join("boot_id");
    fs::write(&boot_id, "00000000-0000-0000-0000-000000000000\n").unwrap();
    let next_boot = net.tmp.path().join("host-local-after-reboot");
    let script = format!(
        "#!/bin/sh\nexec unshare -Urm sh -ec 'mount --bind {} /proc/sys/kernel/random/boot_id; exec {OURS}'\n",
        boot_id.display()
    );
    fs::write(&next_boot, script).unwrap();
    fs::set_permissions(&next_boot, fs::Permissions::from_mode(0o755)).unwrap();
    net.program = next_boot;
    assert!(!net.check("a").ok);
    assert_eq!(net.add("a").addresses(), ["10.1.2.4/29"]);
    assert_eq!(net.leases(), ["10.1.2.4"]);
    assert!(net.check("a").ok);
}

#[test]
fn addresses_do_not_leak_over_reboots() {
    let net = Net::with_ranges("1.1.0", &[&["10.1.2.0/29"]]);
    for round in 0..4 {
        for n in 0..5 {
            assert_eq!(net.add(&format!("c{round}-{n}")).addresses().len(), 1);
        }
        assert!(!net.call("STATUS", "", "", "").ok);
        reboot(&net);
        assert!(net.call("STATUS", "", "", "").ok);
        assert!(!net.check(&format!("c{round}-0")).ok);
    }
}

#[test]
fn the_same_container_comes_back_after_a_reboot() {
    let mut net = Net::with_ranges("1.1.0", &[&["10.1.2.0/29"]]);
    net.add("a").addresses();
    assert!(!net.add("a").ok);
    reboot(&net);
    assert_eq!(net.add("a").addresses(), ["10.1.2.3/29"]);
    assert_eq!(net.leases(), ["10.1.2.3"]);
    net.ipam["reclaimAfterReboot"] = false.into();
    reboot(&net);
    assert!(!net.add("a").ok);
    assert_eq!(net.leases(), ["10.1.2.3"]);
    assert!(net.check("a").ok);
}
