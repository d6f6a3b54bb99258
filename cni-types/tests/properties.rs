//! What must hold for any input.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use cni_types::conf::Request;
use cni_types::result::{ResultError, convert};
use cni_types::version::{Family, LooseVersion};
use cni_types::{
    Args, CniError, CniResult, ContainerId, Dns, IfName, Interface, Ip, Map, NetConf, NetworkList,
    NetworkName, PluginConf, Route, SpecVersion, ValidAttachments, Value, json, net,
};
use ipnetwork::IpNetwork;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde::Deserialize;
use std::net::IpAddr;

/// Keys that mean something somewhere, so that random documents get past the first check.
const KEYS: &[&str] = &[
    "cniVersion",
    "CNIVersion",
    "cniVersions",
    "name",
    "Name",
    "type",
    "plugins",
    "capabilities",
    "ipam",
    "dns",
    "prevResult",
    "runtimeConfig",
    "args",
    "cni.dev/valid-attachments",
    "cni.dev/attachments",
    "containerID",
    "ifname",
    "disableCheck",
    "disableGC",
    "loadOnlyInlinedPlugins",
    "ip4",
    "ip6",
    "ip",
    "ips",
    "interfaces",
    "routes",
    "address",
    "gateway",
    "interface",
    "dst",
    "gw",
    "mtu",
    "table",
    "scope",
    "mac",
    "sandbox",
    "nameservers",
    "search",
    "options",
    "domain",
    "code",
    "msg",
    "details",
    "version",
];
const TEXTS: &[&str] = &[
    "",
    "0.1.0",
    "0.2.0",
    "0.3.0",
    "0.4.0",
    "1.0.0",
    "1.1.0",
    "9.9.9",
    "1",
    "x",
    "true",
    "FALSE",
    "10.0.0.2/8",
    "fd00::2/64",
    "10.0.0.1",
    "fd00::1",
    "::ffff:10.0.0.2/120",
    "<nil>",
    "eth0",
    "4",
];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300f64).prop_map(Value::from),
        proptest::sample::select(TEXTS).prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![4 => proptest::sample::select(KEYS).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn document() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((key(), inner), 0..8).prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn network() -> impl Strategy<Value = IpNetwork> {
    (any::<IpAddr>(), 0..=128u8).prop_map(|(ip, prefix)| {
        let ip = ip.to_canonical();
        IpNetwork::new(ip, prefix.min(if ip.is_ipv4() { 32 } else { 128 })).unwrap()
    })
}

fn address() -> impl Strategy<Value = Option<IpAddr>> {
    option::of(any::<IpAddr>().prop_map(|ip| ip.to_canonical()))
}

prop_compose! {
    fn interface()(
        name in ".{0,15}", mac in ".{0,20}", mtu in any::<i64>(),
        sandbox in ".{0,9}", socket_path in ".{0,9}", pci_id in ".{0,9}",
    ) -> Interface {
        Interface { name, mac, mtu, sandbox, socket_path, pci_id }
    }
}

prop_compose! {
    fn ip()(address in network(), gateway in address(), interface in option::of(any::<i64>())) -> Ip {
        Ip { address, gateway, interface }
    }
}

prop_compose! {
    fn route()(
        dst in network(), gw in address(), mtu in any::<i64>(), advmss in any::<i64>(),
        priority in any::<i64>(), table in option::of(any::<i64>()), scope in option::of(any::<i64>()),
    ) -> Route {
        Route { dst, gw, mtu, advmss, priority, table, scope }
    }
}

prop_compose! {
    fn dns()(
        nameservers in vec(".{0,9}", 0..3), domain in ".{0,9}",
        search in vec(".{0,9}", 0..3), options in vec(".{0,9}", 0..3),
    ) -> Dns {
        Dns { nameservers, domain, search, options }
    }
}

prop_compose! {
    fn result()(
        interfaces in vec(interface(), 0..3), ips in vec(ip(), 0..4),
        routes in vec(route(), 0..4), dns in dns(),
    ) -> CniResult {
        CniResult { interfaces, ips, routes, dns }
    }
}

/// Any version whose results have the shape of `family`.
fn version_of(family: Family) -> impl Strategy<Value = SpecVersion> {
    let versions: Vec<_> = SpecVersion::ALL
        .into_iter()
        .filter(|v| v.family() == family)
        .collect();
    proptest::sample::select(versions)
}

/// A result goes through everything that reads it.
fn exercise(value: &Value) {
    for default in SpecVersion::ALL {
        let Ok((version, result)) = CniResult::decode(value, default) else {
            continue;
        };
        for ip in &result.ips {
            let _ = result.interface_of(ip);
        }
        for to in SpecVersion::ALL {
            match result.encode(to) {
                Ok(encoded) => assert_eq!(CniResult::decode(&encoded, default).unwrap().0, to),
                Err(error) => assert_eq!(error, ResultError::NoIps),
            }
        }
        let same = convert(value, default, version);
        assert!(same.is_ok() || result.ips.is_empty(), "{same:?}");
    }
    let _ = NetConf::decode(value);
    let _ = ValidAttachments::decode(value);
    let _ = CniError::decode(value).map(|error| error.to_json());
    if let Ok(plugin) = PluginConf::decode(value.clone()) {
        assert!(NetConf::decode(&plugin.request(&Request::default())).is_ok());
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_survived(bytes in vec(any::<u8>(), 0..200)) {
        let _ = json::parse(&bytes);
        let _ = NetworkList::parse(&bytes);
        let _ = PluginConf::parse(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = Args::parse(&*text).require_well_formed();
        let _ = ContainerId::new(text.clone());
        let _ = NetworkName::new(text.clone());
        let _ = IfName::new(text.clone());
        let _ = text.parse::<LooseVersion>();
        let _ = net::parse_cidr(&text);
    }

    #[test]
    fn text_like_json_is_survived(text in r#"([\[\]{}:,"\\u0-9a-f]|\\u[d-e][0-9a-f]{3}|é){0,60}"#) {
        if let Ok(value) = json::parse(text.as_bytes()) {
            exercise(&value);
        }
        let _ = json::parse(format!("\"{text}\"").as_bytes());
    }

    #[test]
    fn any_document_is_survived(value in document()) {
        exercise(&value);
        let _ = NetworkList::parse(json::to_string(&value).as_bytes());
    }

    #[test]
    fn printing_and_parsing_are_inverse(value in document()) {
        prop_assert_eq!(&json::parse(json::to_string(&value).as_bytes()).unwrap(), &value);
        prop_assert_eq!(&json::parse(json::to_pretty(&value).as_bytes()).unwrap(), &value);
        prop_assert_eq!(json::sorted(&value), value);
    }

    #[test]
    fn valid_text_is_parsed_as_serde_json_does(value in document()) {
        let text = serde_json::to_string(&value).unwrap();
        prop_assert_eq!(json::parse(text.as_bytes()).unwrap(), value);
    }

    #[test]
    fn a_value_decodes_into_itself(value in document()) {
        prop_assert_eq!(json::from_value::<Value>(&value).unwrap(), value);
    }

    #[test]
    fn keys_decode_in_any_case(upper in vec(any::<bool>(), 8), port in any::<u16>()) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Mapping { host_port: u16 }
        let key: String = "hostPort".chars().zip(upper)
            .map(|(c, up)| if up { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
            .collect();
        let value = Value::Object(Map::from_iter([(key, port.into())]));
        prop_assert_eq!(json::from_value::<Mapping>(&value).unwrap().host_port, port);
    }

    #[test]
    fn current_results_round_trip(result in result(), version in version_of(Family::Current)) {
        let value = result.encode(version).unwrap();
        prop_assert_eq!(CniResult::decode(&value, SpecVersion::V0_1_0).unwrap(), (version, result.clone()));
        prop_assert_eq!(convert(&value, version, version).unwrap(), value);
        let printed = result.to_json(version).unwrap();
        let read = json::parse(printed.as_bytes()).unwrap();
        prop_assert_eq!(CniResult::decode(&read, version).unwrap().1, result);
    }

    #[test]
    fn list_results_lose_only_what_they_cannot_say(mut result in result(), version in version_of(Family::Lists)) {
        let value = result.encode(version).unwrap();
        for interface in &mut result.interfaces {
            (interface.mtu, interface.socket_path, interface.pci_id) = Default::default();
        }
        prop_assert_eq!(CniResult::decode(&value, SpecVersion::V0_1_0).unwrap(), (version, result));
        prop_assert_eq!(convert(&value, version, version).unwrap(), value);
    }

    #[test]
    fn legacy_results_are_stable(
        mut result in result(), ips in vec(ip(), 1..4), version in version_of(Family::Legacy),
    ) {
        result.ips = ips;
        let value = result.encode(version).unwrap();
        let (found, read) = CniResult::decode(&value, SpecVersion::V1_1_0).unwrap();
        prop_assert_eq!(found, version);
        for ip in &read.ips {
            let first = result.ips.iter().find(|i| i.address.is_ipv4() == ip.address.is_ipv4());
            let first = first.unwrap();
            prop_assert_eq!((ip.address, ip.gateway), (first.address, first.gateway));
        }
        prop_assert_eq!(read.encode(version).unwrap(), value.clone());
        prop_assert_eq!(convert(&value, version, version).unwrap(), value);
    }

    #[test]
    fn networks_print_and_parse(network in network()) {
        prop_assert_eq!(net::parse_cidr(&network.to_string()).unwrap(), network);
    }

    #[test]
    fn a_request_keeps_what_it_does_not_replace(
        mut conf in vec((key(), document()), 0..6), name in ".{0,9}",
    ) {
        conf.push(("type".into(), "x".into()));
        let value = Value::Object(conf.into_iter().collect());
        let Ok(plugin) = PluginConf::decode(value.clone()) else { return Ok(()) };
        let request = plugin.request(&Request { name: &name, cni_version: "1.0.0", ..Request::default() });
        let read = NetConf::decode(&request).unwrap();
        prop_assert_eq!(read.name, name);
        prop_assert_eq!(read.cni_version, "1.0.0");
        let replaced = ["name", "cniVersion", "capabilities"];
        for (key, kept) in value.as_object().unwrap() {
            if !replaced.iter().any(|known| json::same_key(known, key)) {
                prop_assert_eq!(request.get(key), Some(kept));
            }
        }
    }

    #[test]
    fn errors_round_trip(code in any::<u32>(), msg in ".{0,20}", details in ".{0,20}") {
        let error = CniError::new(code, msg).with_details(details);
        let read = json::parse(error.to_json().as_bytes()).unwrap();
        prop_assert_eq!(CniError::decode(&read).unwrap(), error);
    }

    #[test]
    fn arguments_are_found_again(pairs in vec(("[A-Z_]{1,8}", "[^;]{0,12}"), 0..5)) {
        let text: Vec<String> = pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let args = Args::parse(text.join(";"));
        prop_assert_eq!(args.pairs(), &pairs[..]);
        prop_assert!(args.malformed().is_empty());
    }
}
