//! Results as real producers print them, including those that do not keep to a version's shape.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use cni_types::result::{ResultError, convert};
use cni_types::{CniResult, SpecVersion, Value};
use serde_json::json;

fn decode(value: Value) -> (SpecVersion, CniResult) {
    CniResult::decode(&value, SpecVersion::V0_4_0).unwrap()
}

fn refused(value: Value) -> String {
    CniResult::decode(&value, SpecVersion::V1_0_0)
        .unwrap_err()
        .to_string()
}

fn addresses(result: &CniResult) -> Vec<String> {
    result.ips.iter().map(|ip| ip.address.to_string()).collect()
}

#[test]
fn the_newest_shape_is_read_under_every_version() {
    for version in SpecVersion::ALL {
        let (found, result) = decode(json!({
            "cniVersion": version.as_str(),
            "interfaces": [{"mac": "00:00:00:00:00:00", "name": "lo", "sandbox": "/run/netns/a"}],
            "ips": [{"address": "127.0.0.1/8", "interface": 0}, {"address": "::1/128"}],
        }));
        assert_eq!(found, version);
        assert_eq!(addresses(&result), ["127.0.0.1/8", "::1/128"]);
        assert_eq!(result.interface_of(&result.ips[0]).unwrap().name, "lo");
        assert_eq!(result.interface_of(&result.ips[1]), None);
    }
}

#[test]
fn the_version_may_be_missing_empty_or_oddly_spelled() {
    assert_eq!(decode(json!({})).0, SpecVersion::V0_4_0);
    assert_eq!(
        decode(json!(null)),
        (SpecVersion::V0_4_0, CniResult::default())
    );
    assert_eq!(decode(json!({"cniVersion": ""})).0, SpecVersion::V0_4_0);
    assert_eq!(
        decode(json!({"CNIVersion": "0.2.0"})).0,
        SpecVersion::V0_2_0
    );
    assert_eq!(
        decode(json!({"CNIVersion": "1.0.0", "cniVersion": ""})).0,
        SpecVersion::V1_0_0
    );
    assert_eq!(
        CniResult::decode(&json!({"cniVersion": "9.0.0"}), SpecVersion::V0_1_0),
        Err(ResultError::Version("9.0.0".into()))
    );
    assert_eq!(
        CniResult::decode(&json!({"cniVersion": 1}), SpecVersion::V0_1_0),
        Err(ResultError::VersionType)
    );
}

#[test]
fn the_list_of_0_3_0_may_be_called_ip() {
    let (_, result) = decode(json!({
        "cniVersion": "0.3.0",
        "ip": [{"version": "4", "address": "10.0.0.2/8"}],
    }));
    assert_eq!(addresses(&result), ["10.0.0.2/8"]);
}

#[test]
fn legacy_keys_count_only_under_a_legacy_version() {
    let both = |version: &str| {
        json!({
            "cniVersion": version,
            "ip4": {"ip": "10.0.0.2/8", "gateway": "", "routes": null},
            "ips": [{"address": "10.0.0.3/8"}],
        })
    };
    assert_eq!(addresses(&decode(both("0.2.0")).1), ["10.0.0.2/8"]);
    assert_eq!(addresses(&decode(both("0.3.1")).1), ["10.0.0.3/8"]);
}

#[test]
fn missing_addresses_are_named() {
    assert_eq!(
        refused(json!({"ips": [{}]})),
        "invalid CNI result: ips[0]: missing field `address`"
    );
    assert_eq!(
        refused(json!({"routes": [{"dst": null}]})),
        "invalid CNI result: routes[0]: missing field `dst`"
    );
    assert_eq!(
        refused(json!({"routes": [{"dst": "<nil>"}]})),
        "invalid CNI result: routes[0]: invalid CIDR address: <nil>"
    );
    assert_eq!(
        refused(json!({"ips": [{"address": "10.0.0.1"}]})),
        "invalid CNI result: ips[0]: invalid CIDR address: 10.0.0.1"
    );
    assert_eq!(
        refused(json!({"cniVersion": "0.2.0", "ip4": {}})),
        "invalid CNI result: ip4: missing field `ip`"
    );
}

