//! The static IPAM plugin.

use conformance::chain::Attachment;
use conformance::probe::{PATIENCE, ping};
use serde_json::{Value, json};

use super::support::{Lab, fine, network, reference, refused, sandboxed};

const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

fn config(version: &str, ipam: Value) -> Value {
    json!({"cniVersion": version, "name": "fixed", "type": "static", "ipam": ipam})
}

fn nobody() -> Attachment {
    Attachment::new("c1", std::path::Path::new("/run/netns/missing"))
}

fn add(lab: &Lab, config: &Value, args: &str) -> Value {
    let answer = lab.one("ADD", config, &nobody().args(args));
    fine(&answer);
    answer.json().unwrap()
}

fn addresses(result: &Value) -> Vec<&str> {
    let ips = result["ips"].as_array().unwrap();
    ips.iter()
        .map(|ip| ip["address"].as_str().unwrap())
        .collect()
}

/// What the configuration of a real network says.
fn whole() -> Value {
    json!({
        "addresses": [{"address": "10.10.0.1/24", "gateway": "10.10.0.254"}, {"address": "3ffe:ffff::2/64"}],
        "routes": [
            {"dst": "0.0.0.0/0"},
            {"dst": "192.168.0.0/16", "gw": "10.10.5.1", "mtu": 1400, "advmss": 1300, "priority": 7, "table": 100, "scope": 0},
            {"dst": "192.168.0.0/16", "gw": "10.10.5.2"},
            {"dst": "3ffe:ffff:0:1ff::0/64", "gw": "3ffe:ffff::1"},
        ],
        "dns": {"nameservers": ["1.2.3.4"], "domain": "some.domain", "search": ["a.b"], "options": ["ndots:2"]},
    })
}

