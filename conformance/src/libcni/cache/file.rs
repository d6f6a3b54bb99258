//! What stands in a file: the keys that every runtime on the host reads and writes.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cni_types::json::ParseError;
use cni_types::{Map, Value, json};
use serde::Deserialize;

use super::{Cached, Key};
use crate::libcni::RuntimeConf;

const KIND: &str = "cniCacheV1";

/// What a file holds.
pub(super) enum Content {
    Attachment(Box<Cached>),
    /// Other JSON: a bare result of the first generation.
    Other(Value),
    /// No JSON at all.
    Rubbish(ParseError),
}

impl Content {
    /// What these bytes are.
    pub(super) fn of(bytes: &[u8]) -> Self {
        match json::parse(bytes) {
            Err(error) => Self::Rubbish(error),
            Ok(value) => match decode(&value) {
                Some(cached) => Self::Attachment(Box::new(cached)),
                None => Self::Other(value),
            },
        }
    }
}

/// The file's keys, in the order that others write them.
pub(super) fn encode(key: &Key, config: &[u8], rt: &RuntimeConf, result: &Value) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("kind", KIND.into());
    put("containerId", key.container_id.as_str().into());
    put("config", STANDARD.encode(config).into());
    put("ifName", key.ifname.as_str().into());
    put("networkName", key.network.as_str().into());
    if !rt.netns.as_os_str().is_empty() {
        put("netns", rt.netns.to_string_lossy().into());
    }
    if !rt.args.is_empty() {
        let pairs = rt
            .args
            .iter()
            .map(|(key, value)| Value::from(vec![key.as_str(), value]));
        put("cniArgs", pairs.collect());
    }
    if !rt.capability_args.is_empty() {
        put("capabilityArgs", rt.capability_args.clone().into());
    }
    put("result", json::sorted(result));
    Value::Object(object)
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    kind: String,
    container_id: String,
    config: String,
    if_name: String,
    network_name: String,
    netns: String,
    cni_args: Vec<(String, String)>,
    capability_args: Map<String, Value>,
    result: Value,
}

fn decode(value: &Value) -> Option<Cached> {
    let file: File = json::from_value(value).ok()?;
    let named = ![&file.container_id, &file.if_name, &file.network_name]
        .iter()
        .any(|name| name.is_empty());
    if file.kind != KIND || !named {
        return None;
    }
    let netns = match file.netns.as_str() {
        "" => sandbox(&file.result, &file.if_name),
        netns => netns.into(),
    };
    Some(Cached {
        network: file.network_name,
        container_id: file.container_id,
        ifname: file.if_name,
        netns,
        config: STANDARD.decode(file.config).unwrap_or_default(),
        args: file.cni_args,
        capability_args: file.capability_args,
        result: file.result,
    })
}

/// Where the result says that the interface is: releases of the Go library before 1.3, which
/// containerd and podman have had for years, do not remember the namespace itself. Empty if it does not say.
fn sandbox(result: &Value, ifname: &str) -> PathBuf {
    let interfaces = result.get("interfaces").and_then(Value::as_array);
    let text = |one: &Value, key: &str| one.get(key).and_then(Value::as_str).map(PathBuf::from);
    let mut named = interfaces
        .into_iter()
        .flatten()
        .filter(|one| text(one, "name") == Some(ifname.into()))
        .filter_map(|one| text(one, "sandbox"))
        // A virtual machine's id can stand there, too.
        .filter(|path| path.is_absolute());
    named.next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_namespace_that_an_early_library_left_out_is_in_the_result() {
        for (ifname, sandbox, netns) in [
            ("eth0", "/proc/77/ns/net", "/proc/77/ns/net"),
            ("eth0", "4af6d2b0", ""),
            ("eth0", "", ""),
            ("eth1", "/proc/77/ns/net", ""),
        ] {
            let result = json!({"interfaces": [
                {"name": "br0"}, {"name": "eth0", "sandbox": sandbox}]});
            let value = json!({"kind": KIND, "containerId": "c1", "ifName": ifname,
                "networkName": "net", "result": result});
            assert_eq!(decode(&value).unwrap().netns, PathBuf::from(netns));
        }
    }
}