#[test]
fn null_in_a_list_is_an_error() {
    for key in ["ips", "interfaces", "routes"] {
        assert_eq!(
            refused(json!({key: [null]})),
            format!("invalid CNI result: {key}: element 0 is null")
        );
    }
    assert_eq!(
        decode(json!({"ips": null, "interfaces": null, "dns": null})).1,
        CniResult::default()
    );
}

#[test]
fn wrong_types_are_named() {
    assert_eq!(
        refused(json!([])),
        "invalid CNI result: expected an object, found an array"
    );
    assert_eq!(
        refused(json!({"interfaces": [{}, {"mtu": "1500"}]})),
        "invalid CNI result: interfaces[1].mtu: expected an integer, found a string"
    );
    assert_eq!(
        refused(json!({"ips": [{"address": "10.0.0.1/8", "interface": 1.0}]})),
        "invalid CNI result: ips[0].interface: 1.0 is not an integer in range"
    );
}

#[test]
fn an_interface_index_is_not_trusted() {
    for index in [-1, 1, i64::MAX, i64::MIN] {
        let (_, result) = decode(json!({
            "interfaces": [{"name": "eth0"}],
            "ips": [{"address": "10.0.0.1/8", "interface": index}],
        }));
        assert_eq!(result.ips[0].interface, Some(index));
        assert_eq!(result.interface_of(&result.ips[0]), None);
    }
}

#[test]
fn the_family_of_an_address_is_its_own_not_its_version_field() {
    let value = json!({
        "cniVersion": "0.4.0",
        "ips": [{"version": "", "address": "fd00::2/64"}, {"version": "6", "address": "10.0.0.2/8"}],
        "routes": [{"dst": "0.0.0.0/0", "mtu": 1400}, {"dst": "::/0"}],
    });
    let converted = convert(&value, SpecVersion::V0_4_0, SpecVersion::V0_2_0).unwrap();
    let want = json!({
        "cniVersion": "0.2.0",
        "ip4": {"ip": "10.0.0.2/8", "routes": [{"dst": "0.0.0.0/0"}]},
        "ip6": {"ip": "fd00::2/64", "routes": [{"dst": "::/0"}]},
        "dns": {},
    });
    assert_eq!(converted, want);
}

#[test]
fn legacy_results_keep_everything_between_themselves() {
    let value = json!({
        "cniVersion": "0.1.0",
        "ip4": {"ip": "10.0.0.2/8", "routes": [{"dst": "0.0.0.0/0", "mtu": 1400, "table": 0}]},
        "dns": {},
    });
    let mut want = value.clone();
    want["cniVersion"] = "0.2.0".into();
    assert_eq!(
        convert(&value, SpecVersion::V0_1_0, SpecVersion::V0_2_0).unwrap(),
        want
    );
    let lists = convert(&value, SpecVersion::V0_1_0, SpecVersion::V0_3_1).unwrap();
    assert_eq!(
        lists["routes"],
        json!([{"dst": "0.0.0.0/0", "mtu": 1400, "table": 0}])
    );
    let empty = json!({"dns": {"domain": "x"}});
    let converted = convert(&empty, SpecVersion::V0_2_0, SpecVersion::V0_1_0).unwrap();
    assert_eq!(
        converted,
        json!({"cniVersion": "0.1.0", "dns": {"domain": "x"}})
    );
}

#[test]
fn no_address_cannot_be_said_in_a_legacy_version() {
    let value = json!({"cniVersion": "1.0.0", "interfaces": [{"name": "eth0"}]});
    let error = convert(&value, SpecVersion::V1_0_0, SpecVersion::V0_2_0).unwrap_err();
    assert_eq!(error.to_string(), "cannot convert: no valid IP addresses");
}

#[test]
fn only_the_first_address_of_a_family_fits_a_legacy_version() {
    let (_, result) = decode(json!({
        "ips": [{"address": "10.0.0.2/8"}, {"address": "10.0.0.3/8"}],
        "routes": [{"dst": "::/0"}],
    }));
    let value = result.encode(SpecVersion::V0_2_0).unwrap();
    assert_eq!(
        value,
        json!({"cniVersion": "0.2.0", "ip4": {"ip": "10.0.0.2/8"}, "dns": {}})
    );
}
