//! DEL from nothing, and the short form of the torture tables.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

#[allow(dead_code, reason = "shared with the program")]
#[path = "../src/bin/torture/lists.rs"]
mod lists;
#[allow(dead_code, reason = "shared with the suite")]
#[path = "suite/support.rs"]
mod support;

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use conformance::chain::{Attachment, Network, Runtime};
use conformance::facts::{addresses, spellings};
use conformance::lists::nomad_ports;
use conformance::net::{Netns, Rtnl, card_id, provide_card};
use conformance::probe::PATIENCE;
use conformance::snapshot::{Leavings, Snapshot};
use serde_json::{Value, json};

use lists::{LISTS, List, type_of};
use support::{Lab, empty_path, hide_tools, impossible, plugins, sandboxed};

/// An attached container, and what a test takes from it before the DEL.
struct Case<'a> {
    lab: &'a Lab,
    list: List,
    network: Network,
    attachment: Attachment,
    netns: Option<Netns>,
    runtime: Runtime,
    fresh: Snapshot,
    /// The container's id, and its addresses in every spelling.
    owners: Vec<String>,
    /// The workload destroyed its interface.
    destroyed: bool,
}

impl Case<'_> {
    fn inside(&self) -> Rtnl {
        Rtnl::open(self.netns.as_ref().unwrap()).unwrap()
    }

    /// Changes the configuration of every plugin.
    fn edit(&mut self, edit: impl Fn(&str, &mut Value)) {
        for plugin in &mut self.network.plugins {
            let name = type_of(plugin).to_owned();
            edit(&name, plugin);
        }
    }

    fn forget(&mut self) {
        self.attachment.result = None;
        self.attachment.capabilities.clear();
    }

    /// DEL succeeds, a second one too, and the host holds nothing of the container.
    fn del(mut self) {
        let key = self.list.key;
        for which in ["first", "second"] {
            self.runtime
                .del(&self.network, &self.attachment)
                .unwrap_or_else(|error| panic!("list {key}, {which} DEL: {error}"));
        }
        if self.list.contained && self.attachment.netns.as_os_str().is_empty() {
            // Nobody can find what is in the container without its path; it goes with the namespace.
            self.netns = None;
        }
        if self.list.takes_cards() && (self.destroyed || self.netns.is_none()) {
            // A real one would not have gone with the namespace.
            provide_card(&self.lab.host, 0).unwrap();
        }
        let owners = self.owners;
        let leavings = Leavings {
            bridge: self.list.bridge,
            owners: &owners,
        };
        let left = || self.fresh.diff(&self.lab.snapshot()).beyond(&leavings);
        // The kernel takes the links of a namespace that is gone away in its own time.
        let end = Instant::now() + PATIENCE;
        while self.netns.is_none() && !left().is_empty() && Instant::now() < end {}
        let beyond = left();
        assert!(beyond.is_empty(), "list {key}: {beyond:#?}");
        if !self.list.bridge.is_empty() {
            self.lab.rtnl().delete_link(self.list.bridge).unwrap();
        }
        if self.list.takes_cards() {
            self.lab.rtnl().delete_link("nic0").unwrap();
        }
    }
}

fn owners(id: &str, result: &Value) -> Vec<String> {
    let spelled = addresses(result)
        .into_iter()
        .flat_map(|one| spellings(one.address.ip()));
    spelled.chain([id.to_owned()]).collect()
}

/// The lists that this kernel can play. The others are played in the machine with another kernel. A DEL of a lease has
/// tests of its own in the suite, which have a DHCP server.
fn playable(lab: &Lab) -> Vec<List> {
    let impossible = impossible(lab);
    let possible = |list: &List| {
        !list.has_dhcp() && !list.rare().is_some_and(|kind| impossible.contains(&kind))
    };
    LISTS.into_iter().filter(possible).collect()
}

