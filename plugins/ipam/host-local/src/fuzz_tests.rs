//! Arbitrary requests: an answer or an error object, never a panic, and no file outside of the data directory.

use proptest::prelude::*;
use serde_json::{Value, json};
use skel::{Environment, serve};

use crate::HostLocal;

/// A value that may stand anywhere in a configuration.
fn any_value() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("10.1.2.0/24".to_owned()),
        Just("10.1.2.5".to_owned()),
        Just("2001:db8::/64".to_owned()),
        Just("::ffff:10.1.2.9/120".to_owned()),
        Just("255.255.255.255/0".to_owned()),
        Just("::/0".to_owned()),
        Just(String::new()),
        ".{0,12}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("subnet"),
        Just("rangeStart"),
        Just("rangeEnd"),
        Just("gateway"),
        Just("GATEWAY"),
        Just("dst"),
        Just("gw"),
        Just("cni"),
        Just("ips"),
        Just("ipRanges"),
        Just("containerID"),
        Just("ifname"),
        Just("address"),
    ]
    .prop_map(str::to_owned);
    leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn request() -> impl Strategy<Value = Value> {
    let ipam_key = prop_oneof![
        Just("ranges"),
        Just("subnet"),
        Just("rangeStart"),
        Just("rangeEnd"),
        Just("gateway"),
        Just("routes"),
        Just("resolvConf"),
        Just("reclaimAfterReboot"),
    ];
    let key = prop_oneof![
        Just("args"),
        Just("runtimeConfig"),
        Just("prevResult"),
        Just("cni.dev/valid-attachments"),
        Just("dns"),
    ];
    let good = json!([[{"subnet": "10.1.2.0/24"}], [{"subnet": "2001:db8::/64"}]]);
    (
        proptest::collection::vec((ipam_key, any_value()), 0..3),
        proptest::collection::vec((key, any_value()), 0..3),
        prop_oneof![Just("0.2.0"), Just("0.4.0"), Just("1.1.0")],
    )
        .prop_map(move |(ipam, rest, version)| {
            let mut request =
                json!({"cniVersion": version, "name": "net1", "ipam": {"ranges": good}});
            for (key, value) in ipam {
                request["ipam"][key] = value;
            }
            for (key, value) in rest {
                request[key] = value;
            }
            request
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_requests_are_answered(
        requests in proptest::collection::vec((request(), 0..5usize, "(IP=)?.{0,20}"), 1..4),
    ) {
        let tmp = tempfile::tempdir().unwrap();
        for (mut request, command, args) in requests {
            // Last, so that nothing is ever written elsewhere.
            request["ipam"]["dataDir"] = tmp.path().to_str().unwrap().into();
            let env = Environment {
                command: ["ADD", "DEL", "CHECK", "GC", "STATUS"][command].into(),
                container_id: "a".into(),
                netns: "/nonexistent/netns".into(),
                ifname: "eth0".into(),
                args: args.into(),
                path: "/nonexistent".into(),
                netns_override: "".into(),
            };
            let reply = serve::<HostLocal>(&env, request.to_string().as_bytes());
            if reply.status == 1 {
                let object: Value = serde_json::from_str(&reply.stdout).unwrap();
                prop_assert!(object["code"].as_u64().unwrap() > 0);
                prop_assert!(!object["msg"].as_str().unwrap().contains("unexpectedly"), "{}", object);
                prop_assert!(command != 1, "a DEL failed: {} {}", object, request);
            } else {
                prop_assert_eq!(reply.status, 0);
                prop_assert_eq!(reply.stdout.is_empty(), command != 0);
            }
            reply.commit();
        }
    }
}
