//! Dispatch, seen from a plugin that records what it is asked.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::ffi::OsString;
use std::sync::atomic::{AtomicUsize, Ordering};

use cni_types::result::{CniResult, Ip};
use cni_types::{CniError, SpecVersion, json};
use serde::Deserialize;
use skel::{
    Added, DelRequest, Environment, NetworkRequest, Plugin, PluginError, Reply, Request,
    Transaction,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Config {
    fail: String,
    number: u8,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("told to fail: {0}")]
    Told(String),
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        123
    }

    fn details(&self) -> String {
        "by the test".to_owned()
    }
}

struct Fake;

static UNDONE: AtomicUsize = AtomicUsize::new(0);

fn outcome(config: &Config) -> Result<(), Error> {
    match config.fail.as_str() {
        "" => Ok(()),
        "panic" => panic!("on purpose"),
        other => Err(Error::Told(other.to_owned())),
    }
}

impl Plugin for Fake {
    const NAME: &'static str = "fake";
    const VERSIONS: &'static [SpecVersion] = &[
        SpecVersion::V0_2_0,
        SpecVersion::V0_4_0,
        SpecVersion::V1_0_0,
        SpecVersion::V1_1_0,
    ];
    type Config = Config;
    type Error = Error;

    fn add(request: &Request<Config>) -> Result<Added, Error> {
        let mut transaction = Transaction::new(());
        transaction.on_failure("count", |()| {
            UNDONE.fetch_add(1, Ordering::SeqCst);
            Ok::<(), Error>(())
        });
        outcome(&request.config)?;
        let ips = match request.args.get("NOIP") {
            Some(_) => Vec::new(),
            None => vec![Ip::new("192.0.2.2/24".parse().unwrap())],
        };
        let result = CniResult {
            ips,
            ..CniResult::default()
        };
        Ok(Added::new(result, transaction))
    }

    fn del(request: &DelRequest<Config>) -> Result<(), Error> {
        outcome(&request.config)
    }

    fn check(request: &Request<Config>) -> Result<(), Error> {
        outcome(&request.config)
    }

    fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
        outcome(&request.config)
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        outcome(&request.config)
    }
}

const FULL: [(&str, &str); 4] = [
    ("CNI_CONTAINERID", "c1"),
    ("CNI_NETNS", "/nonexistent"),
    ("CNI_IFNAME", "eth0"),
    ("CNI_PATH", "/nonexistent"),
];

fn call(command: &str, vars: &[(&str, &str)], stdin: &str) -> Reply {
    let env = Environment::from_lookup(|name| {
        let all = [("CNI_COMMAND", command)];
        let found = all.iter().chain(vars).find(|(key, _)| *key == name);
        found
            .map(|(_, value)| OsString::from(value))
            .unwrap_or_default()
    });
    skel::serve::<Fake>(&env, stdin.as_bytes())
}

fn error(reply: &Reply) -> CniError {
    assert_eq!(reply.status, 1, "{}", reply.stdout);
    CniError::decode(&json::parse(reply.stdout.as_bytes()).unwrap()).unwrap()
}

fn refused(command: &str, vars: &[(&str, &str)], stdin: &str, code: u32, text: &str) {
    let error = error(&call(command, vars, stdin));
    assert_eq!(error.code, code, "{command} {stdin}: {error}");
    assert!(
        error.to_string().contains(text),
        "{command} {stdin}: {error}"
    );
}

#[test]
fn missing_variables_are_reported_together() {
    refused(
        "ADD",
        &[],
        "",
        4,
        "[CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing",
    );
    refused(
        "CHECK",
        &[],
        "",
        4,
        "[CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH] missing",
    );
    refused(
        "DEL",
        &[],
        "",
        4,
        "[CNI_CONTAINERID,CNI_IFNAME,CNI_PATH] missing",
    );
    refused("GC", &[], "", 4, "[CNI_PATH] missing");
    refused("STATUS", &[], "", 4, "[CNI_PATH] missing");
}

