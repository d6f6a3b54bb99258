//! `cnitool` at the shell, with scripted plugins: what it asks of them, and what it says itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};
use tempfile::TempDir;

/// Writes each call and request down; answers ADD with a result, and fails when told to.
const PLUGIN: &str = r#"#!/bin/sh
dir="${0%/*}"
echo "$CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $CNI_NETNS $CNI_ARGS" >> "$dir/calls"
cat > "$dir/$CNI_COMMAND"
if [ -e "$dir/fail" ]; then echo '{"code": 11, "msg": "busy", "details": "try later"}'; exit 1; fi
[ "$CNI_COMMAND" != ADD ] || echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.2/8"}]}'
"#;

struct Shell {
    dir: TempDir,
    env: Vec<(&'static str, String)>,
}

impl Shell {
    fn new(version: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let plugin = dir.path().join("plugin");
        fs::write(&plugin, PLUGIN).unwrap();
        fs::set_permissions(&plugin, fs::Permissions::from_mode(0o755)).unwrap();
        let list = json!({"name": "net", "cniVersion": version, "plugins": [
            {"type": "plugin", "capabilities": {"mac": true}},
        ]});
        fs::write(dir.path().join("net.conflist"), list.to_string()).unwrap();
        let here = dir.path().display().to_string();
        let env = vec![
            ("CNI_PATH", here.clone()),
            ("NETCONFPATH", here.clone()),
            ("CNI_CACHE_DIR", format!("{here}/cache")),
        ];
        Shell { dir, env }
    }

    fn with(mut self, key: &'static str, value: &str) -> Self {
        self.env.push((key, value.into()));
        self
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_cnitool"))
            .args(arguments)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .output()
            .unwrap()
    }

    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {stderr}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn stdin(&self, command: &str) -> Value {
        serde_json::from_slice(&fs::read(self.dir.path().join(command)).unwrap()).unwrap()
    }

    fn fail_from_now_on(&self) {
        fs::write(self.dir.path().join("fail"), "").unwrap();
    }

