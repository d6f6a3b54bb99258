//! Whatever comes in, a plugin ends with success or with one error object and exit code 1.

use conformance::chain::Attachment;
use conformance::net::provide_card;
use conformance::plugin::{Call, find};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Map, Value, json};

use super::garbage::proper;
use super::support::{Lab, OURS, plugins, sandboxed};

/// JSON as it may come: any shape, with words that the plugins know mixed in.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-5_i64..70_000).prop_map(Value::from),
        words().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((keys(), inner), 0..6).prop_map(|pairs| {
                Value::Object(pairs.into_iter().collect::<Map<String, Value>>())
            }),
        ]
    })
}

fn words() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "0.1.0",
        "0.2.0",
        "0.3.1",
        "0.4.0",
        "1.0.0",
        "1.1.0",
        "n",
        "br0",
        "host-local",
        "bridge",
        "nftables",
        "iptables",
        "firewalld",
        "tcp",
        "udp",
        "sctp",
        "10.1.0.0/24",
        "10.1.0.2/24",
        "fd00::/64",
        "fd00::2/64",
        "0.0.0.0/0",
        "10.1.0.1",
        "eth0",
        "/run/netns/c1",
        "isolated",
        "same-bridge",
        "02:00:00:00:00:01",
        "/run/data",
    ])
    .prop_map(str::to_owned)
}

fn keys() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "cniVersion",
        "name",
        "type",
        "bridge",
        "ipam",
        "ranges",
        "subnet",
        "rangeStart",
        "rangeEnd",
        "gateway",
        "addresses",
        "routes",
        "dst",
        "gw",
        "dataDir",
        "prevResult",
        "interfaces",
        "ips",
        "ip4",
        "ip6",
        "ip",
        "address",
        "interface",
        "sandbox",
        "mac",
        "dns",
        "nameservers",
        "runtimeConfig",
        "portMappings",
        "hostPort",
        "containerPort",
        "protocol",
        "hostIP",
        "args",
        "cni",
        "backend",
        "ingressPolicy",
        "ipMasq",
        "isGateway",
        "mtu",
        "vlan",
        "vlanTrunk",
        "device",
        "hwaddr",
        "kernelpath",
        "pciBusID",
        "deviceID",
        "minID",
        "maxID",
        "id",
        "conditionsV4",
        "snat",
        "masqAll",
        "markMasqBit",
        "capabilities",
        "resolvConf",
        "cni.dev/valid-attachments",
    ]);
    prop_oneof![9 => known.prop_map(str::to_owned), 1 => "\\PC{0,8}"]
}

/// A configuration that is good but for what the arbitrary part overwrites.
fn configurations() -> impl Strategy<Value = Value> {
    (any_json(), any_json(), any_json(), 0_u8..4).prop_map(|(top, ipam, previous, how)| {
        let mut config = json!({"cniVersion": "1.0.0", "name": "n", "bridge": "br0", "master": "up0", "device": "nic0",
            "ipam": {"type": "host-local", "subnet": "10.1.0.0/24", "dataDir": "/run/data"}});
        if let (Value::Object(target), Value::Object(extra)) = (&mut config, &top) {
            target.extend(extra.clone());
        }
        match how {
            0 => config["ipam"] = ipam,
            1 => config["prevResult"] = previous,
            2 => config["runtimeConfig"] = json!({"portMappings": previous}),
            _ => config = top,
        }
        config
    })
}

fn runner(cases: u32) -> TestRunner {
    TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    })
}

fn verbs() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["ADD", "CHECK", "DEL", "GC", "STATUS"])
}

/// Arbitrary configurations for one plugin, with an attachment that is real.
fn arbitrary_configurations(lab: &Lab, plugin: &str) {
    let netns = lab.container("c1");
    let attachment = Attachment::new("c1", netns.path());
    runner(150)
        .run(&(verbs(), configurations()), |(verb, config)| {
            let call = lab.ours.call(plugin, verb, &attachment).unwrap();
            proper(
                &call.stdin(config.to_string()).run().unwrap(),
                &format!("{plugin} {verb} {config}"),
            );
            Ok(())
        })
        .unwrap();
}

