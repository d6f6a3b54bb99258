//! Network configuration lists.

use super::plugin::{PluginConf, PluginError};
use super::versions::{self, VersionsError};
use crate::json::{self, ParseError, kind};
use serde_json::{Map, Value, json};

/// A list cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// Not JSON.
    #[error("error parsing configuration list: {0}")]
    Parse(#[from] ParseError),
    /// JSON, but no object.
    #[error("error parsing configuration list: expected an object, found {0}")]
    NotAnObject(&'static str),
    /// No `name`.
    #[error("error parsing configuration list: no name")]
    NoName,
    /// A key of the wrong type.
    #[error(
        "error parsing configuration list: invalid '{key}' type: expected {expected}, found {found}"
    )]
    Type {
        /// The key.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A flag that is text, but neither `true` nor `false`.
    #[error("error parsing configuration list: invalid value {value:?} for {key}")]
    Flag {
        /// The key.
        key: &'static str,
        /// The text.
        value: String,
    },
    /// No usable version.
    #[error("error parsing configuration list: {0}")]
    Versions(#[from] VersionsError),
    /// `plugins` is an empty array, or absent although it must be there.
    #[error("error parsing configuration list: no plugins in list")]
    NoPlugins,
    /// A plugin's configuration is not usable.
    #[error("error parsing configuration list: failed to parse plugin config {0}: {1}")]
    Plugin(usize, PluginError),
}

/// A network: its name, the version spoken, and the plugins in order.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkList {
    /// The name, as written: whoever uses it checks it.
    pub name: String,
    /// The version chosen out of `cniVersion` and `cniVersions`, or `cniVersion` as written.
    pub cni_version: String,
    /// CHECK succeeds without asking the plugins.
    pub disable_check: bool,
    /// GC does nothing.
    pub disable_gc: bool,
    /// Plugins in the folder beside the list are left out.
    pub load_only_inlined_plugins: bool,
    /// The plugins, in the order of ADD.
    pub plugins: Vec<PluginConf>,
    bytes: Vec<u8>,
    raw: Map<String, Value>,
}

impl NetworkList {
    /// Reads a list. Keys at the top are matched with regard to case, as in the reference set.
    ///
    /// A list without `plugins` is accepted: they may come from a folder
    /// (see [`append`](Self::append)).
    ///
    /// # Errors
    ///
    /// [`ListError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ListError> {
        let raw = match json::parse(bytes)? {
            Value::Object(raw) => raw,
            Value::Null => Map::new(),
            other => return Err(ListError::NotAnObject(kind(&other))),
        };
        let name = text(&raw, "name")?.ok_or(ListError::NoName)?;
        let single = text(&raw, "cniVersion")?.unwrap_or_default();
        let cni_version = versions::select(&single, raw.get("cniVersions"))?;
        let disable_check = flag(&raw, "disableCheck")?;
        let disable_gc = flag(&raw, "disableGC")?;
        let load_only_inlined_plugins = flag(&raw, "loadOnlyInlinedPlugins")?;
        let plugins = plugins(&raw, load_only_inlined_plugins)?;
        Ok(NetworkList {
            name,
            cni_version,
            disable_check,
            disable_gc,
            load_only_inlined_plugins,
            plugins,
            bytes: bytes.to_vec(),
            raw,
        })
    }

    /// The list with one plugin that a single configuration stands for.
    pub fn from_single(plugin: PluginConf) -> Self {
        let raw = json!({
            "name": plugin.name,
            "cniVersion": plugin.cni_version,
            "plugins": [plugin.raw()],
        });
        NetworkList {
            name: plugin.name.clone(),
            cni_version: plugin.cni_version.clone(),
            disable_check: false,
            disable_gc: false,
            load_only_inlined_plugins: false,
            plugins: vec![plugin],
            bytes: json::to_string(&raw).into_bytes(),
            raw: raw.as_object().cloned().unwrap_or_default(),
        }
    }

    /// Adds plugins that were found outside the list itself.
    ///
    /// [`bytes`](Self::bytes) then say so too, with `loadOnlyInlinedPlugins`, so that who
    /// deletes by a stored copy of them deletes with every plugin that was used.
    pub fn append(&mut self, plugins: Vec<PluginConf>) {
        if plugins.is_empty() {
            return;
        }
        self.plugins.extend(plugins);
        let all: Value = self
            .plugins
            .iter()
            .map(|plugin| Value::from(plugin.raw().clone()))
            .collect();
        self.raw.insert("plugins".to_owned(), all);
        self.raw
            .insert("loadOnlyInlinedPlugins".to_owned(), true.into());
        self.bytes = json::to_string(&Value::Object(self.raw.clone())).into_bytes();
    }

    /// The list as JSON text: the bytes it was read from, unless plugins were
    /// [appended](Self::append).
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

