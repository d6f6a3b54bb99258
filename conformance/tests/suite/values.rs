//! Values that nobody can mean: refused before anything is made, with the code that blames the configuration.

use std::path::Path;

use conformance::chain::Attachment;
use conformance::net::Rtnl;
use conformance::snapshot::{Leavings, Snapshot};
use serde_json::{Value, json};

use super::support::{Lab, fine, ip, leases_in, refused, sandboxed, with_previous};

const LEASES: &str = "/var/lib/cni/networks/net";

fn bridge(ipam: Value) -> Value {
    json!({"cniVersion": "1.1.0", "name": "net", "type": "bridge", "bridge": "br0", "isGateway": true, "ipam": ipam})
}

fn host_local(extra: Value) -> Value {
    let mut ipam = json!({"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]]});
    merge(&mut ipam, extra);
    ipam
}

fn fixed(addresses: Value) -> Value {
    json!({"type": "static", "addresses": addresses})
}

fn merge(config: &mut Value, extra: Value) {
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
}

#[track_caller]
fn nothing_is_left(lab: &Lab, fresh: &Snapshot, bridge: &str) {
    let all = fresh.diff(&lab.snapshot());
    let left = all.beyond(&Leavings {
        bridge,
        owners: &[],
    });
    assert!(left.is_empty(), "{left:#?}");
    assert_eq!(leases_in(Path::new(LEASES)), [""; 0]);
}

/// ADD must be refused with code 7 and these words, and leave nothing; DEL must pass.
#[track_caller]
fn blamed(lab: &Lab, config: &Value, attachment: &Attachment, words: &[&str]) {
    let fresh = lab.snapshot();
    let text = refused(&lab.one("ADD", config, attachment), 7);
    for word in words {
        assert!(text.contains(word), "no {word}: {text}");
    }
    assert!(
        !text
            .to_lowercase()
            .contains("no such file or directory: no such file"),
        "{text}"
    );
    fine(&lab.one("DEL", config, attachment));
    let bridge = config["bridge"].as_str().unwrap_or("cni0");
    nothing_is_left(lab, &fresh, bridge);
}

sandboxed! {
    fn numbers_that_the_kernel_cannot_hold_are_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for (key, number, limit) in [
            ("mtu", json!(4_294_967_296_i64), "4294967295"), ("mtu", json!(-1), "4294967295"),
            ("advmss", json!(4_294_967_296_i64), "4294967295"), ("advmss", json!(-5), "4294967295"),
            ("priority", json!(i64::MAX), "4294967295"), ("priority", json!(-1), "4294967295"),
            ("table", json!(4_294_967_296_i64), "4294967295"), ("table", json!(-1), "4294967295"),
            ("scope", json!(256), "255"), ("scope", json!(-1), "255"),
        ] {
            let mut route = json!({"dst": "10.9.0.0/16"});
            route[key] = number.clone();
            let config = bridge(host_local(json!({"routes": [route]})));
            blamed(lab, &config, &attachment, &[key, &number.to_string(), limit, "10.9.0.0/16"]);
        }
        for number in [2_147_483_648_i64, 4_294_967_296, i64::MAX] {
            let mut config = bridge(host_local(json!({})));
            config["mtu"] = json!(number);
            blamed(lab, &config, &attachment, &["mtu", &number.to_string(), "2147483647"]);
        }
    }

    fn addresses_that_no_interface_can_have_are_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for address in ["0.0.0.0/0", "0.0.0.0/24", "::/0"] {
            blamed(lab, &bridge(fixed(json!([{"address": address}]))), &attachment, &[address]);
        }
        blamed(lab, &bridge(fixed(json!([{"address": "224.0.0.5/24"}]))), &attachment, &["224.0.0.5/24"]);
        let twice = json!([{"address": "10.1.0.2/24"}, {"address": "10.1.0.2/16"}]);
        blamed(lab, &bridge(fixed(twice)), &attachment, &["10.1.0.2/16", "twice"]);
        for plugin in ["bridge", "tap", "ptp"] {
            let mut config = bridge(fixed(json!([{"address": "10.1.0.2/24", "gateway": "fd77::1"}])));
            config["type"] = json!(plugin);
            config.as_object_mut().unwrap().remove("bridge");
            blamed(lab, &config, &attachment, &["10.1.0.2/24", "fd77::1", "same IP family"]);
        }
    }

    fn a_masquerade_of_everything_is_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let mut config = bridge(fixed(json!([{"address": "10.1.0.2/0"}])));
        config["isGateway"] = json!(false);
        config["ipMasq"] = json!(true);
        blamed(lab, &config, &attachment, &["10.1.0.2/0"]);
    }

    fn mac_addresses_that_no_interface_can_have_are_refused(lab) {
        let netns = lab.container("c1");
        for mac in ["00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:01"] {
            let attachment = Attachment::new("c1", netns.path()).args(&format!("MAC={mac}"));
            for plugin in ["bridge", "tap"] {
                let mut config = bridge(host_local(json!({})));
                config["type"] = json!(plugin);
                blamed(lab, &config, &attachment, &[mac]);
            }
        }
    }

    fn names_that_stand_for_every_interface_are_refused(lab) {
        let netns = lab.container("c1");
        for name in ["all", "default"] {
            let attachment = Attachment::new("c1", netns.path());
            let mut config = bridge(host_local(json!({})));
            config["bridge"] = json!(name);
            blamed(lab, &config, &attachment, &[name]);
            let fresh = lab.snapshot();
            let named = attachment.ifname(name);
            let text = refused(&lab.one("ADD", &bridge(host_local(json!({}))), &named), 4);
            assert!(text.contains(name), "{text}");
            nothing_is_left(lab, &fresh, "br0");
        }
    }

    fn hundreds_of_addresses_are_given(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let all: Vec<Value> = (0..600).map(|n| json!({"address": format!("10.77.{}.{}/16", n / 200, n % 200 + 2)})).collect();
        let config = bridge(fixed(json!(all)));
        let answer = lab.added(&config, &attachment);
        assert_eq!(ip(&netns, "-o -4 addr show dev eth0").lines().count(), 600);
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &config, &attachment));
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
    }

    fn a_container_id_of_any_length_gives_its_lease_back(lab) {
        let netns = lab.container("c1");
        for length in [4087, 4096, 100_000] {
            let attachment = Attachment::new(&"x".repeat(length), netns.path());
            let config = bridge(host_local(json!({})));
            let mut alone = config.clone();
            alone["type"] = json!("host-local");
            for config in [&alone, &config] {
                fine(&lab.one("ADD", config, &attachment));
                assert_eq!(leases_in(Path::new(LEASES)).len(), 1);
                fine(&lab.one("DEL", config, &attachment));
                assert_eq!(leases_in(Path::new(LEASES)), [""; 0], "{length}");
            }
        }
    }

    fn a_mapping_that_is_null_is_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = json!({"cniVersion": "1.1.0", "name": "net", "type": "portmap",
            "runtimeConfig": {"portMappings": [null]},
            "prevResult": {"cniVersion": "1.1.0", "ips": [{"address": "10.77.0.2/24"}]}});
        blamed(lab, &config, &attachment, &["hostPort"]);
    }

    fn a_setting_of_several_lines_is_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = |value: &str| json!({"cniVersion": "1.1.0", "name": "net", "type": "tuning",
            "sysctl": {"net.core.somaxconn": value},
            "prevResult": {"cniVersion": "1.1.0", "ips": [{"address": "10.77.0.2/24"}]}});
        blamed(lab, &config("500\n600"), &attachment, &["net.core.somaxconn", "several lines"]);
        fine(&lab.one("ADD", &config("500\n"), &attachment));
    }

    fn a_del_passes_where_nothing_can_be(lab) {
        let attachment = Attachment::new("c1", Path::new("/run/netns/missing"));
        std::fs::create_dir_all("/run/sandbox/tmp/odd").unwrap();
        std::fs::write("/run/sandbox/tmp/odd/file", "").unwrap();
        std::os::unix::fs::symlink("round", "/run/sandbox/tmp/odd/round").unwrap();
        let long = format!("/run/sandbox/tmp/{}", "x".repeat(300));
        for data_dir in ["/run/sandbox/tmp/odd/file", "/run/sandbox/tmp/odd/file/below", "/run/sandbox/tmp/odd/round", &long] {
            let mut config = bridge(host_local(json!({"dataDir": data_dir})));
            fine(&lab.one("DEL", &config, &attachment));
            config["type"] = json!("host-local");
            fine(&lab.one("DEL", &config, &attachment));
            config["cni.dev/valid-attachments"] = json!([]);
            fine(&lab.one("GC", &config, &attachment));
            assert!(refused(&lab.one("ADD", &config, &attachment), 5).contains(data_dir), "{data_dir}");
        }
        for size in ["ro", "nr_inodes=3"] {
            let data_dir = format!("/run/sandbox/tmp/odd/{size}");
            std::fs::create_dir_all(&data_dir).unwrap();
            let options = format!("size=64k,{}", if size == "ro" { "nr_inodes=9" } else { size });
            super::support::run(&super::support::tool("mount", "mount"), &["-t", "tmpfs", "-o", &options, "none", &data_dir]);
            std::fs::create_dir_all(format!("{data_dir}/net")).unwrap();
            if size == "ro" {
                super::support::run(&super::support::tool("mount", "mount"), &["-o", "remount,bind,ro", &data_dir]);
            } else {
                std::fs::write(format!("{data_dir}/full"), "").unwrap();
            }
            let mut config = bridge(host_local(json!({"dataDir": data_dir})));
            config["type"] = json!("host-local");
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn a_pipe_in_place_of_a_file_holds_nobody_up(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        std::fs::create_dir_all("/etc/cni/tuning").unwrap();
        let pipe = "/etc/cni/tuning/allowlist.conf";
        nix::unistd::mkfifo(pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        let config = json!({"cniVersion": "1.1.0", "name": "net", "type": "tuning",
            "sysctl": {"net.core.somaxconn": "500"},
            "prevResult": {"cniVersion": "1.1.0", "ips": [{"address": "10.77.0.2/24"}]}});
        let answer = lab.one("ADD", &config, &attachment);
        assert!(answer.text().contains("not a regular file"), "{}", answer.text());
        fine(&lab.one("DEL", &config, &attachment));
        let config = bridge(host_local(json!({"resolvConf": pipe})));
        let answer = lab.one("ADD", &config, &attachment);
        assert!(answer.text().contains("not a regular file"), "{}", answer.text());
    }
}
