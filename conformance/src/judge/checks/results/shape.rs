//! The form of a result, version by version.

use ipnetwork::IpNetwork;
use serde_json::{Map, Value};

use crate::judge::check::{Check, Versions, spec};
use crate::judge::place::Families;
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, fault, skip};

const SUCCESS: &str = "5 \"ADD Success\"";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "results.version",
        title: "the result's cniVersion is that of the configuration",
        clause: spec(SUCCESS),
        versions: Versions::Each,
        run: version,
    },
    Check {
        id: "results.keys",
        title: "the result has the keys of its version and no others of the protocol's",
        clause: spec(SUCCESS),
        versions: Versions::Each,
        run: |trial| each_object(trial, keys),
    },
    Check {
        id: "results.ip-version",
        title: "addresses say their family from 0.3.0 to 0.4.0, and do not from 1.0.0 on",
        clause: spec(SUCCESS),
        versions: Versions::EachFrom("0.3.0"),
        run: |trial| each_object(trial, ip_version),
    },
    Check {
        id: "results.addresses",
        title: "addresses have a prefix, gateways have none, routes name a network",
        clause: spec(SUCCESS),
        versions: Versions::Each,
        run: |trial| each_object(trial, addresses),
    },
    Check {
        id: "results.indices",
        title: "each address that names an interface names one of the list",
        clause: spec(SUCCESS),
        versions: Versions::EachFrom("0.3.0"),
        run: |trial| each_object(trial, indices),
    },
    Check {
        id: "results.interfaces",
        title: "each interface has a name; mac and sandbox, where given, are a MAC address and a text",
        clause: spec(SUCCESS),
        versions: Versions::EachFrom("0.3.0"),
        run: |trial| each_object(trial, interfaces),
    },
    Check {
        id: "results.dns",
        title: "dns, where given, holds lists and texts",
        clause: spec(SUCCESS),
        versions: Versions::Each,
        run: |trial| each_object(trial, dns),
    },
    Check {
        id: "results.ipam-names-no-interfaces",
        title: "an IPAM plugin's result has no interfaces, and its addresses name none",
        clause: spec(
            "5 \"Delegated plugins (IPAM)\": an abbreviated success object without interfaces",
        ),
        versions: Versions::EachFrom("0.3.0"),
        run: ipam,
    },
];

fn result(trial: &Trial<'_>) -> Verdict<Value> {
    let mut attached = trial.attach_with(Families::V4)?;
    trial.add(&mut attached)
}

fn each_object(trial: &Trial<'_>, judge: fn(&Value, &str) -> Verdict) -> Verdict {
    judge(&result(trial)?, &trial.version)
}

fn version(trial: &Trial<'_>) -> Verdict {
    let result = result(trial)?;
    let found = result.get("cniVersion").and_then(Value::as_str);
    ensure(found == Some(trial.version.as_str()), || {
        format!("cniVersion is {found:?} in {result}")
    })
}

fn is_early(version: &str) -> bool {
    matches!(version, "0.1.0" | "0.2.0")
}

/// The list under a key; empty if it is not there.
fn list<'a>(result: &'a Value, key: &str) -> Verdict<Vec<&'a Map<String, Value>>> {
    let Some(value) = result.get(key) else {
        return Ok(Vec::new());
    };
    let all: Option<Vec<_>> = value
        .as_array()
        .and_then(|list| list.iter().map(Value::as_object).collect());
    match all {
        Some(list) => Ok(list),
        None => fault(format!("{key} is no list of objects: {result}")),
    }
}

fn keys(result: &Value, version: &str) -> Verdict {
    let (wanted, foreign): (&[&str], &[&str]) = if is_early(version) {
        (&["ip4", "ip6"], &["ips", "interfaces", "routes"])
    } else {
        (&["ips", "interfaces", "routes"], &["ip4", "ip6", "ip"])
    };
    for key in foreign {
        ensure(result.get(*key).is_none(), || {
            format!("{key} is no key of {version}: {result}")
        })?;
    }
    if is_early(version) {
        for key in wanted {
            let ip = result.get(*key);
            let has_ip = ip.is_none_or(|ip| ip.get("ip").is_some_and(Value::is_string));
            ensure(has_ip, || format!("{key} without ip: {result}"))?;
        }
        return Ok(());
    }
    wanted
        .iter()
        .try_for_each(|key| list(result, key).map(drop))
}

