//! What a result says, whatever version it is written in.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use serde_json::Value;

/// An address of a result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Assigned {
    /// Address with prefix length.
    pub address: IpNetwork,
    /// Gateway, if the result names one.
    pub gateway: Option<IpAddr>,
    /// Index into the result's interfaces, if it has one.
    pub interface: Option<u64>,
}

/// An interface of a result.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Interface {
    /// Interface name.
    pub name: String,
    /// MAC address; may be empty.
    pub mac: String,
    /// Path of the namespace it is in; empty for the host's.
    pub sandbox: String,
}

/// The addresses of a result of any version.
#[must_use]
pub fn addresses(result: &Value) -> Vec<Assigned> {
    let modern = result
        .get("ips")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let modern = modern.filter_map(|ip| assigned(ip, "address"));
    let old = ["ip4", "ip6"].into_iter().filter_map(|key| result.get(key));
    modern
        .chain(old.filter_map(|ip| assigned(ip, "ip")))
        .collect()
}

fn assigned(ip: &Value, key: &str) -> Option<Assigned> {
    let text = |key: &str| ip.get(key).and_then(Value::as_str);
    Some(Assigned {
        address: text(key)?.parse().ok()?,
        gateway: text("gateway").and_then(|gateway| gateway.parse().ok()),
        interface: ip.get("interface").and_then(Value::as_u64),
    })
}

/// The interfaces of a result; early versions have none.
#[must_use]
pub fn interfaces(result: &Value) -> Vec<Interface> {
    let list = result
        .get("interfaces")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    list.map(|one| {
        let text = |key: &str| {
            one.get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Interface {
            name: text("name"),
            mac: text("mac"),
            sandbox: text("sandbox"),
        }
    })
    .collect()
}

/// How an address may be written in rules, elements and files: as text and as bytes.
#[must_use]
pub fn spellings(address: IpAddr) -> [String; 2] {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    match address {
        IpAddr::V4(v4) => [v4.to_string(), hex(&v4.octets())],
        IpAddr::V6(v6) => [v6.to_string(), hex(&v6.octets())],
    }
}
