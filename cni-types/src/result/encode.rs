//! The model to the true shape of each version.

use super::{CniResult, Dns, Interface, Ip, ResultError, Route};
use crate::json;
use crate::version::{Family, SpecVersion};
use serde_json::{Map, Value};

impl CniResult {
    /// The result in the shape of `version`, with the reference set's order of keys.
    ///
    /// Older versions lose what they cannot say: 0.3.0 to 0.4.0 an interface's mtu, socket and
    /// PCI device, 0.1.0 and 0.2.0 also all interfaces, every address but the first of each
    /// family, routes of a family without address, and all of a route but destination and next
    /// hop.
    ///
    /// # Errors
    ///
    /// [`ResultError::NoIps`] for 0.1.0 and 0.2.0 when there is no address at all.
    pub fn encode(&self, version: SpecVersion) -> Result<Value, ResultError> {
        match version.family() {
            Family::Legacy if self.ips.is_empty() => Err(ResultError::NoIps),
            Family::Legacy => Ok(self.legacy(version, RouteDetail::NextHop)),
            Family::Lists => Ok(self.lists(version)),
            Family::Current => Ok(self.current(version)),
        }
    }

    /// What a plugin prints: [`encode`](Self::encode), indented by four spaces, without a
    /// trailing newline.
    ///
    /// # Errors
    ///
    /// As [`encode`](Self::encode).
    pub fn to_json(&self, version: SpecVersion) -> Result<String, ResultError> {
        Ok(json::to_pretty(&self.encode(version)?))
    }

    fn legacy(&self, version: SpecVersion, detail: RouteDetail) -> Value {
        let mut object = Object::version(version);
        for (key, v6) in [("ip4", false), ("ip6", true)] {
            let Some(ip) = self.ips.iter().find(|ip| ip.address.is_ipv6() == v6) else {
                continue;
            };
            let routes = self.routes.iter().filter(|route| route.dst.is_ipv6() == v6);
            let routes: Vec<Value> = routes
                .map(|route| match detail {
                    RouteDetail::Full => encode_route(route),
                    RouteDetail::NextHop => encode_route(&Route::new(route.dst, route.gw)),
                })
                .collect();
            object.put(
                key,
                Object::default()
                    .with("ip", ip.address.to_string())
                    .some("gateway", ip.gateway.map(|gateway| gateway.to_string()))
                    .list("routes", routes)
                    .0,
            );
        }
        object.with("dns", encode_dns(&self.dns)).into()
    }

    fn lists(&self, version: SpecVersion) -> Value {
        let interface = |interface: &Interface| {
            Object::default()
                .with("name", interface.name.as_str())
                .text("mac", &interface.mac)
                .text("sandbox", &interface.sandbox)
                .into()
        };
        let ip = |ip: &Ip| {
            Object::default()
                .with("version", if ip.address.is_ipv4() { "4" } else { "6" })
                .some("interface", ip.interface)
                .with("address", ip.address.to_string())
                .some("gateway", ip.gateway.map(|gateway| gateway.to_string()))
                .into()
        };
        Object::version(version)
            .list(
                "interfaces",
                self.interfaces.iter().map(interface).collect(),
            )
            .list("ips", self.ips.iter().map(ip).collect())
            .list("routes", self.routes.iter().map(encode_route).collect())
            .with("dns", encode_dns(&self.dns))
            .into()
    }

    fn current(&self, version: SpecVersion) -> Value {
        let interface = |interface: &Interface| {
            Object::default()
                .with("name", interface.name.as_str())
                .text("mac", &interface.mac)
                .number("mtu", interface.mtu)
                .text("sandbox", &interface.sandbox)
                .text("socketPath", &interface.socket_path)
                .text("pciID", &interface.pci_id)
                .into()
        };
        let ip = |ip: &Ip| {
            Object::default()
                .with("address", ip.address.to_string())
                .some("gateway", ip.gateway.map(|gateway| gateway.to_string()))
                .some("interface", ip.interface)
                .into()
        };
        let dns = (!self.dns.is_empty()).then(|| encode_dns(&self.dns));
        let object = Object::version(version)
            .some("dns", dns)
            .list(
                "interfaces",
                self.interfaces.iter().map(interface).collect(),
            )
            .list("ips", self.ips.iter().map(ip).collect())
            .list("routes", self.routes.iter().map(encode_route).collect());
        json::sorted(&object.into())
    }
}

/// Turns a printed result into the shape of another version.
///
/// `default` is the version of a result that names none. Unlike decoding and encoding by hand
/// this keeps, between 0.1.0 and 0.2.0, all of a route, and a result without any address.
///
/// # Errors
///
/// As [`CniResult::decode`] and [`CniResult::encode`].
pub fn convert(value: &Value, default: SpecVersion, to: SpecVersion) -> Result<Value, ResultError> {
    let (from, result) = CniResult::decode(value, default)?;
    if from.family() == Family::Legacy && to.family() == Family::Legacy {
        return Ok(result.legacy(to, RouteDetail::Full));
    }
    result.encode(to)
}

/// How much of a route 0.1.0 and 0.2.0 carry.
#[derive(Clone, Copy)]
enum RouteDetail {
    Full,
    NextHop,
}

fn encode_route(route: &Route) -> Value {
    Object::default()
        .with("dst", route.dst.to_string())
        .some("gw", route.gw.map(|gw| gw.to_string()))
        .number("mtu", route.mtu)
        .number("advmss", route.advmss)
        .number("priority", route.priority)
        .some("table", route.table)
        .some("scope", route.scope)
        .into()
}

fn encode_dns(dns: &Dns) -> Value {
    let list = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
    Object::default()
        .list("nameservers", list(&dns.nameservers))
        .text("domain", &dns.domain)
        .list("search", list(&dns.search))
        .list("options", list(&dns.options))
        .into()
}

/// An object under construction. `with` always writes the key, the others leave it out when
/// there is nothing to say.
#[derive(Default)]
struct Object(Map<String, Value>);

impl Object {
    fn version(version: SpecVersion) -> Self {
        Object::default().with("cniVersion", version.as_str())
    }

    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.put(key, value);
        self
    }

    fn some(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    fn text(self, key: &str, text: &str) -> Self {
        self.some(key, (!text.is_empty()).then_some(text))
    }

    fn number(self, key: &str, number: i64) -> Self {
        self.some(key, (number != 0).then_some(number))
    }

    fn list(self, key: &str, list: Vec<Value>) -> Self {
        self.some(key, (!list.is_empty()).then_some(list))
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Value::Object(object.0)
    }
}