sandboxed! {
    fn every_version_gets_addresses_routes_and_dns(lab) {
        for version in VERSIONS {
            let result = add(lab, &config(version, whole()), "");
            assert_eq!(result["cniVersion"], version);
            assert_eq!(result["dns"]["nameservers"], json!(["1.2.3.4"]));
            assert_eq!(result["dns"]["options"], json!(["ndots:2"]));
            if version < "0.3.0" {
                assert_eq!(result["ip4"]["ip"], "10.10.0.1/24");
                assert_eq!(result["ip4"]["gateway"], "10.10.0.254");
                assert_eq!(result["ip6"]["ip"], "3ffe:ffff::2/64");
                assert_eq!(result["ip4"]["routes"].as_array().unwrap().len(), 3);
                continue;
            }
            assert_eq!(addresses(&result), ["10.10.0.1/24", "3ffe:ffff::2/64"]);
            assert_eq!(result["ips"][0]["gateway"], "10.10.0.254");
            assert_eq!(result["routes"].as_array().unwrap().len(), 4, "{result}");
            assert_eq!(result["routes"][2]["gw"], "10.10.5.2");
            if version == "1.1.0" {
                let attributes = json!({"dst": "192.168.0.0/16", "gw": "10.10.5.1", "mtu": 1400, "advmss": 1300,
                    "priority": 7, "table": 100, "scope": 0});
                assert_eq!(result["routes"][1], attributes);
            }
        }
    }

    fn answers_are_those_of_the_reference_set(lab) {
        let theirs = reference();
        // Its release has no attributes of routes yet.
        let mut ipam = whole();
        ipam["routes"] = json!([{"dst": "0.0.0.0/0"}, {"dst": "192.168.0.0/16", "gw": "10.10.5.1"}]);
        for version in &VERSIONS[..6] {
            for args in ["", "IgnoreUnknown=1;IP=10.10.0.9/24,11.11.0.1/16;GATEWAY=10.10.0.254"] {
                if *version < "0.3.0" && !args.is_empty() {
                    continue;
                }
                for extra in [json!({}), json!({"args": {"cni": {"ips": ["10.1.1.1/8"]}}}),
                    json!({"args": {"cni": {"ips": ["10.1.1.1/8"]}}, "runtimeConfig": {"ips": ["10.2.2.2/8"]}})] {
                    let mut config = config(version, ipam.clone());
                    config.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
                    let attachment = nobody().args(args);
                    let other = super::support::one_of(&theirs, "ADD", &config, &attachment);
                    fine(&other);
                    assert_eq!(add(lab, &config, args), other.json().unwrap(), "{version} {args} {extra}");
                }
            }
        }
    }

    fn addresses_come_from_four_places(lab) {
        let mut config = config("1.0.0", json!({"addresses": [{"address": "10.10.0.1/24"}]}));
        let args = "IP=10.10.0.2/24, fd00::2/64;GATEWAY=fd00::1,10.10.0.254;K8S_POD_NAME=web";
        let result = add(lab, &config, args);
        assert_eq!(addresses(&result), ["10.10.0.1/24", "10.10.0.2/24", "fd00::2/64"]);
        assert_eq!(result["ips"][0].get("gateway"), None);
        assert_eq!(result["ips"][1]["gateway"], "10.10.0.254");
        assert_eq!(result["ips"][2]["gateway"], "fd00::1");
        config["args"] = json!({"cni": {"ips": ["10.10.0.3/24", "11.11.0.3/24"]}});
        assert_eq!(addresses(&add(lab, &config, args)), ["10.10.0.3/24", "11.11.0.3/24"]);
        config["runtimeConfig"] = json!({"ips": ["10.10.0.4/24"]});
        assert_eq!(addresses(&add(lab, &config, args)), ["10.10.0.4/24"]);
    }

    fn what_cannot_be_meant_is_refused_with_its_place(lab) {
        let good = json!({"addresses": [{"address": "10.10.0.1/24"}]});
        let with = |key: &str, value: Value| {
            let mut config = config("1.1.0", good.clone());
            config[key] = value;
            config
        };
        for (config, args, word) in [
            (json!({"cniVersion": "1.0.0", "name": "n", "type": "static"}), "", "ipam"),
            (json!({"cniVersion": "1.0.0", "name": "n", "type": "static", "args": {"cni": {"ips": ["10.0.0.1/8"]}}}), "", "ipam"),
            (json!({"cniVersion": "1.0.0", "name": "n", "type": "static", "runtimeConfig": {"ips": ["10.0.0.1/8"]}}), "", "ipam"),
            (with("ipam", json!({"addresses": [{"address": "10.10.0.1"}]})), "", "ipam.addresses"),
            (with("ipam", json!({"addresses": [{}]})), "", "ipam.addresses"),
            (with("ipam", json!({"addresses": [{"address": "10.10.0.1/33"}]})), "", "10.10.0.1/33"),
            (with("ipam", json!({"routes": [{}]})), "", "dst"),
            (with("args", json!({"cni": {"ips": ["10.10.0.1"]}})), "", "args.cni.ips"),
            (with("runtimeConfig", json!({"ips": ["x"]})), "", "runtimeConfig.ips"),
            (with("args", json!(null)), "IP=10.10.0.1", "CNI_ARGS"),
            (with("args", json!(null)), "GATEWAY=10.10.0.1/24", "CNI_ARGS"),
        ] {
            let text = refused(&lab.one("ADD", &config, &nobody().args(args)), 7);
            assert!(text.contains(word), "{config} {args}: {text}");
            fine(&lab.one("DEL", &config, &nobody().args(args)));
        }
        let two = config("0.2.0", json!({"addresses": [{"address": "10.10.0.1/24"}, {"address": "10.10.0.2/24"}]}));
        let text = refused(&lab.one("ADD", &two, &nobody()), 7);
        assert!(text.contains("per family"), "{text}");
        refused(&lab.one("ADD", &config("1.0.0", good), &nobody().args("IP")), 4);
    }

    fn del_needs_nothing(lab) {
        for ipam in [json!(null), json!("x"), json!({"addresses": 5}), json!({"addresses": [{"address": "x"}]})] {
            for args in ["", "IP=x;;=;y"] {
                fine(&lab.one("DEL", &config("1.0.0", ipam.clone()), &nobody().args(args)));
            }
        }
    }

    fn check_wants_every_address_with_its_gateway(lab) {
        let mut config = config("1.0.0", json!({"addresses": [{"address": "10.10.0.1/24", "gateway": "10.10.0.254"},
            {"address": "10.20.0.1/24"}]}));
        let mut result = add(lab, &config, "");
        // The caller may choose a gateway where the configuration has none.
        result["ips"][1]["gateway"] = json!("10.20.0.254");
        config["prevResult"] = result.clone();
        fine(&lab.one("CHECK", &config, &nobody()));
        config["prevResult"]["ips"][0]["gateway"] = json!("10.10.0.253");
        let text = refused(&lab.one("CHECK", &config, &nobody()), 999);
        assert!(text.contains("10.10.0.253") && text.contains("10.10.0.254"), "{text}");
        config["prevResult"]["ips"] = json!([result["ips"][0]]);
        let text = refused(&lab.one("CHECK", &config, &nobody()), 999);
        assert!(text.contains("10.20.0.1/24"), "{text}");
        config.as_object_mut().unwrap().remove("prevResult");
        refused(&lab.one("CHECK", &config, &nobody()), 7);
    }

    fn status_and_gc(lab) {
        let call = |verb: &str, config: &Value| {
            lab.ours.bare("static", verb).unwrap().stdin(config.to_string()).run().unwrap()
        };
        let good = config("1.1.0", whole());
        fine(&call("STATUS", &good));
        fine(&call("GC", &good));
        let bad = config("1.1.0", json!({"addresses": [{"address": "x"}]}));
        refused(&call("STATUS", &bad), 7);
        fine(&call("GC", &bad));
    }

    fn traffic_flows_with_the_addresses_of_the_runtime(lab) {
        let list = network(&json!({"cniVersion": "1.1.0", "name": "fixed", "plugins": [
            {"type": "bridge", "bridge": "br0", "isGateway": true, "capabilities": {"ips": true},
             "ipam": {"type": "static", "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}]}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path()).capability("ips", json!(["10.77.0.5/24", "fd00:77::5/64"]));
        let result = lab.add(&list, &mut attachment);
        assert_eq!(addresses(&result), ["10.77.0.5/24", "fd00:77::5/64"]);
        for address in ["10.77.0.5", "fd00:77::5"] {
            ping(lab.host.netns(), address.parse().unwrap(), PATIENCE).unwrap();
        }
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
        lab.del(&list, &attachment);
    }
}
