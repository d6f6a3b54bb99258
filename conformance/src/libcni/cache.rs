//! Remembered attachments, in files that every runtime on the host shares.
//!
//! `DIR/results/NETWORK-CONTAINER-IFNAME` holds one attachment as JSON. The name is ambiguous,
//! since each part may contain dashes, so a file counts only if its content names the attachment
//! asked for. Files of the first generation hold nothing but a result; those are believed.

use super::RuntimeConf;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use cni_types::NameError;
use cni_types::json::ParseError;
use cni_types::{
    Attachment, ContainerId, IfName, Map, NetworkList, NetworkName, PluginConf, Value, json,
};
use serde::Deserialize;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const KIND: &str = "cniCacheV1";

/// The directory of remembered attachments.
#[derive(Clone, Debug)]
pub struct Cache {
    results: PathBuf,
}

/// Which attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    network: NetworkName,
    container_id: ContainerId,
    ifname: IfName,
}

/// A remembered attachment.
#[derive(Clone, Debug, PartialEq)]
pub struct Cached {
    /// The network.
    pub network: String,
    /// The container.
    pub container_id: String,
    /// The interface.
    pub ifname: String,
    /// The container's network namespace at that time, or empty.
    pub netns: PathBuf,
    /// The configuration it was made with.
    pub config: Vec<u8>,
    /// The pairs of `CNI_ARGS`.
    pub args: Vec<(String, String)>,
    /// The capability arguments, for all plugins.
    pub capability_args: Map<String, Value>,
    /// The result of the last plugin; `Null` if there was none.
    pub result: Value,
}

/// The cache cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The system says no.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Read, write, or the like.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds neither an attachment nor a result.
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ParseError,
    },
    /// Another attachment has a file of the same name.
    #[error("{} belongs to {container_id} {ifname} of network {network:?}; delete that attachment first", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// Whose it is: the network.
        network: String,
        /// The container.
        container_id: String,
        /// The interface.
        ifname: String,
    },
}

type Result<T> = std::result::Result<T, CacheError>;

impl Key {
    /// An attachment's key.
    pub fn new(network: &NetworkName, container_id: &ContainerId, ifname: &IfName) -> Self {
        Key {
            network: network.clone(),
            container_id: container_id.clone(),
            ifname: ifname.clone(),
        }
    }

    /// The checked names make sure that this stays inside the directory.
    fn file_name(&self) -> String {
        format!("{}-{}-{}", self.network, self.container_id, self.ifname)
    }

    fn is(&self, cached: &Cached) -> bool {
        self.network.as_str() == cached.network
            && self.container_id.as_str() == cached.container_id
            && self.ifname.as_str() == cached.ifname
    }
}

impl Cached {
    /// The list the attachment was made with, if it can be read. Some runtimes remember a single
    /// plugin's configuration instead.
    pub fn list(&self) -> Option<NetworkList> {
        let list = NetworkList::parse(&self.config)
            .ok()
            .filter(|list| !list.plugins.is_empty())
            .or_else(|| {
                PluginConf::parse(&self.config)
                    .ok()
                    .map(NetworkList::from_single)
            })?;
        (list.name == self.network).then_some(list)
    }

    /// The attachment as the runtime asked for it then.
    ///
    /// # Errors
    ///
    /// A remembered name that no attachment can have.
    pub fn runtime_conf(&self) -> std::result::Result<RuntimeConf, NameError> {
        Ok(RuntimeConf {
            container_id: ContainerId::new(self.container_id.as_str())?,
            netns: self.netns.clone(),
            ifname: IfName::new(self.ifname.as_str())?,
            args: self.args.clone(),
            capability_args: self.capability_args.clone(),
        })
    }

    /// Whether its network namespace still exists, or may.
    pub fn may_live(&self) -> bool {
        super::gc::may_exist(&self.netns)
    }

    /// The attachment as GC lists it.
    pub fn attachment(&self) -> Attachment {
        Attachment {
            container_id: self.container_id.clone(),
            ifname: self.ifname.clone(),
        }
    }
}

/// What a file holds.
enum Content {
    Attachment(Box<Cached>),
    /// Other JSON: a bare result of the first generation.
    Other(Value),
    /// No JSON at all.
    Rubbish(ParseError),
}

impl Cache {
    /// Where every runtime of the host remembers its attachments.
    pub const DEFAULT_DIR: &'static str = "/var/lib/cni";