sandboxed! {
    fn arbitrary_configurations_of_loopback(lab) {
        arbitrary_configurations(lab, "loopback");
    }

    fn arbitrary_configurations_of_bridge(lab) {
        arbitrary_configurations(lab, "bridge");
    }

    fn arbitrary_configurations_of_host_local(lab) {
        arbitrary_configurations(lab, "host-local");
    }

    fn arbitrary_configurations_of_static(lab) {
        arbitrary_configurations(lab, "static");
    }

    fn arbitrary_configurations_of_dhcp(lab) {
        // Most of them are for a daemon, which is given nothing to ask on.
        let _daemon = super::dhcp::world::daemon(lab, &["-resendtimeout", "50ms"]);
        arbitrary_configurations(lab, "dhcp");
    }

    fn arbitrary_configurations_of_firewall(lab) {
        arbitrary_configurations(lab, "firewall");
    }

    fn arbitrary_configurations_of_portmap(lab) {
        arbitrary_configurations(lab, "portmap");
    }

    fn arbitrary_configurations_of_ptp(lab) {
        arbitrary_configurations(lab, "ptp");
    }

    fn arbitrary_configurations_of_macvlan(lab) {
        arbitrary_configurations(lab, "macvlan");
    }

    fn arbitrary_configurations_of_ipvlan(lab) {
        arbitrary_configurations(lab, "ipvlan");
    }

    fn arbitrary_configurations_of_vlan(lab) {
        arbitrary_configurations(lab, "vlan");
    }

    fn arbitrary_configurations_of_dummy(lab) {
        arbitrary_configurations(lab, "dummy");
    }

    fn arbitrary_configurations_of_host_device(lab) {
        provide_card(&lab.host, 0).unwrap();
        arbitrary_configurations(lab, "host-device");
    }

    fn arbitrary_configurations_of_tap(lab) {
        arbitrary_configurations(lab, "tap");
    }

    fn arbitrary_configurations_of_bandwidth(lab) {
        arbitrary_configurations(lab, "bandwidth");
    }

    fn arbitrary_configurations_of_tc_redirect_tap(lab) {
        arbitrary_configurations(lab, "tc-redirect-tap");
    }

    fn arbitrary_configurations_of_tuning(lab) {
        arbitrary_configurations(lab, "tuning");
    }

    fn arbitrary_configurations_of_sbr(lab) {
        arbitrary_configurations(lab, "sbr");
    }

    fn arbitrary_configurations_of_vrf(lab) {
        arbitrary_configurations(lab, "vrf");
    }

    fn arbitrary_bytes_on_standard_input(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let plugin = prop::sample::select(OURS.to_vec());
        runner(250)
            .run(&(plugin, verbs(), prop::collection::vec(any::<u8>(), 0..200)), |(plugin, verb, bytes)| {
                let answer = lab.ours.call(plugin, verb, &attachment).unwrap().stdin(bytes.clone()).run().unwrap();
                proper(&answer, &format!("{plugin} {verb} {bytes:?}"));
                Ok(())
            })
            .unwrap();
    }

    fn arbitrary_environments(_lab) {
        let plugin = prop::sample::select(OURS.to_vec());
        let value = "[^\\x00]{0,24}";
        let config = r#"{"cniVersion":"1.0.0","name":"n","ipam":{"type":"host-local","subnet":"10.1.0.0/24"}}"#;
        runner(250)
            .run(&(plugin, verbs(), prop::collection::vec(value, 5)), |(plugin, verb, values)| {
                let mut call = Call::new(find(plugin, &[plugins()]).unwrap()).env("CNI_COMMAND", verb).stdin(config);
                let names = ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH"];
                for (name, value) in names.iter().zip(&values) {
                    call = call.env(name, value);
                }
                proper(&call.run().unwrap(), &format!("{plugin} {verb} {values:?}"));
                Ok(())
            })
            .unwrap();
    }
}
