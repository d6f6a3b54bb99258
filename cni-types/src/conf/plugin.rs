//! One plugin's configuration, and the request that is made of it.

use super::attachments::{Attachment, KEY, OLD_KEY};
use crate::json::{self, DecodeError, ParseError};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A plugin's configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// Not JSON.
    #[error("error parsing configuration: {0}")]
    Parse(#[from] ParseError),
    /// Not an object, or a base key of the wrong type.
    #[error("error parsing configuration: {0}")]
    Decode(#[from] DecodeError),
    /// Nothing to execute.
    #[error("error parsing configuration: missing 'type'")]
    NoType,
}

/// A plugin's configuration as a file has it. Every key is kept, understood or not.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginConf {
    /// `type`, the name of the executable.
    pub plugin_type: String,
    /// The configuration's own `name`, or empty.
    pub name: String,
    /// The configuration's own `cniVersion`, or empty.
    pub cni_version: String,
    capabilities: BTreeMap<String, bool>,
    raw: Map<String, Value>,
}

/// What is put into a plugin's configuration to make the request on its stdin.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// The list's name.
    pub name: &'a str,
    /// The list's version.
    pub cni_version: &'a str,
    /// The answer of the plugin before, or the cached result.
    pub prev_result: Option<&'a Value>,
    /// What the runtime gives, for all capabilities; each plugin gets what it asks for. `None`
    /// for GC and STATUS.
    pub capability_args: Option<&'a Map<String, Value>>,
    /// GC only: the attachments to keep.
    pub valid_attachments: Option<&'a [Attachment]>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Base {
    cni_version: String,
    name: String,
    r#type: String,
    capabilities: BTreeMap<String, bool>,
}

impl PluginConf {
    /// Reads a single plugin's configuration.
    ///
    /// # Errors
    ///
    /// [`PluginError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, PluginError> {
        Self::decode(json::parse(bytes)?)
    }

    /// As [`parse`](Self::parse), from a value.
    ///
    /// # Errors
    ///
    /// [`PluginError`].
    pub fn decode(value: Value) -> Result<Self, PluginError> {
        // The types of the keys that only plugins read are checked here as well, so that a
        // mistake shows when the file is loaded and not in the middle of an ADD.
        super::NetConf::decode(&value)?;
        let base: Base = json::from_value(&value)?;
        if base.r#type.is_empty() {
            return Err(PluginError::NoType);
        }
        let raw = match value {
            Value::Object(raw) => raw,
            _ => Map::new(),
        };
        Ok(PluginConf {
            plugin_type: base.r#type,
            name: base.name,
            cni_version: base.cni_version,
            capabilities: base.capabilities,
            raw,
        })
    }

    /// The configuration as it was read.
    pub fn raw(&self) -> &Map<String, Value> {
        &self.raw
    }

    /// The capabilities that are switched on.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        self.capabilities
            .iter()
            .filter(|(_, on)| **on)
            .map(|(name, _)| name.as_str())
    }

    /// The JSON for the plugin's stdin.
    ///
    /// Name and version of the list replace the plugin's own. `prevResult` and `runtimeConfig`
    /// replace what the file has only if there is something to put. `capabilities` are for the
    /// runtime alone and are left out, as the specification wants it.
    pub fn request(&self, request: &Request<'_>) -> Value {
        let mut object = self.raw.clone();
        json::remove(&mut object, "capabilities");
        set(&mut object, "name", request.name.into());
        set(&mut object, "cniVersion", request.cni_version.into());
        if let Some(result) = request.prev_result {
            set(&mut object, "prevResult", result.clone());
        }
        if let Some(args) = request.capability_args {
            let wanted: Map<String, Value> = self
                .capabilities()
                .filter_map(|name| Some((name.to_owned(), args.get(name)?.clone())))
                .collect();
            if !wanted.is_empty() {
                set(&mut object, "runtimeConfig", wanted.into());
            }
        }
        if let Some(attachments) = request.valid_attachments {
            let list: Value = attachments.iter().map(Attachment::encode).collect();
            set(&mut object, KEY, list.clone());
            set(&mut object, OLD_KEY, list);
        }
        Value::Object(object)
    }
}

/// Puts a key in place of every spelling of it, since the last one would win.
fn set(object: &mut Map<String, Value>, key: &str, value: Value) {
    json::remove(object, key);
    object.insert(key.to_owned(), value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn plugin(value: Value) -> PluginConf {
        PluginConf::decode(value).unwrap()
    }

    #[test]
    fn a_request_keeps_what_is_not_replaced() {
        let text = br#"{"type":"x","Name":"own","big":12345678901234567890,"prevResult":{"a":1},
            "runtimeConfig":{"file":true},"capabilities":{"mac":true,"ips":false,"dns":true}}"#;
        let conf = PluginConf::parse(text).unwrap();
        assert_eq!(conf.name, "own");
        let request = Request {
            name: "net",
            cni_version: "",
            ..Request::default()
        };
        assert_eq!(
            json::to_string(&conf.request(&request)),
            r#"{"type":"x","big":12345678901234567890,"prevResult":{"a":1},"runtimeConfig":{"file":true},"name":"net","cniVersion":""}"#
        );
    }

    #[test]
    fn capabilities_choose_the_runtime_config() {
        let conf = plugin(json!({"type": "x", "capabilities": {"mac": true, "ips": false}}));
        let args = json!({"mac": "aa", "ips": ["1"], "dns": {}});
        let request = Request {
            capability_args: args.as_object(),
            ..Request::default()
        };
        assert_eq!(
            conf.request(&request)["runtimeConfig"],
            json!({"mac": "aa"})
        );
        let none = plugin(json!({"type": "x"}));
        assert_eq!(none.request(&request).get("runtimeConfig"), None);
        assert_eq!(none.request(&request).get("capabilities"), None);
    }

    #[test]
    fn gc_sends_both_keys() {
        let list = [Attachment {
            container_id: "a".into(),
            ifname: "eth0".into(),
        }];
        let request = Request {
            valid_attachments: Some(&list),
            ..Request::default()
        };
        let value = plugin(json!({"type": "x"})).request(&request);
        assert_eq!(value[KEY], json!([{"containerID": "a", "ifname": "eth0"}]));
        assert_eq!(value[KEY], value[OLD_KEY]);
    }

    #[test]
    fn unusable_configurations() {
        for bad in [
            &b"{}"[..],
            b"null",
            b"[]",
            b"{",
            br#"{"type":""}"#,
            br#"{"type":1}"#,
            br#"{"type":"x","capabilities":{"a":1}}"#,
            br#"{"type":"x","prevResult":[]}"#,
            br#"{"type":"x","ipam":"y"}"#,
            br#"{"type":"x","ipam":{"type":1}}"#,
        ] {
            assert!(
                PluginConf::parse(bad).is_err(),
                "{}",
                String::from_utf8_lossy(bad)
            );
        }
    }
}
