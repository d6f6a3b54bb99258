//! ipvlan, vlan and dummy, as far as this kernel goes: their links are made in the machine with another one.

use conformance::chain::Attachment;
use conformance::single::{self, Kind, Site};
use serde_json::{Value, json};

use super::support::{Lab, fine, impossible, refused, sandboxed};

fn kinds() -> [Kind; 3] {
    [Kind::ipvlan(), Kind::vlan(), Kind::dummy()]
}

fn site(lab: &Lab, kind: Kind) -> Site<'_> {
    Site {
        host: &lab.host,
        runtime: &lab.ours,
        kind,
    }
}

fn config(kind: &Kind, ipam: &Value) -> Value {
    let mut config =
        json!({"cniVersion": "1.1.0", "name": "net", "type": kind.plugin, "ipam": ipam});
    for (key, value) in kind.keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

#[track_caller]
fn refuses(lab: &Lab, kind: Kind) {
    single::refused_before_any_change(&site(lab, kind)).unwrap_or_else(|error| panic!("{error}"));
}

sandboxed! {
    fn what_is_wrong_with_ipvlan_is_refused_before_any_change(lab) {
        refuses(lab, Kind::ipvlan());
    }

    fn what_is_wrong_with_vlan_is_refused_before_any_change(lab) {
        refuses(lab, Kind::vlan());
    }

    fn what_is_wrong_with_dummy_is_refused_before_any_change(lab) {
        refuses(lab, Kind::dummy());
    }

    fn a_kind_that_the_kernel_has_not_is_named_and_one_that_it_has_works(lab) {
        let impossible = impossible(lab);
        for kind in kinds() {
            let plugin = kind.plugin;
            if !impossible.contains(&plugin) {
                if plugin == "vlan" {
                    Kind::join_vlan(&lab.host).unwrap();
                }
                single::every_version(&site(lab, kind)).unwrap_or_else(|error| panic!("{plugin}: {error}"));
                continue;
            }
            let netns = lab.container(plugin);
            let attachment = Attachment::new(plugin, netns.path());
            let before = lab.snapshot();
            for ipam in [json!({"type": "host-local", "subnet": "10.1.0.0/24"}), json!({})] {
                let config = config(&kind, &ipam);
                let text = refused(&lab.one("ADD", &config, &attachment), 50);
                assert!(text.contains(plugin) && text.contains("load the module"), "{text}");
                refused(&lab.one("STATUS", &config, &attachment), 50);
                for verb in ["DEL", "GC"] {
                    fine(&lab.one(verb, &config, &attachment));
                }
            }
            let diff = before.diff(&lab.snapshot());
            let left = diff.added.iter().any(|item| !item.to_string().contains("/var/lib/cni/networks"));
            assert!(!left && diff.removed.is_empty(), "{diff}");
        }
    }
}
