use cni_types::Value;
use serde_json::json;

use super::*;

fn decode_as(version: SpecVersion, args: &str, value: Value) -> Result<Config, ConfigError> {
    Config::decode(&value, version, &Args::parse(args))
}

fn decode(value: Value) -> Config {
    decode_as(SpecVersion::V1_0_0, "", value).unwrap()
}

fn refused(value: Value) -> String {
    decode_as(SpecVersion::V1_0_0, "", value)
        .unwrap_err()
        .to_string()
}

fn sets(config: &Config) -> Vec<String> {
    config.sets.iter().map(ToString::to_string).collect()
}

fn requested(config: &Config) -> Vec<String> {
    config.requested.iter().map(ToString::to_string).collect()
}

#[test]
fn old_style() {
    let config = decode(json!({"ipam": {
        "type": "host-local", "subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.20",
        "gateway": "10.1.2.30", "routes": [{"dst": "0.0.0.0/0"}], "resolvConf": "/x"}}));
    assert_eq!(sets(&config), ["10.1.2.9-10.1.2.20"]);
    assert_eq!(
        config.sets[0].ranges()[0].gateway().to_string(),
        "10.1.2.30"
    );
    assert_eq!(config.routes.len(), 1);
    assert_eq!(config.resolv_conf.unwrap().to_str(), Some("/x"));
}

#[test]
fn the_companions_of_a_missing_subnet_count_for_nothing() {
    let config = decode(
        json!({"ipam": {"gateway": "10.1.2.30", "rangeStart": "1.2.3.4", "ranges": [[{"subnet": "10.1.2.0/24"}]]}}),
    );
    assert_eq!(sets(&config), ["10.1.2.1-10.1.2.254"]);
}

#[test]
fn new_style_mixed_with_old_and_runtime() {
    let config = decode(json!({
        "ipam": {
            "subnet": "10.1.0.0/24",
            "ranges": [[{"subnet": "10.2.0.0/24"}, {"subnet": "10.3.0.0/24", "rangeStart": "10.3.0.5"}], [{"subnet": "2001:db8:1::/48"}]],
        },
        "runtimeConfig": {"ipRanges": [[{"subnet": "10.9.0.0/24", "gateway": "10.9.0.254"}]]},
    }));
    let texts = sets(&config);
    assert_eq!(texts[0], "10.9.0.1-10.9.0.254");
    assert_eq!(texts[1], "10.1.0.1-10.1.0.254");
    assert_eq!(texts[2], "10.2.0.1-10.2.0.254,10.3.0.5-10.3.0.254");
    assert!(texts[3].starts_with("2001:db8:1::1-"));
}

#[test]
fn keys_match_without_case_and_null_is_unset() {
    let config = decode(
        json!({"IPAM": {"SUBNET": "10.1.2.0/24", "rangestart": null, "Ranges": null, "dataDir": null, "resolvConf": ""}, "args": null, "runtimeConfig": null}),
    );
    assert_eq!(sets(&config), ["10.1.2.1-10.1.2.254"]);
    assert!(config.resolv_conf.is_none() && config.requested.is_empty());
}

#[test]
fn requested_addresses_accumulate_in_order() {
    let value = json!({
        "ipam": {"subnet": "10.1.2.0/24"},
        "args": {"cni": {"ips": ["10.1.2.11", "10.1.2.12/24"]}},
        "runtimeConfig": {"ips": ["2001:db8::5/64", "10.1.2.13"]},
    });
    let config = decode_as(
        SpecVersion::V1_0_0,
        "IgnoreUnknown=1;IP=10.1.2.10/24;MAC=aa",
        value.clone(),
    )
    .unwrap();
    assert_eq!(
        requested(&config),
        [
            "10.1.2.10",
            "10.1.2.11",
            "10.1.2.12",
            "2001:db8::5",
            "10.1.2.13"
        ]
    );
    let config = decode_as(SpecVersion::V1_0_0, "IP=;K8S_POD_NAME=x", value).unwrap();
    assert_eq!(config.requested.len(), 4);
}