    /// The cache in a directory, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Cache {
            results: dir.into().join("results"),
        }
    }

    /// The remembered attachment, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// When a file is there and cannot be read.
    pub fn get(&self, key: &Key) -> Result<Option<Cached>> {
        Ok(match self.read(&self.path(key))? {
            Some(Content::Attachment(cached)) if key.is(&cached) => Some(*cached),
            _ => None,
        })
    }

    /// The remembered result as it was stored, also out of a file of the first generation.
    pub(super) fn result(&self, key: &Key) -> Result<Option<Value>> {
        let path = self.path(key);
        let result = match self.read(&path)? {
            Some(Content::Attachment(cached)) => key.is(&cached).then_some(cached.result),
            Some(Content::Other(value)) => Some(value),
            Some(Content::Rubbish(source)) => return Err(CacheError::Damaged { path, source }),
            None => None,
        };
        Ok(result.filter(|result| !result.is_null()))
    }

    /// Makes sure that the attachment can be remembered, and says whether it is already.
    pub(super) fn claim(&self, key: &Key) -> Result<bool> {
        let path = self.path(key);
        match self.read(&path)? {
            Some(Content::Attachment(cached)) if !key.is(&cached) => Err(CacheError::Taken {
                path,
                network: cached.network,
                container_id: cached.container_id,
                ifname: cached.ifname,
            }),
            content => Ok(content.is_some()),
        }
    }

    /// Remembers an attachment. The file appears whole or not at all.
    pub(super) fn write(
        &self,
        key: &Key,
        config: &[u8],
        rt: &RuntimeConf,
        result: &Value,
    ) -> Result<()> {
        let text = json::to_string(&encode(key, config, rt, result));
        let path = self.path(key);
        let write = || -> io::Result<()> {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.results)?;
            let mut file = tempfile::Builder::new()
                .prefix(".new-")
                .tempfile_in(&self.results)?;
            file.write_all(text.as_bytes())?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|source| CacheError::Io {
            action: "write",
            path: path.clone(),
            source,
        })
    }

    /// Forgets an attachment, but not another one whose file has the same name.
    pub(super) fn remove(&self, key: &Key) -> Result<()> {
        let path = self.path(key);
        if let Ok(Some(Content::Attachment(cached))) = self.read(&path)
            && !key.is(&cached)
        {
            return Ok(());
        }
        match fs::remove_file(&path) {
            Err(source) if !is_absent(&source) => Err(CacheError::Io {
                action: "remove",
                path,
                source,
            }),
            _ => Ok(()),
        }
    }

    /// Every remembered attachment, by file name. Files that hold none are passed over.
    ///
    /// # Errors
    ///
    /// When the directory is there and cannot be read.
    pub fn attachments(&self) -> Result<Vec<Cached>> {
        let failed = |source| CacheError::Io {
            action: "read",
            path: self.results.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.results) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(failed)?.path());
        }
        paths.sort();
        Ok(paths
            .iter()
            .filter_map(|path| match self.read(path) {
                Ok(Some(Content::Attachment(cached))) => Some(*cached),
                _ => None,
            })
            .collect())
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.results.join(key.file_name())
    }

    fn read(&self, path: &Path) -> Result<Option<Content>> {
        let bytes = match fs::read(path) {
            Err(error) if is_absent(&error) => return Ok(None),
            Err(source) => {
                return Err(CacheError::Io {
                    action: "read",
                    path: path.to_owned(),
                    source,
                });
            }
            Ok(bytes) => bytes,
        };
        Ok(Some(match json::parse(&bytes) {
            Err(error) => Content::Rubbish(error),
            Ok(value) => match decode(&value) {
                Some(cached) => Content::Attachment(Box::new(cached)),
                None => Content::Other(value),
            },
        }))
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound)
}