/// Attaches a container to each network in turn and gives it to the test.
fn each(lab: &Lab, test: impl Fn(Case<'_>)) {
    for list in playable(lab) {
        let netns = lab.container(&format!("c-{}", list.key));
        let id = format!("5d3c0ff3-9a5e-4b1c-8b0a-00000000000{}", list.key);
        let mut attachment = Attachment::new(&id, netns.path())
            .capability("portMappings", nomad_ports(8080, 80))
            .capability("deviceID", card_id(0).into());
        if list.takes_cards() {
            provide_card(&lab.host, 0).unwrap();
        }
        let fresh = lab.snapshot();
        let network = list.network().unwrap();
        let result = lab.add(&network, &mut attachment);
        let owners = owners(&id, &result);
        test(Case {
            owners,
            lab,
            list,
            network,
            attachment,
            netns: Some(netns),
            runtime: lab.ours.clone(),
            fresh,
            destroyed: false,
        });
    }
}

sandboxed! {
    fn del_when_the_namespace_is_gone(lab) {
        each(lab, |mut case| {
            case.netns = None;
            case.del();
        });
    }

    fn del_without_the_path_of_the_namespace(lab) {
        each(lab, |mut case| {
            case.attachment.netns = PathBuf::new();
            case.del();
        });
    }

    fn del_with_nothing_but_the_names(lab) {
        each(lab, |mut case| {
            case.attachment.netns = PathBuf::new();
            case.forget();
            case.del();
        });
    }

    fn del_with_a_namespace_and_nothing_else(lab) {
        each(lab, |mut case| {
            case.forget();
            let inside = case.inside();
            case.del();
            assert!(inside.link("eth0").is_err());
        });
    }

    fn del_with_malformed_arguments(lab) {
        for args in ["=;;;", "IgnoreUnknown=perhaps", "IP=not-an-address;MAC=zz", "no assignment", ";IP=10.0.0.1;=x"] {
            each(lab, |mut case| {
                case.attachment.args = Some(args.to_owned());
                case.del();
            });
        }
    }

    fn del_after_the_configuration_became_invalid(lab) {
        each(lab, |mut case| {
            case.forget();
            case.edit(|plugin, config| match plugin {
                "bridge" => {
                    for (key, value) in [("bridge", json!(7)), ("mtu", json!("wide")), ("vlan", json!(-3)),
                        ("ipMasq", json!("yes")), ("ipMasqBackend", json!("smoke")), ("hairpinMode", json!([]))] {
                        config[key] = value;
                    }
                    config["ipam"] = json!({"type": "host-local", "ranges": "everything", "routes": 5});
                }
                "firewall" => {
                    config["backend"] = json!("wall of fire");
                    config["ingressPolicy"] = json!(12);
                }
                "ptp" => {
                    config["mtu"] = json!("wide");
                    config["ipMasq"] = json!("yes");
                    config["ipMasqBackend"] = json!(7);
                    config["ipam"] = json!({"type": "host-local", "ranges": "everything"});
                }
                "macvlan" | "ipvlan" | "vlan" | "dummy" => {
                    config["master"] = json!("nowhere");
                    config["vlanId"] = json!("five");
                    config["mode"] = json!(5);
                    config["dad"] = json!("sometimes");
                    config["ipam"] = json!({"type": "host-local", "ranges": "everything"});
                }
                "tap" => {
                    config["owner"] = json!("me");
                    config["mtu"] = json!([]);
                    config["ipam"] = json!({"type": "host-local", "ranges": "everything"});
                }
                "host-device" => {
                    config["device"] = json!(7);
                    config["hwaddr"] = json!([]);
                    config["runtimeConfig"] = json!("none");
                    config["ipam"] = json!({"type": "host-local", "ranges": "everything"});
                }
                "bandwidth" => {
                    config["ingressRate"] = json!("fast");
                    config["egressBurst"] = json!(-1);
                }
                "tc-redirect-tap" => config["uid"] = json!("me"),
                "tuning" => {
                    config["mtu"] = json!("wide");
                    config["sysctl"] = json!([]);
                    config["args"] = json!({"cni": 7});
                }
                "sbr" => {
                    config["table"] = json!("main");
                    config["gateways"] = json!(["nowhere"]);
                }
                "vrf" => {
                    config["vrfname"] = json!([]);
                    config["table"] = json!("main");
                }
                "portmap" => {
                    config["backend"] = json!({});
                    config["snat"] = json!("maybe");
                    config["markMasqBit"] = json!(99);
                }
                _ => {}
            });
            case.del();
        });
    }

    fn del_after_the_configuration_named_another_backend(lab) {
        each(lab, |mut case| {
            case.forget();
            case.edit(|plugin, config| {
                let key = if ["bridge", "ptp"].contains(&plugin) { "ipMasqBackend" } else { "backend" };
                let other = match config.get(key).and_then(Value::as_str) {
                    Some("iptables") => "nftables",
                    _ => "iptables",
                };
                config[key] = json!(other);
            });
            case.del();
        });
    }

    fn del_after_everything_was_switched_off(lab) {
        each(lab, |mut case| {
            case.forget();
            case.edit(|_, config| {
                let object = config.as_object_mut().unwrap();
                object.retain(|key, _| matches!(key.as_str(), "type" | "bridge" | "ipam"));
            });
            case.del();
        });
    }

    fn del_without_the_iptables_tools(lab) {
        let mut cases = Vec::new();
        for list in playable(lab) {
            let netns = lab.container(&format!("c-{}", list.key));
            let id = format!("5d3c0ff3-9a5e-4b1c-8b0a-00000000000{}", list.key);
            let mut attachment = Attachment::new(&id, netns.path())
                .capability("portMappings", nomad_ports(8080, 80))
                .capability("deviceID", card_id(0).into());
            // Lists a and b share a bridge and a network.
            if list.key == "a" {
                continue;
            }
            if list.takes_cards() {
                provide_card(&lab.host, 0).unwrap();
            }
            let network = list.network().unwrap();
            // Every port of the host is free for one of them only.
            attachment.capabilities.insert("portMappings".into(), nomad_ports(8000 + u16::try_from(cases.len()).unwrap(), 80));
            let result = lab.add(&network, &mut attachment);
            cases.push((list, network, attachment, netns, owners(&id, &result)));
        }
        hide_tools(&["iptables", "ip6tables", "iptables-restore", "ip6tables-restore", "nft"]);
        let runtime = lab.ours.clone().with_path(empty_path());
        for (list, network, mut attachment, _netns, owners) in cases {
            attachment.result = None;
            runtime.del(&network, &attachment).unwrap_or_else(|error| panic!("list {}: {error}", list.key));
            let snapshot = lab.snapshot();
            let left: Vec<_> = owners.iter().flat_map(|owner| snapshot.mentioning(owner)).collect();
            assert!(left.is_empty(), "list {}: {left:#?}", list.key);
        }
    }

    fn del_after_the_workload_deleted_the_interface(lab) {
        each(lab, |mut case| {
            case.inside().delete_link("eth0").unwrap();
            case.destroyed = true;
            case.del();
        });
    }

    fn del_after_the_workload_put_something_else_in_its_place(lab) {
        each(lab, |mut case| {
            let inside = case.inside();
            inside.delete_link("eth0").unwrap();
            inside.add_bridge("eth0").unwrap();
            case.destroyed = true;
            case.forget();
            case.del();
            assert_eq!(inside.link("eth0").unwrap().facts.kind, "bridge", "it is not ours to remove");
        });
    }

    fn del_after_the_workload_changed_its_addresses(lab) {
        each(lab, |mut case| {
            let inside = case.inside();
            inside.flush_addresses("eth0").unwrap();
            inside.add_address("eth0", "203.0.113.77/24".parse().unwrap()).unwrap();
            // A card keeps it wherever it goes.
            if !case.list.takes_cards() {
                inside.set_mac("eth0", [2, 0, 0, 0, 0, 7]).unwrap();
            }
            inside.set_down("eth0").unwrap();
            case.forget();
            case.del();
        });
    }

    fn del_of_what_was_never_added_changes_nothing(lab) {
        let netns = lab.container("c1");
        let fresh = lab.snapshot();
        for list in LISTS {
            let network = list.network().unwrap();
            for path in [netns.path().to_owned(), PathBuf::new(), "/run/netns/never".into()] {
                let attachment = Attachment::new("never-added", &path);
                lab.del(&network, &attachment);
            }
        }
        let diff = fresh.diff(&lab.snapshot());
        assert!(diff.is_empty(), "{diff}");
    }
}

/// Runs the torture program in its short form and expects that nothing was left behind.
fn torture(arguments: &[&str]) {
    let output = Command::new(env!("CARGO_BIN_EXE_torture"))
        .args(arguments)
        .arg("--plugins")
        .arg(plugins())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "torture {arguments:?}: {}\n{text}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn kills_leave_nothing_behind() {
    torture(&[
        "kill", "--list", "a", "--list", "g", "--list", "v", "--list", "p", "--list", "r",
        "--list", "m", "--list", "f", "--list", "e", "--list", "h", "--list", "s", "--every", "97",
        "--from", "41", "--jobs", "4",
    ]);
}

#[test]
fn a_short_soak_leaves_nothing_behind() {
    torture(&[
        "soak",
        "--list",
        "a",
        "--list",
        "g",
        "--list",
        "v",
        "--list",
        "p",
        "--list",
        "r",
        "--list",
        "m",
        "--minutes",
        "0.2",
        "--jobs",
        "2",
    ]);
}

#[test]
fn failures_of_loopback_leave_nothing_behind() {
    torture(&[
        "fail", "--list", "g", "--plugin", "loopback", "--every", "3", "--jobs", "4",
    ]);
}