fn ip_version(result: &Value, version: &str) -> Verdict {
    for ip in list(result, "ips")? {
        let address: Option<IpNetwork> = text(ip, "address").and_then(|text| text.parse().ok());
        let family = match address {
            Some(IpNetwork::V4(_)) => "4",
            Some(IpNetwork::V6(_)) => "6",
            None => return fault(format!("an address that is none: {result}")),
        };
        let said = ip.get("version").and_then(Value::as_str);
        let wanted = version.starts_with("0.").then_some(family);
        ensure(said == wanted, || {
            format!(
                "expected version {wanted:?} of an address in {version}, found {said:?}: {result}"
            )
        })?;
    }
    Ok(())
}

fn text<'a>(object: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

fn addresses(result: &Value, version: &str) -> Verdict {
    if is_early(version) {
        for key in ["ip4", "ip6"] {
            if let Some(ip) = result.get(key).and_then(Value::as_object) {
                one_address(result, ip, "ip")?;
                routes(result, ip.get("routes"))?;
            }
        }
        return Ok(());
    }
    for ip in list(result, "ips")? {
        one_address(result, ip, "address")?;
    }
    routes(result, result.get("routes"))
}

fn one_address(result: &Value, ip: &Map<String, Value>, key: &str) -> Verdict {
    let address = text(ip, key).unwrap_or_default();
    ensure(
        address.contains('/') && address.parse::<IpNetwork>().is_ok(),
        || format!("{address:?} is no address with a prefix: {result}"),
    )?;
    let gateway = ip.get("gateway").and_then(Value::as_str);
    ensure(
        gateway.is_none_or(|gateway| gateway.parse::<std::net::IpAddr>().is_ok()),
        || format!("{gateway:?} is no address: {result}"),
    )
}

fn routes(result: &Value, routes: Option<&Value>) -> Verdict {
    for route in routes.and_then(Value::as_array).into_iter().flatten() {
        let dst = route.get("dst").and_then(Value::as_str).unwrap_or_default();
        ensure(
            dst.contains('/') && dst.parse::<IpNetwork>().is_ok(),
            || format!("{dst:?} is no destination of a route: {result}"),
        )?;
        let gw = route.get("gw").and_then(Value::as_str);
        ensure(
            gw.is_none_or(|gw| gw.parse::<std::net::IpAddr>().is_ok()),
            || format!("{gw:?} is no address: {result}"),
        )?;
    }
    Ok(())
}

fn indices(result: &Value, _version: &str) -> Verdict {
    let number = list(result, "interfaces")?.len();
    for ip in list(result, "ips")? {
        if let Some(index) = ip.get("interface") {
            let inside = index
                .as_u64()
                .and_then(|index| usize::try_from(index).ok())
                .is_some_and(|index| index < number);
            ensure(inside, || {
                format!("interface {index} of {number} interfaces: {result}")
            })?;
        }
    }
    Ok(())
}

fn interfaces(result: &Value, _version: &str) -> Verdict {
    for interface in list(result, "interfaces")? {
        ensure(
            text(interface, "name").is_some_and(|name| !name.is_empty()),
            || format!("an interface without a name: {result}"),
        )?;
        ensure(
            interface.get("sandbox").is_none_or(Value::is_string),
            || format!("a sandbox that is no text: {result}"),
        )?;
        let mac = text(interface, "mac").unwrap_or_default();
        let is_mac = mac.split(':').count() >= 6
            && mac
                .split(':')
                .all(|byte| byte.len() == 2 && u8::from_str_radix(byte, 16).is_ok());
        ensure(mac.is_empty() || is_mac, || {
            format!("{mac:?} is no MAC address: {result}")
        })?;
    }
    Ok(())
}

fn dns(result: &Value, _version: &str) -> Verdict {
    let Some(dns) = result.get("dns") else {
        return Ok(());
    };
    let texts = |value: &Value| {
        value
            .as_array()
            .is_some_and(|list| list.iter().all(Value::is_string))
    };
    let lists = ["nameservers", "search", "options"]
        .iter()
        .all(|key| dns.get(*key).is_none_or(texts));
    ensure(
        dns.is_object() && lists && dns.get("domain").is_none_or(Value::is_string),
        || format!("dns: {result}"),
    )
}

fn ipam(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role != Role::Ipam {
        return skip("no IPAM plugin");
    }
    let result = result(trial)?;
    ensure(result.get("interfaces").is_none(), || {
        format!("interfaces in {result}")
    })?;
    let named = list(&result, "ips")?
        .iter()
        .any(|ip| ip.contains_key("interface"));
    ensure(!named, || {
        format!("an address names an interface: {result}")
    })?;
    ensure(!list(&result, "ips")?.is_empty(), || {
        format!("no address in {result}")
    })
}