#[test]
fn bad_requested_addresses_say_where() {
    for (args, value, place) in [
        ("IP=bogus", json!({}), "\"bogus\" in CNI_ARGS"),
        ("IP=10.0.0.1/99", json!({}), "\"10.0.0.1/99\" in CNI_ARGS"),
        (
            "",
            json!({"args": {"cni": {"ips": [""]}}}),
            "\"\" in args.cni.ips",
        ),
        (
            "",
            json!({"runtimeConfig": {"ips": ["10.1.2"]}}),
            "\"10.1.2\" in runtimeConfig.ips",
        ),
    ] {
        let mut value = value;
        value["ipam"] = json!({"subnet": "10.1.2.0/24"});
        let message = decode_as(SpecVersion::V1_0_0, args, value)
            .unwrap_err()
            .to_string();
        assert!(message.contains(place), "{message}");
    }
}

#[test]
fn early_versions_have_room_for_one_address_of_each_family() {
    let two = |a: &str, b: &str| json!({"ipam": {"ranges": [[{"subnet": a}], [{"subnet": b}]]}});
    let v4v4 = two("10.1.0.0/24", "10.2.0.0/24");
    let v6v6 = two("2001:db8:1::/64", "2001:db8:2::/64");
    for version in [SpecVersion::V0_1_0, SpecVersion::V0_2_0] {
        assert!(decode_as(version, "", two("10.1.0.0/24", "2001:db8:2::/64")).is_ok());
        for value in [&v4v4, &v6v6] {
            let e = decode_as(version, "", value.clone()).unwrap_err();
            assert!(
                e.to_string().contains("more than 1 address per family"),
                "{e}"
            );
        }
    }
    for value in [v4v4, v6v6] {
        assert!(decode_as(SpecVersion::V0_3_0, "", value).is_ok());
    }
}

#[test]
fn wrong_configurations_are_refused() {
    for (value, gist) in [
        (json!({}), "missing 'ipam' key"),
        (json!({"ipam": null}), "missing 'ipam' key"),
        (json!({"ipam": {}}), "no IP ranges specified"),
        (json!({"ipam": {"ranges": []}}), "no IP ranges specified"),
        (
            json!({"ipam": {"ranges": [[]]}}),
            "invalid range set 0: empty range set",
        ),
        (
            json!({"ipam": {"ranges": [[{}]]}}),
            "invalid range set 0: a range has no subnet",
        ),
        (json!({"ipam": []}), "ipam"),
        (
            json!({"ipam": {"subnet": "10.1.2.0"}}),
            "invalid CIDR address: 10.1.2.0",
        ),
        (
            json!({"ipam": {"subnet": "10.1.2.3/24"}}),
            "the network address is 10.1.2.0",
        ),
        (
            json!({"ipam": {"subnet": "10.1.2.0/24", "dataDir": 5}}),
            "ipam.dataDir",
        ),
        (
            json!({"ipam": {"subnet": "10.1.2.0/24", "reclaimAfterReboot": "no"}}),
            "ipam.reclaimAfterReboot",
        ),
        (
            json!({"ipam": {"subnet": "10.1.2.0/24", "routes": [{}]}}),
            "ipam.routes[0]",
        ),
        (
            json!({"ipam": {"subnet": "10.1.2.0/24", "ranges": [[{"subnet": "10.1.2.128/25"}]]}}),
            "range set 0 overlaps with 1",
        ),
    ] {
        let message = refused(value);
        assert!(message.contains(gist), "{message}");
    }
}

#[test]
fn the_place_is_found_in_any_configuration() {
    for (value, dir, reclaim) in [
        (json!({}), "/var/lib/cni/networks/net", true),
        (
            json!({"ipam": {"dataDir": ""}}),
            "/var/lib/cni/networks/net",
            true,
        ),
        (
            json!({"ipam": {"DataDir": "/run/x", "ranges": "nonsense", "reclaimAfterReboot": false}}),
            "/run/x/net",
            false,
        ),
        (
            json!({"ipam": 7, "runtimeConfig": []}),
            "/var/lib/cni/networks/net",
            true,
        ),
        (
            json!({"ipam": {"dataDir": 7, "reclaimAfterReboot": 0}}),
            "/var/lib/cni/networks/net",
            true,
        ),
    ] {
        let place = Place::of(&value, "net");
        assert_eq!((place.dir.to_str().unwrap(), place.reclaim), (dir, reclaim));
    }
}
