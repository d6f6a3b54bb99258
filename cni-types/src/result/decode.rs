//! Any version's shape to the model.

use super::{CniResult, Dns, Interface, Ip, ResultError, Route};
use crate::json;
use crate::net::optional_ip;
use crate::version::{Family, SpecVersion};
use ipnetwork::IpNetwork;
use serde::Deserialize;
use serde::de::{self, DeserializeOwned, Deserializer};
use serde_json::Value;
use std::net::IpAddr;

impl CniResult {
    /// Reads a result of any version, with that version.
    ///
    /// `default` is the version of a result that names none or an empty one: the version of the
    /// configuration, since the reference set's plugins leave it to that. `null` is an empty
    /// result. The shape is taken from the content where it contradicts the version, because the
    /// reference set's loopback prints the 1.x shape under every version; for 0.3.0 the list may
    /// be called `ip`, as that version's text has it.
    ///
    /// # Errors
    ///
    /// An unknown version, a value of the wrong type, a missing address or destination, or
    /// `null` as an element of a list.
    pub fn decode(
        value: &Value,
        default: SpecVersion,
    ) -> Result<(SpecVersion, CniResult), ResultError> {
        let version = version_of(value, default)?;
        let body: Body = json::from_value(value)?;
        let has_legacy = body.ip4.is_some() || body.ip6.is_some();
        let result = if version.family() == Family::Legacy && has_legacy {
            body.into_legacy()
        } else {
            body.into_lists()
        };
        Ok((version, result))
    }
}

/// Every spelling of the key counts, the last one that says something.
fn version_of(value: &Value, default: SpecVersion) -> Result<SpecVersion, ResultError> {
    let mut version = default;
    let pairs = value.as_object().into_iter().flatten();
    for (_, value) in pairs.filter(|(key, _)| json::same_key(key, "cniVersion")) {
        match value {
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            Value::String(text) => {
                version = text
                    .parse()
                    .map_err(|_| ResultError::Version(text.to_owned()))?;
            }
            _ => return Err(ResultError::VersionType),
        }
    }
    Ok(version)
}

/// The keys of every version together.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    ip4: Option<LegacyIp>,
    ip6: Option<LegacyIp>,
    #[serde(deserialize_with = "no_null_elements")]
    interfaces: Vec<Interface>,
    #[serde(deserialize_with = "no_null_elements")]
    ips: Vec<Ip>,
    #[serde(deserialize_with = "no_null_elements")]
    ip: Vec<Ip>,
    #[serde(deserialize_with = "no_null_elements")]
    routes: Vec<Route>,
    dns: Dns,
}

#[derive(Deserialize)]
struct LegacyIp {
    #[serde(deserialize_with = "crate::net::cidr_field")]
    ip: IpNetwork,
    #[serde(default, deserialize_with = "optional_ip")]
    gateway: Option<IpAddr>,
    #[serde(default, deserialize_with = "no_null_elements")]
    routes: Vec<Route>,
}

impl Body {
    fn into_legacy(self) -> CniResult {
        let mut result = CniResult {
            dns: self.dns,
            ..CniResult::default()
        };
        for part in [self.ip4, self.ip6].into_iter().flatten() {
            result.ips.push(Ip {
                gateway: part.gateway,
                ..Ip::new(part.ip)
            });
            result.routes.extend(part.routes);
        }
        result
    }

    fn into_lists(self) -> CniResult {
        CniResult {
            interfaces: self.interfaces,
            ips: if self.ips.is_empty() {
                self.ip
            } else {
                self.ips
            },
            routes: self.routes,
            dns: self.dns,
        }
    }
}

/// A list whose elements must all be there: `null` in one says nothing that could be kept.
fn no_null_elements<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let elements: Vec<Option<T>> = Vec::deserialize(deserializer)?;
    let count = elements.len();
    let list: Vec<T> = elements.into_iter().map_while(|element| element).collect();
    if list.len() < count {
        return Err(de::Error::custom(format_args!(
            "element {} is null",
            list.len()
        )));
    }
    Ok(list)
}
