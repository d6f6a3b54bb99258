//! The Go cnitool and ours over the same lists: the same outcome of every command.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use conformance::net::Netns;
use conformance::probe::Transport::Tcp;
use conformance::transcript::{Call, normalise};
use serde_json::{Value, json};

use crate::machine::{Machine, Tool, on_machine};

const TOOLS: [Tool; 1] = [("go", "golang-go")];

/// One command, by what a list's operator would call it.
const STEPS: [(&str, &str); 7] = [
    ("add", "add"),
    ("add again", "add"),
    ("check", "check"),
    ("traffic", ""),
    ("del", "del"),
    ("del again", "del"),
    ("check of nothing", "check"),
];

#[test]
#[ignore = "needs root and the Go cnitool"]
fn both_tools_do_the_same() {
    let theirs = go_cnitool();
    on_machine(
        "go_cnitool::both_tools_do_the_same",
        "go-cnitool",
        &TOOLS,
        |machine| {
            for list in lists() {
                fs::write(
                    format!("/etc/cni/net.d/{}.conflist", list["name"].as_str().unwrap()),
                    list.to_string(),
                )
                .unwrap();
            }
            let go = outcomes(machine, &theirs);
            machine.stop_recording();
            // The addresses are to begin anew.
            fs::remove_dir_all("/var/lib/cni/networks").unwrap();
            let ours = outcomes(machine, Path::new(env!("CARGO_BIN_EXE_cnitool")));
            for (theirs, ours) in go.iter().zip(&ours) {
                assert_eq!(theirs, ours);
                let say = theirs.stdout["ips"].as_array().map_or(0, Vec::len);
                let seen = format!("exit {}, {say} addresses", theirs.exit);
                machine.ok(
                    &format!("both: {} of {}", theirs.command(), theirs.plugin),
                    &seen,
                );
            }
            assert_eq!(go.len(), ours.len());
            let version = "cnitool 1.1.2 (Go)";
            let what =
                "add, add again, check, del, del again, check of nothing; a network that is none";
            machine.finish(version, ("lists", what), &["tool0"]);
        },
    );
}

/// The Go cnitool, as `.ci/go-cnitool` builds it.
fn go_cnitool() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/go-cnitool/cnitool");
    let file = std::env::var_os("GO_CNITOOL").map_or(built, PathBuf::from);
    assert!(
        file.is_file(),
        "this test needs the Go cnitool: run .ci/go-cnitool, or name its file in GO_CNITOOL"
    );
    file.canonicalize().unwrap()
}

fn lists() -> Vec<Value> {
    let addresses = |v4: &str, v6: &str| json!({"type": "host-local", "ranges": [[{"subnet": v4}], [{"subnet": v6}]]});
    vec![
        json!({"cniVersion": "1.0.0", "name": "bridged", "plugins": [
            {"type": "bridge", "bridge": "tool0", "isDefaultGateway": true, "ipMasq": true,
             "capabilities": {"mac": true}, "ipam": addresses("10.46.0.0/24", "fd00:46::/64")},
            {"type": "firewall"},
            {"type": "portmap", "capabilities": {"portMappings": true}},
            {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"}}]}),
        json!({"cniVersion": "0.4.0", "name": "routed", "plugins": [
            {"type": "ptp", "ipMasq": true, "ipam": addresses("10.47.0.0/24", "fd00:47::/64")},
            {"type": "bandwidth", "ingressRate": 80_000_000, "ingressBurst": 8_000_000}]}),
        json!({"cniVersion": "1.0.0", "name": "segment", "plugins": [
            {"type": "macvlan", "master": "up0", "ipam": addresses("10.48.0.0/24", "fd00:48::/64")}]}),
        json!({"cniVersion": "0.4.0", "name": "inside", "plugins": [{"type": "loopback"}]}),
        json!({"cniVersion": "1.0.0", "name": "broken", "plugins": [
            {"type": "bridge", "bridge": "tool0", "ipam": {"type": "no-such-plugin"}}]}),
    ]
}

/// What a tool does with each list, step by step; what is volatile is made equal.
fn outcomes(machine: &Machine, tool: &Path) -> Vec<Call> {
    let mut done = Vec::new();
    for list in lists() {
        let name = list["name"].as_str().unwrap();
        let netns = machine.host.container(&format!("for-{name}")).unwrap();
        for (step, verb) in STEPS {
            if verb.is_empty() {
                if name == "bridged" {
                    reach(machine, &netns, tool);
                }
                continue;
            }
            done.push(outcome(machine, tool, (step, verb), name, netns.path()));
        }
    }
    let nowhere = Path::new("/run/netns/for-inside");
    done.push(outcome(
        machine,
        tool,
        ("add", "add"),
        "no-such-network",
        nowhere,
    ));
    normalise(&done).unwrap()
}

fn outcome(
    machine: &Machine,
    tool: &Path,
    step: (&str, &str),
    network: &str,
    netns: &Path,
) -> Call {
    let ports = json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]);
    let caps = json!({"portMappings": ports, "mac": "02:46:00:00:00:02"});
    let mut command = machine.command(tool.to_str().unwrap());
    command
        .args([step.1, network, netns.to_str().unwrap()])
        .env("CNI_PATH", machine.plugins())
        .env("CAP_ARGS", caps.to_string())
        .env("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAME=by-hand")
        .env(
            "CNI_IFNAME",
            if network == "inside" { "lo" } else { "eth0" },
        );
    let output = machine.output(&mut command);
    if !output.status.success() {
        assert!(
            !output.stderr.is_empty(),
            "{command:?} fails without a word"
        );
    }
    let mut stdout: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if let Some(result) = stdout.as_object_mut() {
        // Versions from 1.0.0 leave empty ones out; the Go library of that time did not.
        result.retain(|key, value| key != "dns" || *value != json!({}));
    }
    Call {
        plugin: network.to_owned(),
        env: BTreeMap::from([("CNI_COMMAND".to_owned(), step.0.to_owned())]),
        netns_gone: false,
        stdin: Value::Null,
        exit: output.status.code().unwrap(),
        stdout,
    }
}

/// The published port of the list with a bridge.
fn reach(machine: &Machine, netns: &Netns, tool: &Path) {
    let _server = machine.serve(netns, Tcp, "10.46.0.2:80", "by-hand");
    let fact = format!(
        "{}: the published port answers",
        if tool.ends_with("go-cnitool/cnitool") {
            "theirs"
        } else {
            "ours"
        }
    );
    machine.asks(&fact, machine.host.outside(), Tcp, "192.0.2.1:8080");
}
