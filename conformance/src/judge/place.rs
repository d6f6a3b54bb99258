//! Names and addresses that belong to one trial alone.

use serde_json::{Value, json};

/// What one trial may use.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Which trial of this sandbox it is, from 0.
    pub number: u8,
}

/// The addresses of one attachment.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// IPv4 address with prefix.
    pub v4: String,
    /// IPv4 gateway.
    pub gateway_v4: String,
    /// IPv6 address with prefix.
    pub v6: String,
    /// IPv6 gateway.
    pub gateway_v6: String,
}

impl Place {
    /// The network's name.
    pub fn network(self) -> String {
        format!("judged{}", self.number)
    }

    /// A bridge of our own.
    pub fn bridge(self) -> String {
        format!("jb{}", self.number)
    }

    /// The host's end of a pair that a trial makes for its container of this number.
    pub fn host_end(self, container: u8) -> String {
        format!("jv{}x{container}", self.number)
    }

    /// Addresses behind the host for the container of this number.
    pub fn own(self, container: u8) -> Addresses {
        let (net, host) = (100 + self.number % 100, u16::from(container) + 2);
        Addresses {
            v4: format!("10.{net}.7.{host}/24"),
            gateway_v4: format!("10.{net}.7.1"),
            v6: format!("fd00:{net}:7::{host:x}/64"),
            gateway_v6: format!("fd00:{net}:7::1"),
        }
    }

    /// Addresses on the host's uplink; the gateway is the station outside.
    pub fn uplink(self, container: u8) -> Addresses {
        let host = 50 + u16::from(self.number % 10) * 20 + u16::from(container);
        Addresses {
            v4: format!("192.0.2.{host}/24"),
            gateway_v4: "192.0.2.9".into(),
            v6: format!("2001:db8::{host:x}/64"),
            gateway_v6: "2001:db8::9".into(),
        }
    }
}

/// Which families an attachment gets.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Families {
    /// IPv4 only.
    V4,
    /// Both.
    Both,
}

/// An IPAM result of this version with these addresses and default routes.
pub fn lease(version: &str, addresses: &Addresses, families: Families) -> Value {
    let early = matches!(version, "0.1.0" | "0.2.0");
    let ips = [
        ("4", &addresses.v4, &addresses.gateway_v4, "0.0.0.0/0"),
        ("6", &addresses.v6, &addresses.gateway_v6, "::/0"),
    ];
    let ips = match families {
        Families::V4 => ips.get(..1).unwrap_or_default(),
        Families::Both => &ips,
    };
    let mut result = json!({"cniVersion": version});
    for (family, address, gateway, route) in ips {
        if early {
            merge(
                &mut result,
                &json!({format!("ip{family}"): {"ip": address, "gateway": gateway, "routes": [{"dst": route}]}}),
            );
            continue;
        }
        let mut ip = json!({"address": address, "gateway": gateway});
        if version.starts_with("0.") {
            merge(&mut ip, &json!({"version": family}));
        }
        push(&mut result, "ips", ip);
        push(&mut result, "routes", json!({"dst": route}));
    }
    result
}

/// Appends to a list in an object, which is made if it is not there.
pub fn push(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        let list = map.entry(key).or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(value);
        }
    }
}

/// Puts keys in, over those that are there.
pub fn merge(into: &mut Value, more: &Value) {
    if let (Some(into), Some(more)) = (into.as_object_mut(), more.as_object()) {
        into.extend(more.clone());
    }
}

/// Takes a key out.
pub fn without(value: &Value, key: &str) -> Value {
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        map.shift_remove(key);
    }
    value
}