/// The file's keys, in the order that others write them.
fn encode(key: &Key, config: &[u8], rt: &RuntimeConf, result: &Value) -> Value {
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
    use std::os::unix::fs::PermissionsExt;

    fn key(network: &str, id: &str) -> Key {
        Key::new(
            &NetworkName::new(network).unwrap(),
            &ContainerId::new(id).unwrap(),
            &IfName::new("eth0").unwrap(),
        )
    }

    fn attachment(key: &Key) -> RuntimeConf {
        RuntimeConf {
            args: vec![("K".into(), "V".into())],
            ..RuntimeConf::new(key.container_id.clone(), "/run/netns/x", key.ifname.clone())
        }
    }

    fn remember(cache: &Cache, key: &Key) {
        let result = json!({"cniVersion": "1.0.0"});
        cache
            .write(key, br#"{"name":"n"}"#, &attachment(key), &result)
            .unwrap();
    }

    #[test]
    fn the_file_is_the_one_others_write() {
        let tmp = tempfile::tempdir().unwrap();
        let cache = Cache::new(tmp.path().join("cni"));
        remember(&cache, &key("net", "c1"));
        let path = tmp.path().join("cni/results/net-c1-eth0");
        let want = r#"{"kind":"cniCacheV1","containerId":"c1","config":"eyJuYW1lIjoibiJ9","ifName":"eth0","networkName":"net","netns":"/run/netns/x","cniArgs":[["K","V"]],"result":{"cniVersion":"1.0.0"}}"#;
        assert_eq!(fs::read_to_string(&path).unwrap(), want);
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        let dir = path.parent().unwrap();
        assert_eq!(
            fs::metadata(dir).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert_eq!(fs::read_dir(dir).unwrap().count(), 1);
    }

    #[test]
    fn what_others_wrote_is_read() {
        let tmp = tempfile::tempdir().unwrap();
        let cache = Cache::new(tmp.path());
        fs::create_dir(tmp.path().join("results")).unwrap();
        let text = r#"{"kind":"cniCacheV1","containerId":"c1","config":"e30=","ifName":"eth0","networkName":"net","cniArgs":[["A","b"]],"capabilityArgs":{"mac":"aa"},"result":{"cniVersion":"0.4.0"}}"#;
        fs::write(tmp.path().join("results/net-c1-eth0"), text).unwrap();
        let cached = cache.get(&key("net", "c1")).unwrap().unwrap();
        assert_eq!(cached.config, b"{}");
        assert_eq!(cached.args, [("A".to_owned(), "b".to_owned())]);
        assert_eq!(cached.capability_args["mac"], "aa");
        assert_eq!(cached.result, json!({"cniVersion": "0.4.0"}));
        assert_eq!(cached.netns, PathBuf::new());
    }

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

    #[test]
    fn bare_results_of_the_first_generation_are_results_only() {
        let tmp = tempfile::tempdir().unwrap();
        let cache = Cache::new(tmp.path());
        fs::create_dir(tmp.path().join("results")).unwrap();
        fs::write(
            tmp.path().join("results/net-c1-eth0"),
            r#"{"cniVersion":"0.3.1"}"#,
        )
        .unwrap();
        let key = key("net", "c1");
        assert_eq!(
            cache.result(&key).unwrap(),
            Some(json!({"cniVersion": "0.3.1"}))
        );
        assert_eq!(cache.get(&key).unwrap(), None);
        assert!(cache.claim(&key).unwrap());
        cache.remove(&key).unwrap();
        cache.remove(&key).unwrap();
        assert!(!cache.claim(&key).unwrap());
    }

    #[test]
    fn a_file_of_the_same_name_is_not_the_same_attachment() {
        let tmp = tempfile::tempdir().unwrap();
        let cache = Cache::new(tmp.path());
        let (first, second) = (key("a-b", "c"), key("a", "b-c"));
        remember(&cache, &first);
        assert_eq!(cache.get(&second).unwrap(), None);
        assert_eq!(cache.result(&second).unwrap(), None);
        let error = cache.claim(&second).unwrap_err().to_string();
        assert!(
            error.contains("belongs to c eth0 of network \"a-b\""),
            "{error}"
        );
        cache.remove(&second).unwrap();
        assert!(cache.get(&first).unwrap().is_some());
    }

    #[test]
    fn any_bytes_are_survived() {
        let tmp = tempfile::tempdir().unwrap();
        let cache = Cache::new(tmp.path());
        let key = key("net", "c1");
        fs::create_dir_all(tmp.path().join("results/net-dir-eth0")).unwrap();
        for bytes in [&b""[..], b"\xff", b"[]", b"null", br#"{"kind":"cniCacheV1"}"#,
            br#"{"kind":"cniCacheV1","containerId":"c1","ifName":"eth0","networkName":"net","config":"!","cniArgs":[["a"]]}"#,
            br#"{"kind":"cniCacheV1","containerId":"c1","ifName":"eth0","networkName":"net","config":"!","cniArgs":[]}"#] {
            fs::write(tmp.path().join("results/net-c1-eth0"), bytes).unwrap();
            cache.get(&key).unwrap();
            let _ = cache.result(&key);
            cache.attachments().unwrap();
            cache.claim(&key).unwrap();
        }
    }
}
