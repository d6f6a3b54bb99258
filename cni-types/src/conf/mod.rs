//! Network configuration: what a plugin finds on stdin, and the lists that runtimes read.

mod attachments;
mod list;
mod plugin;
mod versions;

pub use attachments::{Attachment, ValidAttachments};
pub use list::{ListError, NetworkList};
pub use plugin::{PluginConf, PluginError, Request};

use crate::json::{self, DecodeError, Key};
use crate::result::Dns;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The keys that every plugin knows, out of the JSON on its stdin.
///
/// Nothing is checked here beyond types: the name may be empty or illegal, the version unknown.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NetConf {
    /// `cniVersion` as written; empty means 0.1.0.
    pub cni_version: String,
    /// The network's name as written.
    pub name: String,
    /// `type`, the plugin's file name.
    pub plugin_type: String,
    /// Which runtime configuration the plugin takes.
    pub capabilities: BTreeMap<String, bool>,
    /// The IPAM section, not looked into but for [`ipam_type`](Self::ipam_type). `Null` if absent.
    pub ipam: Value,
    /// Name resolution.
    pub dns: Dns,
    /// What the plugins before have answered, an object.
    pub prev_result: Option<Value>,
    /// What the runtime gives for the capabilities. `Null` if absent.
    pub runtime_config: Value,
    /// Structured arguments. `Null` if absent.
    pub args: Value,
    /// GC: the attachments to keep.
    pub valid_attachments: ValidAttachments,
}

/// The base keys with simple types.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Base {
    cni_version: String,
    name: String,
    r#type: String,
    capabilities: BTreeMap<String, bool>,
    ipam: Value,
    dns: Dns,
    prev_result: Value,
    runtime_config: Value,
    args: Value,
}

impl NetConf {
    /// Reads the base keys of a plugin's request. `null` counts as an empty object.
    ///
    /// # Errors
    ///
    /// A value of the wrong type, by its path. `ipam` and `prevResult` must be objects.
    pub fn decode(value: &Value) -> Result<Self, DecodeError> {
        let base: Base = json::from_value(value)?;
        for (key, section) in [("ipam", &base.ipam), ("prevResult", &base.prev_result)] {
            require_object(section).map_err(|e| e.in_key(key))?;
        }
        let ipam_type: Result<IpamType, _> = json::from_value(&base.ipam);
        ipam_type.map_err(|e| e.in_key("ipam"))?;
        Ok(NetConf {
            valid_attachments: ValidAttachments::decode(value)?,
            cni_version: base.cni_version,
            name: base.name,
            plugin_type: base.r#type,
            capabilities: base.capabilities,
            ipam: base.ipam,
            dns: base.dns,
            prev_result: (!base.prev_result.is_null()).then_some(base.prev_result),
            runtime_config: base.runtime_config,
            args: base.args,
        })
    }

    /// The keys that mean the same to every plugin. What is in `ipam`, `dns`, `runtimeConfig` and `args` is each
    /// plugin's own, but for the name of the IPAM plugin.
    pub fn keys() -> Vec<Key> {
        let own = |key: &Key| {
            ["ipam", "dns", "runtimeConfig", "args"]
                .iter()
                .all(|section| {
                    key.path != *section && !key.path.starts_with(&format!("{section}."))
                })
        };
        let within = |section: &str, keys: Vec<Key>| {
            keys.into_iter()
                .map(|key| Key {
                    path: format!("{section}.{}", key.path),
                    ..key
                })
                .collect::<Vec<_>>()
        };
        let mut keys: Vec<Key> = json::keys::<Base>().into_iter().filter(own).collect();
        keys.extend(within("ipam", json::keys::<IpamType>()));
        for list in [attachments::KEY, attachments::OLD_KEY] {
            keys.extend(within(&format!("{list}[]"), json::keys::<Attachment>()));
        }
        keys
    }

    /// `ipam.type`, or empty.
    pub fn ipam_type(&self) -> &str {
        json::get(&self.ipam, "type")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct IpamType {
    #[serde(rename = "type")]
    _type: String,
}

fn require_object(value: &Value) -> Result<(), DecodeError> {
    match value {
        Value::Null | Value::Object(_) => Ok(()),
        other => Err(DecodeError::expected_object(other)),
    }
}
