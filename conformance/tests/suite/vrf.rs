//! vrf where the kernel may have none: what it says then, and what needs no VRF. The rest is checked in the machine of `vm`.

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use conformance::chain::Attachment;
use conformance::net::Netns;
use conformance::plugin::Answer;
use serde_json::{Value, json};

use super::support::{Lab, fine, refused, sandboxed, tool};

fn config(extra: Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.1.0", "name": "net", "type": "vrf", "vrfname": "blue",
        "prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.2.0.2/24", "gateway": "10.2.0.1", "interface": 0}]},
    });
    let extra = extra.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(extra);
    config
}

fn status(lab: &Lab, config: &Value) -> Answer {
    let call = lab.ours.bare("vrf", "STATUS").unwrap();
    call.stdin(config.to_string()).run().unwrap()
}

/// A container with an interface.
fn container(lab: &Lab) -> (Netns, Attachment) {
    let netns = lab.container("c1");
    lab.rtnl().add_veth("v1", &netns, "eth0").unwrap();
    let attachment = Attachment::new("c1", netns.path());
    (netns, attachment)
}

/// iproute2 in a namespace.
fn ip(netns: &Netns, arguments: &str) -> std::process::Output {
    let program = tool("ip", "iproute2");
    netns
        .run(|| {
            let mut ip = Command::new(program);
            Ok(ip.args(arguments.split(' ')).output().unwrap())
        })
        .unwrap()
}

fn links(netns: &Netns) -> String {
    String::from_utf8(ip(netns, "-d link").stdout).unwrap()
}

sandboxed! {
    fn a_kernel_without_vrfs_is_named(lab) {
        let (netns, attachment) = container(lab);
        let spare = lab.container("spare");
        let known = ip(&spare, "link add probe type vrf table 9").status.success();
        let config = config(json!({}));
        let before = links(&netns);
        if known {
            fine(&status(lab, &config));
            fine(&lab.one("ADD", &config, &attachment));
        } else {
            let text = refused(&status(lab, &config), 50);
            assert!(text.contains("no links of kind vrf") && text.contains("module vrf"), "{text}");
            let text = refused(&lab.one("ADD", &config, &attachment), 50);
            assert!(text.contains("no links of kind vrf") && text.contains("module vrf"), "{text}");
            assert_eq!(links(&netns), before);
            assert!(lab.one("CHECK", &config, &attachment).error().is_some());
        }
        fine(&lab.one("DEL", &config, &attachment));
        fine(&lab.one("DEL", &config, &attachment));
        assert_eq!(links(&netns), before);
    }

    fn what_cannot_be_is_refused_before_any_change(lab) {
        let (netns, attachment) = container(lab);
        let (before, host) = (links(&netns), lab.snapshot());
        for (extra, code) in [
            (json!({"vrfname": ""}), 7), (json!({"vrfname": null}), 7), (json!({"vrfname": "a/b"}), 7), (json!({"vrfname": "."}), 7),
            (json!({"vrfname": "more-than-15-bytes"}), 7), (json!({"table": -1}), 7), (json!({"table": 4_294_967_296_u64}), 7),
            (json!({"vrfname": "eth0"}), 7), (json!({"vrfname": "lo"}), 999), (json!({"prevResult": null}), 999),
        ] {
            let config = config(extra);
            refused(&lab.one("ADD", &config, &attachment), code);
            fine(&lab.one("DEL", &config, &attachment));
            assert_eq!(links(&netns), before);
        }
        let other = attachment.clone().ifname("eth7");
        let text = refused(&lab.one("ADD", &config(json!({})), &other), 999);
        assert!(text.contains("eth7"), "{text}");
        for extra in [json!({"vrfname": ""}), json!({"table": -1})] {
            refused(&status(lab, &config(extra)), 7);
        }
        // A port of something else is named.
        assert!(ip(&netns, "link add br7 type bridge").status.success());
        assert!(ip(&netns, "link set eth0 master br7").status.success());
        let text = refused(&lab.one("ADD", &config(json!({})), &attachment), 999);
        assert!(text.contains("br7"), "{text}");
        fine(&lab.one("DEL", &config(json!({})), &attachment));
        assert!(links(&netns).contains("master br7"));
        assert!(host.diff(&lab.snapshot()).is_empty(), "nothing on the host");
    }

    fn del_needs_nothing(lab) {
        let (netns, attachment) = container(lab);
        let before = links(&netns);
        for config in [
            config(json!({})), config(json!({"prevResult": null})), config(json!({"prevResult": {"ips": 7}})), config(json!({"vrfname": 7})),
            config(json!({"table": "x"})), json!({"cniVersion": "0.2.0", "name": "net", "type": "vrf"}),
        ] {
            fine(&lab.one("DEL", &config, &attachment));
            fine(&lab.one("DEL", &config, &attachment.clone().ifname("eth7")));
            for path in ["", "/run/netns/nowhere", "/nowhere/at/all", "/tmp"] {
                let mut gone = attachment.clone();
                gone.netns = Path::new(path).to_owned();
                fine(&lab.one("DEL", &config, &gone));
                assert!(!Path::new("/run/netns/nowhere").exists());
            }
            assert_eq!(links(&netns), before);
        }
    }

    fn a_stuck_holder_of_the_lock_is_not_waited_for_forever(lab) {
        let (netns, attachment) = container(lab);
        let file = File::open(netns.path()).unwrap();
        let _held = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap();
        let answer = lab.one("ADD", &config(json!({})), &attachment);
        let text = refused(&answer, 11);
        assert!(text.contains("locked"), "{text}");
        assert!(answer.took < Duration::from_secs(25), "{:?}", answer.took);
    }
}
