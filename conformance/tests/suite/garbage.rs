//! Input that no runtime sends on purpose: every plugin answers it as the protocol wants.

use std::time::Duration;

use conformance::chain::Attachment;
use conformance::net::provide_card;
use conformance::plugin::Answer;
use serde_json::{Value, json};

use super::support::{Lab, OURS, sandboxed};

/// Success, or exit code 1 with exactly one error object on standard output.
#[track_caller]
pub fn proper(answer: &Answer, input: &str) {
    assert!(
        answer.ok() || answer.error().is_some(),
        "{input}\n{}",
        answer.text()
    );
}

fn every_command(lab: &Lab, plugin: &str, stdin: &[u8], attachment: &Attachment) {
    for verb in ["ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION", "NONSENSE"] {
        let answer = lab
            .ours
            .call(plugin, verb, attachment)
            .unwrap()
            .stdin(stdin)
            .run()
            .unwrap();
        proper(
            &answer,
            &format!("{plugin} {verb} {}", String::from_utf8_lossy(stdin)),
        );
    }
}

/// Values of the wrong kind, and some that are merely odd.
fn odd_values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(0),
        json!(""),
        json!("x"),
        json!("../../etc"),
        json!([]),
        json!([null]),
        json!([[null]]),
        json!([[{}]]),
        json!({}),
        json!({"a": null}),
        json!({"type": "host-local", "subnet": "::/0"}),
        json!({"type": "../bridge"}),
        json!({"type": "portmap"}),
    ]
}

fn keys() -> [&'static str; 41] {
    [
        "cniVersion",
        "name",
        "type",
        "bridge",
        "isGateway",
        "isDefaultGateway",
        "forceAddress",
        "ipMasq",
        "ipMasqBackend",
        "mtu",
        "hairpinMode",
        "promiscMode",
        "vlan",
        "vlanTrunk",
        "preserveDefaultVlan",
        "macspoofchk",
        "enabledad",
        "disableContainerInterface",
        "portIsolation",
        "dns",
        "ipam",
        "args",
        "runtimeConfig",
        "prevResult",
        "capabilities",
        "backend",
        "iptablesAdminChainName",
        "firewalldZone",
        "ingressPolicy",
        "snat",
        "masqAll",
        "markMasqBit",
        "conditionsV4",
        "sysctl",
        "mac",
        "promisc",
        "allmulti",
        "txQLen",
        "dataDir",
        "gateways",
        "cni.dev/valid-attachments",
    ]
}

/// Keys that only one plugin knows.
fn own_keys(plugin: &str) -> &'static [&'static str] {
    match plugin {
        "host-device" => &[
            "device",
            "hwaddr",
            "kernelpath",
            "pciBusID",
            "dpdkmode",
            "dad",
            "acceptRA",
        ],
        "tap" => &["mac", "owner", "group", "multiQueue", "selinuxContext"],
        "macvlan" => &[
            "master",
            "mode",
            "linkInContainer",
            "bcqueuelen",
            "dad",
            "acceptRA",
        ],
        "ipvlan" => &["master", "mode", "linkInContainer", "dad", "acceptRA"],
        "vlan" => &["master", "vlanId", "linkInContainer", "dad", "acceptRA"],
        "bandwidth" => &["ingressRate", "ingressBurst", "egressRate", "egressBurst"],
        "tc-redirect-tap" => &["tap_name", "uid", "gid"],
        "sbr" => &["table", "addSourceHints"],
        "vrf" => &["vrfname", "table"],
        _ => &[],
    }
}

fn base(plugin: &str) -> Value {
    json!({
        "cniVersion": "1.1.0", "name": "n", "type": plugin, "bridge": "br0", "isGateway": true, "master": "up0",
        "device": "nic0", "vrfname": "blue",
        "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"},
        "runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]},
        "prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.1.0.2/24", "interface": 0}]},
    })
}