    fn cached(&self) -> usize {
        fs::read_dir(self.dir.path().join("cache/results")).map_or(0, Iterator::count)
    }
}

const NETNS: &str = "/var/run/netns/../netns/./cspec1";
const ID: &str = "cnitool-b8b312668965d6e78b12";

#[test]
fn add_check_del() {
    let shell = Shell::new("0.4.0").with("CAP_ARGS", r#"{"mac": "aa", "ips": []}"#);
    let printed = shell.succeeds(&["add", "net", NETNS]);
    assert_eq!(
        printed,
        "{\n    \"cniVersion\": \"0.4.0\",\n    \"ips\": [\n        {\n            \"version\": \"4\",\n            \"address\": \"10.0.0.2/8\"\n        }\n    ],\n    \"dns\": {}\n}\n"
    );
    assert_eq!(shell.stdin("ADD")["runtimeConfig"], json!({"mac": "aa"}));
    assert_eq!(shell.succeeds(&["check", "net", NETNS]), "");
    assert_eq!(shell.succeeds(&["del", "net", NETNS, "extra", "words"]), "");
    assert_eq!(
        shell.stdin("DEL")["prevResult"]["ips"][0]["address"],
        "10.0.0.2/8"
    );
    let call = |verb: &str| format!("{verb} {ID} eth0 /var/run/netns/cspec1 ");
    assert_eq!(shell.calls(), [call("ADD"), call("CHECK"), call("DEL")]);
    assert_eq!(shell.cached(), 0);
}

#[test]
fn check_and_del_recall_the_arguments_of_the_add() {
    let mut shell = Shell::new("1.0.0")
        .with("CNI_ARGS", "IgnoreUnknown=1;JSON={\"a\":\"b=c\"}")
        .with("CAP_ARGS", r#"{"mac": "aa"}"#);
    shell.succeeds(&["add", "net", NETNS]);
    shell.env.truncate(3);
    shell.succeeds(&["check", "net", NETNS]);
    fs::write(shell.dir.path().join("net.conflist"), "broken").unwrap();
    shell.succeeds(&["del", "net", NETNS]);
    for (call, command) in shell.calls().iter().zip(["ADD", "CHECK", "DEL"]) {
        let args = "IgnoreUnknown=1;JSON={\"a\":\"b=c\"}";
        assert_eq!(
            *call,
            format!("{command} {ID} eth0 /var/run/netns/cspec1 {args}")
        );
        assert_eq!(shell.stdin(command)["runtimeConfig"], json!({"mac": "aa"}));
    }
    let error = shell.fails(&["del", "net", NETNS]);
    assert!(error.contains("net.conflist"), "{error}");
}

#[test]
fn the_interface_comes_from_the_flag_or_the_environment() {
    let shell = Shell::new("1.0.0").with("CNI_IFNAME", "net1");
    shell.succeeds(&["add", "net", NETNS]);
    shell.succeeds(&["add", "net", NETNS, "-i", "net2"]);
    shell.succeeds(&["--ifname=net3", "add", "net", NETNS]);
    let shell_names: Vec<String> = shell
        .calls()
        .iter()
        .map(|call| call.split(' ').nth(2).unwrap().to_owned())
        .collect();
    assert_eq!(shell_names, ["net1", "net2", "net3"]);
    let error = shell.fails(&["add", "net", NETNS, "-i", "a/b"]);
    assert!(error.contains("interface name contains / or :"), "{error}");
    let empty = Shell::new("1.0.0").with("CNI_IFNAME", "");
    empty.succeeds(&["add", "net", NETNS]);
    assert!(empty.calls()[0].contains(" eth0 "));
}

#[test]
fn a_failing_plugin_is_quoted() {
    let shell = Shell::new("1.1.0");
    shell.fail_from_now_on();
    let error = shell.fails(&["status", "net", NETNS]);
    assert_eq!(
        error,
        "Error: plugin type=\"plugin\" failed (status): busy; try later\n"
    );
    let error = shell.fails(&["add", "net", NETNS]);
    assert!(
        error.starts_with("Error: plugin type=\"plugin\" failed (add): busy"),
        "{error}"
    );
}

#[test]
fn status_reaches_the_plugins_since_1_1_0() {
    let shell = Shell::new("1.1.0");
    assert_eq!(shell.succeeds(&["status", "net"]), "");
    assert_eq!(shell.calls(), ["STATUS    "]);
    let old = Shell::new("1.0.0");
    old.succeeds(&["status", "net", NETNS]);
    assert!(old.calls().is_empty());
}

#[test]
fn gc_frees_what_lost_its_namespace() {
    let shell = Shell::new("1.1.0");
    shell.succeeds(&["add", "net", "/nonexistent"]);
    shell.succeeds(&["add", "net", "/proc/self/ns/net"]);
    shell.succeeds(&["gc", "net"]);
    let calls = shell.calls();
    assert!(
        calls[2].starts_with("DEL ") && calls[2].contains(" /nonexistent "),
        "{calls:?}"
    );
    assert_eq!(calls[3], "GC    ");
    let valid = &shell.stdin("GC")["cni.dev/valid-attachments"];
    assert_eq!(valid.as_array().unwrap().len(), 1);
    assert_eq!(shell.cached(), 1);
    shell.succeeds(&["gc", "net", NETNS, "--all"]);
    assert_eq!(shell.stdin("GC")["cni.dev/valid-attachments"], json!([]));
    assert_eq!(shell.cached(), 0);
}

#[test]
fn capability_arguments_that_nobody_takes_are_named() {
    for (args, named) in [
        (r#"{"mac": "aa"}"#, false),
        (r#"{"mac": "aa", "portMapping": []}"#, true),
    ] {
        let output = Shell::new("1.0.0")
            .with("CAP_ARGS", args)
            .run(&["add", "net", "/ns/blue"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert_eq!(said.contains("takes \"portMapping\""), named, "{said}");
        assert_eq!(said.is_empty(), !named, "{said}");
    }
}

#[test]
fn mistakes_at_the_shell() {
    let shell = Shell::new("1.0.0");
    for arguments in [
        &["add"][..],
        &["add", "net"],
        &["nope", "net", NETNS],
        &["add", "net", NETNS, "--x"],
    ] {
        assert!(!shell.fails(arguments).is_empty(), "{arguments:?}");
    }
    for arguments in [&[][..], &["help"], &["-h"], &["--help"], &["add", "--help"]] {
        assert!(
            shell.succeeds(arguments).contains("Usage: cnitool"),
            "{arguments:?}"
        );
    }
    assert!(shell.succeeds(&[]).contains("NETCONFPATH"));
    for shell_name in ["bash", "zsh", "fish"] {
        let script = shell.succeeds(&["completion", shell_name]);
        assert!(
            script.contains("inspect") && script.contains("cache-dir"),
            "{script}"
        );
    }
    let error = shell.fails(&["add", "other", NETNS]);
    assert!(
        error.contains("no net configuration with name \"other\""),
        "{error}"
    );
    for bad in ["A", "A=", "=b", "A=b;C"] {
        let error = Shell::new("1.0.0")
            .with("CNI_ARGS", bad)
            .fails(&["add", "net", NETNS]);
        assert!(
            error.starts_with("Error: invalid CNI_ARGS pair \""),
            "{bad}: {error}"
        );
    }
    for bad in ["[]", "x", "1"] {
        let error = Shell::new("1.0.0")
            .with("CAP_ARGS", bad)
            .fails(&["add", "net", NETNS]);
        assert!(error.starts_with("Error: CAP_ARGS: "), "{bad}: {error}");
    }
    Shell::new("1.0.0")
        .with("CAP_ARGS", "null")
        .succeeds(&["add", "net", NETNS]);
    let error = Shell::new("1.0.0")
        .with("CNI_PATH", "")
        .fails(&["add", "net", NETNS]);
    assert!(error.contains("no paths provided"), "{error}");
}

#[test]
fn a_list_of_what_is_attached() {
    let shell = Shell::new("1.0.0").with("CAP_ARGS", r#"{"mac": "aa"}"#);
    shell.succeeds(&["add", "net", "/nonexistent/red"]);
    shell.succeeds(&["add", "net", "/proc/self/ns/net", "-i", "net1"]);
    let table = shell.succeeds(&["list"]);
    let mut lines = table.lines();
    assert!(
        lines.next().unwrap().starts_with("NETWORK  CONTAINER"),
        "{table}"
    );
    assert_eq!(lines.count(), 2);
    assert!(
        table.contains("10.0.0.2/8") && table.contains("gone   /nonexistent/red"),
        "{table}"
    );
    let one: Value =
        serde_json::from_str(&shell.succeeds(&["list", "net", "-i", "net1", "--json"])).unwrap();
    assert_eq!(one.as_array().unwrap().len(), 1);
    assert_eq!(one[0]["state"], "live");
    assert_eq!(one[0]["addresses"], json!(["10.0.0.2/8"]));
    assert_eq!(shell.succeeds(&["list", "other"]).lines().count(), 1);
}

#[test]
fn every_verb_answers_in_json() {
    let shell = Shell::new("1.1.0");
    let netns = "/proc/self/ns/net";
    let answer = |arguments: &[&str]| -> Value {
        let output = shell.run(arguments);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
    };
    assert_eq!(
        answer(&["add", "net", netns, "--json"])["ips"][0]["address"],
        "10.0.0.2/8"
    );
    for verb in ["check", "status", "del"] {
        assert_eq!(
            answer(&[verb, "net", netns, "--json"]),
            json!({"ok": true}),
            "{verb}"
        );
    }
    assert_eq!(answer(&["gc", "net", "--json"]), json!({"ok": true}));
    assert_eq!(
        answer(&["reapply", "--json"]),
        json!({"ok": true, "putBack": 0, "passedOver": []})
    );
    assert_eq!(answer(&["list", "--json"]), json!([]));
    assert_eq!(answer(&["doctor", "--json"])["ok"], true);
    shell.fail_from_now_on();
    let failed = answer(&["add", "net", netns, "--json"]);
    assert_eq!(
        (&failed["ok"], &failed["code"]),
        (&json!(false), &json!(11))
    );
    assert_eq!(answer(&["inspect", "nobody", "--json"])["ok"], false);
}

#[test]
fn progress_is_told_on_request() {
    let shell = Shell::new("1.1.0");
    for name in ["a", "b"] {
        shell.succeeds(&["add", "net", &format!("/nonexistent/{name}")]);
    }
    let output = shell.run(&["gc", "net", "--progress"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("1 of 2: cnitool-") && said.contains("2 of 2: cnitool-"),
        "{said}"
    );
}

#[test]
fn reapply_says_what_was_passed_over_and_why() {
    let shell = Shell::new("1.0.0");
    shell.succeeds(&["add", "net", "/nonexistent"]);
    shell.succeeds(&["add", "net", "/proc/self/ns/net"]);
    let said = shell.succeeds(&["reapply"]);
    assert!(
        said.starts_with("1 attachment put back, 1 passed over\n"),
        "{said}"
    );
    assert!(
        said.contains("eth0 of network net: its network namespace is gone; gc frees"),
        "{said}"
    );
}

#[test]
fn a_plugin_that_is_missing_is_said_once() {
    let shell = Shell::new("1.0.0");
    let list = json!({"name": "net", "cniVersion": "1.0.0", "plugins": [
        {"type": "nowhere"}, {"type": "nor-this"}, {"type": "plugin"}]});
    fs::write(shell.dir.path().join("net.conflist"), list.to_string()).unwrap();
    let error = shell.fails(&["add", "net", "/ns/blue"]);
    assert_eq!(error.matches("failed to find plugin").count(), 1, "{error}");
    assert!(!error.contains("taking it back"), "{error}");
}

#[test]
fn a_name_in_place_of_a_path_is_noticed() {
    let shell = Shell::new("1.0.0");
    let said = String::from_utf8(shell.run(&["del", "net", "green"]).stderr).unwrap();
    assert!(said.contains("/run/netns/green"), "{said}");
    let said = String::from_utf8(shell.run(&["del", "net", "/ns/green"]).stderr).unwrap();
    assert_eq!(said, "");
}

#[test]
fn a_second_file_of_the_same_network_is_noticed() {
    let shell = Shell::new("1.0.0");
    let other = json!({"name": "net", "type": "plugin"}).to_string();
    fs::write(shell.dir.path().join("99-late.conf"), other).unwrap();
    let output = shell.run(&["add", "net", "/ns/blue"]);
    assert!(output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("net.conflist")
            && said.contains("not used: ")
            && said.contains("99-late.conf"),
        "{said}"
    );
}

#[test]
fn gc_works_when_the_configuration_is_gone() {
    let shell = Shell::new("1.1.0");
    shell.succeeds(&["add", "net", "/nonexistent"]);
    fs::remove_file(shell.dir.path().join("net.conflist")).unwrap();
    let output = shell.run(&["gc", "net"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("going on with the configuration of an attachment"),
        "{said}"
    );
    assert_eq!(shell.cached(), 0);
    let error = shell.fails(&["gc", "net"]);
    assert!(error.contains("put the file back"), "{error}");
}

#[test]
fn a_failed_check_names_reapply() {
    let shell = Shell::new("1.0.0");
    shell.succeeds(&["add", "net", "/ns/blue"]);
    shell.fail_from_now_on();
    let error = shell.fails(&["check", "net", "/ns/blue"]);
    assert!(error.contains("cnitool reapply net"), "{error}");
}