fn wrong(key: &'static str, expected: &'static str, value: &Value) -> ListError {
    ListError::Type {
        key,
        expected,
        found: kind(value),
    }
}

fn text(raw: &Map<String, Value>, key: &'static str) -> Result<Option<String>, ListError> {
    match raw.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(other) => Err(wrong(key, "a string", other)),
    }
}

/// A bool, or the words for it as text.
fn flag(raw: &Map<String, Value>, key: &'static str) -> Result<bool, ListError> {
    match raw.get(key) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(Value::String(text)) => match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(ListError::Flag {
                key,
                value: text.clone(),
            }),
        },
        Some(other) => Err(wrong(key, "a bool", other)),
    }
}

fn plugins(raw: &Map<String, Value>, must_be_there: bool) -> Result<Vec<PluginConf>, ListError> {
    let list = match raw.get("plugins") {
        None if must_be_there => return Err(ListError::NoPlugins),
        None => return Ok(Vec::new()),
        Some(Value::Array(list)) if list.is_empty() => return Err(ListError::NoPlugins),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(wrong("plugins", "an array", other)),
    };
    list.iter()
        .enumerate()
        .map(|(index, plugin)| {
            PluginConf::decode(plugin.clone()).map_err(|e| ListError::Plugin(index, e))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(value: Value) -> Result<NetworkList, ListError> {
        NetworkList::parse(json::to_string(&value).as_bytes())
    }

    #[test]
    fn a_list() {
        let list = parse(json!({
            "name": "net", "cniVersion": "0.4.0", "cniVersions": ["1.0.0"], "disableCheck": "TRUE",
            "disableGC": false, "plugins": [{"type": "a", "x": 1}, {"type": "b", "name": "own"}],
        }))
        .unwrap();
        assert_eq!(
            (list.name.as_str(), list.cni_version.as_str()),
            ("net", "1.0.0")
        );
        assert!(list.disable_check && !list.disable_gc && !list.load_only_inlined_plugins);
        assert_eq!(list.plugins[1].name, "own");
    }

    #[test]
    fn unusable_lists() {
        for bad in [
            json!([]),
            json!(null),
            json!({}),
            json!({"name": 1}),
            json!({"name": null}),
            json!({"Name": "x"}),
            json!({"name": "x", "cniVersion": 1}),
            json!({"name": "x", "disableCheck": "yes"}),
            json!({"name": "x", "disableGC": null}),
            json!({"name": "x", "plugins": {}}),
            json!({"name": "x", "plugins": null}),
            json!({"name": "x", "plugins": []}),
            json!({"name": "x", "plugins": [{}]}),
            json!({"name": "x", "plugins": [null]}),
            json!({"name": "x", "loadOnlyInlinedPlugins": true}),
        ] {
            assert!(parse(bad.clone()).is_err(), "{bad}");
        }
        assert!(
            parse(json!({"name": "x", "type": "bridge"}))
                .unwrap()
                .plugins
                .is_empty()
        );
    }

    #[test]
    fn bytes_are_those_read_until_plugins_are_appended() {
        let text = br#"{ "name":"n", "x": 1.50, "plugins":[{"type":"a"}] }"#;
        let mut list = NetworkList::parse(text).unwrap();
        list.append(Vec::new());
        assert_eq!(list.bytes(), text);
        list.append(vec![PluginConf::parse(br#"{"type":"b"}"#).unwrap()]);
        let again = NetworkList::parse(list.bytes()).unwrap();
        assert_eq!(again.plugins, list.plugins);
        assert!(again.load_only_inlined_plugins);
        assert!(String::from_utf8_lossy(list.bytes()).contains("1.50"));
    }

    #[test]
    fn a_single_configuration_becomes_a_list() {
        let plugin =
            PluginConf::parse(br#"{"type":"a","name":"n","cniVersion":"0.2.0","z":1}"#).unwrap();
        let list = NetworkList::from_single(plugin);
        assert_eq!(list.cni_version, "0.2.0");
        let again = NetworkList::parse(list.bytes()).unwrap();
        assert_eq!(again.plugins, list.plugins);
        assert_eq!(again.plugins[0].raw()["z"], 1);
    }
}
