//! Files of this and of other libraries, on a real file system.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use cni_types::{ContainerId, IfName, NetworkName};
use serde_json::json;

use super::*;

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