#[test]
fn bad_names_are_reported_before_missing_ones() {
    refused(
        "ADD",
        &[("CNI_CONTAINERID", "bad/id")],
        "",
        4,
        "invalid characters in containerID; bad/id",
    );
    refused(
        "ADD",
        &[("CNI_IFNAME", "a/b")],
        "",
        4,
        "interface name contains",
    );
    refused(
        "DEL",
        &[("CNI_CONTAINERID", "c"), ("CNI_IFNAME", "0123456789abcdef")],
        "",
        4,
        "too long",
    );
}

#[test]
fn the_configuration_is_checked_before_the_command_is_known() {
    refused("FOO", &[], "", 6, "error unmarshall network config");
    refused("FOO", &[], "null", 7, "missing network name");
    refused("FOO", &[], r#"{"name":""}"#, 7, "missing network name");
    refused(
        "FOO",
        &[],
        r#"{"name":"a b"}"#,
        7,
        "invalid characters found in network name; a b",
    );
    refused("FOO", &[], r#"{"name":1}"#, 6, "");
    refused("FOO", &[], "[]", 6, "");
    refused("FOO", &[], r#"{"name":"n"} x"#, 6, "");
    refused("FOO", &[], r#"{"name":"n"}"#, 4, "unknown CNI_COMMAND: FOO");
    refused("add", &[], r#"{"name":"n"}"#, 4, "unknown CNI_COMMAND: add");
}

#[test]
fn versions() {
    let conf = |version: &str| format!(r#"{{"name":"n","cniVersion":{version}}}"#);
    refused(
        "ADD",
        &FULL,
        &conf("\"9.9.9\""),
        1,
        r#"plugin supports ["0.2.0" "0.4.0" "1.0.0" "1.1.0"]"#,
    );
    refused("ADD", &FULL, &conf("\"\""), 1, r#"config is "0.1.0""#);
    refused("ADD", &FULL, &conf("1"), 6, "cniVersion is not a string");
    refused(
        "CHECK",
        &FULL,
        &conf("\"0.3.1\""),
        1,
        "config version does not allow CHECK",
    );
    refused(
        "CHECK",
        &FULL,
        &conf("\"0.5.0\""),
        1,
        "incompatible CNI versions",
    );
    refused(
        "CHECK",
        &FULL,
        &conf("\"2.0.0\""),
        1,
        "plugin version does not allow CHECK",
    );
    refused("CHECK", &FULL, &conf("\"x.y\""), 6, "");
    refused(
        "GC",
        &FULL,
        &conf("\"1.0.0\""),
        1,
        "config version does not allow GC",
    );
    refused(
        "STATUS",
        &FULL,
        &conf("\"1.2.0\""),
        1,
        "plugin version does not allow STATUS",
    );
    for command in ["DEL", "CHECK", "GC", "STATUS"] {
        let reply = call(command, &FULL, &conf("\"1.1.0\""));
        assert_eq!((reply.status, reply.stdout.as_str()), (0, ""), "{command}");
    }
}

#[test]
fn a_result_has_the_shape_of_the_version_asked_for() {
    let shape = |version: &str| {
        let reply = call(
            "ADD",
            &FULL,
            &format!(r#"{{"name":"n","cniVersion":"{version}"}}"#),
        );
        assert_eq!(reply.status, 0, "{}", reply.stdout);
        let value = json::parse(reply.stdout.as_bytes()).unwrap();
        reply.commit();
        value
    };
    assert_eq!(shape("0.2.0")["ip4"]["ip"], "192.0.2.2/24");
    assert_eq!(shape("0.4.0")["ips"][0]["version"], "4");
    assert_eq!(shape("1.1.0")["ips"][0]["address"], "192.0.2.2/24");
}

#[test]
fn plugin_errors_keep_code_and_details() {
    let stdin = r#"{"name":"n","cniVersion":"1.1.0","fail":"now"}"#;
    for command in ["ADD", "DEL", "CHECK", "GC", "STATUS"] {
        let error = error(&call(command, &FULL, stdin));
        assert_eq!(error.code, 123);
        assert_eq!(error.to_string(), "told to fail: now; by the test");
    }
}

#[test]
fn a_panic_becomes_an_error_object() {
    let stdin = r#"{"name":"n","cniVersion":"1.1.0","fail":"panic"}"#;
    let error = error(&call("DEL", &FULL, stdin));
    assert_eq!(error.code, 999);
    assert!(error.msg.contains("on purpose"), "{error}");
}

#[test]
fn a_configuration_of_the_wrong_types_stops_an_add_but_not_a_del() {
    let stdin = r#"{"name":"n","cniVersion":"1.1.0","number":"seven"}"#;
    refused("ADD", &FULL, stdin, 7, "number");
    refused("STATUS", &FULL, stdin, 7, "number");
    assert_eq!(call("DEL", &FULL, stdin).status, 0);
    let prev = r#"{"name":"n","cniVersion":"1.1.0","prevResult":{"ips":[{"address":"bad"}]}}"#;
    refused("CHECK", &FULL, prev, 6, "prevResult");
    assert_eq!(call("DEL", &FULL, prev).status, 0);
}

#[test]
fn the_own_namespace_is_refused_before_anything_happens() {
    let own = [
        FULL[0],
        ("CNI_NETNS", "/proc/thread-self/ns/net"),
        FULL[2],
        FULL[3],
    ];
    let stdin = r#"{"name":"n","cniVersion":"1.1.0","fail":"the plugin was called"}"#;
    for command in ["ADD", "DEL"] {
        refused(command, &own, stdin, 8, "should not be the same");
    }
    let mut allowed = own.to_vec();
    allowed.push(("CNI_NETNS_OVERRIDE", "tRuE"));
    refused("ADD", &allowed, stdin, 123, "the plugin was called");
    *allowed.last_mut().unwrap() = ("CNI_NETNS_OVERRIDE", "yes");
    refused("ADD", &allowed, stdin, 8, "");
}

#[test]
fn an_answer_that_was_not_given_is_taken_back() {
    let before = UNDONE.load(Ordering::SeqCst);
    let reply = call("ADD", &FULL, r#"{"name":"n","cniVersion":"1.1.0"}"#);
    assert_eq!(reply.status, 0);
    drop(reply);
    // Without an address there is no 0.2.0 result, which shows only once the work is done.
    let mut vars = FULL.to_vec();
    vars.push(("CNI_ARGS", "NOIP=1"));
    refused(
        "ADD",
        &vars,
        r#"{"name":"n","cniVersion":"0.2.0"}"#,
        999,
        "no valid IP addresses",
    );
    assert!(UNDONE.load(Ordering::SeqCst) >= before + 2);
}

#[test]
fn version_and_about_read_nothing() {
    struct Untouchable;
    impl std::io::Read for Untouchable {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            panic!("stdin was read");
        }
    }
    let version = Environment {
        command: "VERSION".into(),
        ..Environment::default()
    };
    let reply = skel::serve::<Fake>(&version, Untouchable);
    assert_eq!(
        reply.stdout,
        "{\"cniVersion\":\"1.1.0\",\"supportedVersions\":[\"0.2.0\",\"0.4.0\",\"1.0.0\",\"1.1.0\"]}\n"
    );
    let reply = skel::serve::<Fake>(&Environment::default(), Untouchable);
    assert_eq!((reply.status, reply.stdout.as_str()), (0, ""));
    let lines: Vec<&str> = reply.stderr.lines().collect();
    assert!(
        lines[0].starts_with("CNI fake plugin v1.9.1+ferrule."),
        "{}",
        lines[0]
    );
    assert_eq!(
        lines[1],
        "CNI protocol versions supported: 0.2.0, 0.4.0, 1.0.0, 1.1.0"
    );
}