sandboxed! {
    fn every_key_with_every_odd_value(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        provide_card(&lab.host, 0).unwrap();
        for plugin in OURS {
            for key in keys().iter().chain(own_keys(plugin)) {
                for value in odd_values() {
                    let mut config = base(plugin);
                    config[*key] = value;
                    let text = config.to_string();
                    for verb in ["ADD", "DEL"] {
                        let call = lab.ours.call(plugin, verb, &attachment).unwrap();
                        proper(&call.stdin(text.as_bytes()).run().unwrap(), &format!("{plugin} {verb} {text}"));
                    }
                }
            }
        }
    }

    /// Each would run the next one with the same configuration, without end.
    fn an_interface_plugin_in_the_place_of_ipam_is_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        provide_card(&lab.host, 0).unwrap();
        let fresh = lab.snapshot();
        let interfaces = ["bridge", "ptp", "macvlan", "ipvlan", "vlan", "dummy", "host-device", "tap"];
        for plugin in interfaces {
            for named in [plugin, "bridge", "tap"] {
                let mut config = base(plugin);
                config["ipam"] = json!({"type": named});
                for verb in ["ADD", "CHECK", "STATUS", "GC", "DEL"] {
                    let call = lab.ours.call(plugin, verb, &attachment).unwrap().deadline(Duration::from_secs(20));
                    let answer = call.stdin(config.to_string()).run().unwrap();
                    let text = format!("{plugin} {verb} with {named}: {}", answer.text());
                    let error = answer.error().unwrap_or_else(|| panic!("{text}"));
                    assert!(error.code != 0 && !error.msg.is_empty(), "{text}");
                    if verb == "DEL" {
                        assert!(error.msg.contains("for ipam in turn"), "{text}");
                    }
                }
            }
        }
        let diff = fresh.diff(&lab.snapshot());
        assert!(!diff.to_string().contains("c1"), "{diff}");
    }

    fn previous_results_of_any_shape(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let results = [
            json!(null), json!([]), json!("x"), json!({}), json!({"cniVersion": ""}), json!({"cniVersion": "9.9.9"}),
            json!({"cniVersion": "1.0.0", "ips": [null]}), json!({"cniVersion": "1.0.0", "ips": [{}]}),
            json!({"cniVersion": "1.0.0", "ips": [{"address": "nonsense"}]}),
            json!({"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/24", "interface": 99}]}),
            json!({"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/24", "interface": -1}]}),
            json!({"cniVersion": "1.0.0", "interfaces": [null]}),
            json!({"cniVersion": "1.0.0", "interfaces": [{"name": "../../x"}], "ips": [{"address": "10.1.0.2/99"}]}),
            json!({"cniVersion": "0.2.0", "ip4": {"ip": "10.1.0.2/24"}}), json!({"cniVersion": "0.2.0", "ip4": {}}),
            json!({"cniVersion": "0.2.0", "ip6": {"ip": "10.1.0.2/24"}}),
            json!({"cniVersion": "0.3.0", "ip": [{"version": "6", "address": "10.1.0.2/24"}]}),
        ];
        for plugin in OURS {
            for result in &results {
                let mut config = base(plugin);
                config["prevResult"] = result.clone();
                every_command(lab, plugin, config.to_string().as_bytes(), &attachment);
            }
        }
    }

    fn deep_and_large_documents(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let deep = format!("{{\"name\":\"n\",\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        let large = format!("{{\"cniVersion\":\"1.0.0\",\"name\":\"n\",\"x\":\"{}\"}}", "x".repeat(5_000_000));
        for plugin in OURS {
            for text in [&deep, &large] {
                for verb in ["ADD", "DEL"] {
                    let call = lab.ours.call(plugin, verb, &attachment).unwrap();
                    proper(&call.stdin(text.as_bytes()).run().unwrap(), plugin);
                }
            }
        }
    }

    fn environments_that_are_no_text(lab) {
        use std::os::unix::ffi::OsStrExt;
        let bytes = std::ffi::OsStr::from_bytes(b"\xff\xfe\x01");
        for plugin in OURS {
            for key in ["CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH"] {
                for verb in ["ADD", "DEL", "GC"] {
                    let attachment = Attachment::new("c1", std::path::Path::new("/run/netns/missing"));
                    let call = lab.ours.call(plugin, verb, &attachment).unwrap().env(key, bytes);
                    proper(&call.stdin(base(plugin).to_string()).run().unwrap(), &format!("{plugin} {verb} {key}"));
                }
            }
        }
    }
}
