//! Stops ADD and DEL at every system call in turn, and makes every one of them fail in turn.
//!
//! Afterwards a DEL with nothing but the names, or a GC that does not list the container, must bring the directory
//! back to what it was, and a new ADD for the same container must work.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::thread;

use common::*;
use serde_json::json;

const STEPS: [&str; 17] = [
    "openat",
    "mkdir",
    "read",
    "pread64",
    "write",
    "pwrite64",
    "close",
    "linkat",
    "unlink",
    "ftruncate",
    "rename",
    "utimensat",
    "flock",
    "statx",
    "getdents64",
    "fcntl",
    "exit_group",
];

struct Case {
    command: &'static str,
    /// Whether another container has leases already.
    used: bool,
}

impl Case {
    fn net(&self) -> Net {
        let net = Net::with_ranges("1.1.0", &[&["10.1.0.0/24"], &["2001:db8:1::/64"]]);
        if self.used {
            net.add("other").addresses();
        }
        net
    }

    /// Stops or fails call number `n` of one kind; `None` once there is no such call.
    fn disturb(&self, step: &str, how: &str, n: usize) -> Option<Net> {
        let net = self.net();
        let before = net.leases();
        if self.command == "DEL" {
            net.add("a").addresses();
        }
        let trace = net.tmp.path().join("trace");
        let mut strace = Command::new("strace");
        strace
            .arg("-fo")
            .arg(&trace)
            .arg("-e")
            .arg(format!("inject={step}:{how}:when={n}"))
            .arg(OURS);
        environment(&mut strace, self.command, "a", "eth0", "");
        let output = feed(strace, &net.config().to_string());
        let killed = output.status.signal() == Some(9);
        let trace = std::fs::read_to_string(trace).unwrap();
        if !killed && !trace.contains("(INJECTED)") {
            return None;
        }
        assert!(
            killed || matches!(output.status.code(), Some(0 | 1)),
            "{step} {n}: {output:?}"
        );
        if output.status.code() == Some(1) && self.command == "ADD" {
            assert_eq!(
                net.leases(),
                before,
                "a failed ADD left a lease: {step} {how} {n}"
            );
            assert!(!net.dir().join(".ferrule-new").exists(), "{step} {how} {n}");
        }
        if n.is_multiple_of(2) {
            assert!(net.del("a").ok);
        } else {
            let list = json!([{"containerID": "other", "ifname": "eth0"}]);
            let mut config = net.config();
            config["cni.dev/valid-attachments"] = list;
            assert!(net.call_with("GC", "", "", "", &config.to_string()).ok);
        }
        assert_eq!(net.leases(), before, "{step} {how} {n}");
        assert!(!net.dir().join(".ferrule-new").exists(), "{step} {how} {n}");
        Some(net)
    }

    fn run(&self, how: &str) -> usize {
        let mut disturbed = 0;
        for step in STEPS {
            for n in 1.. {
                let Some(net) = self.disturb(step, how, n) else {
                    break;
                };
                disturbed += 1;
                assert_eq!(net.add("a").addresses().len(), 2, "{step} {how} {n}");
                assert!(net.check("a").ok, "{step} {how} {n}");
            }
        }
        disturbed
    }
}

fn every_case(how: &'static str) {
    let strace = Command::new("strace").arg("--version").output();
    assert!(
        strace.is_ok(),
        "strace is missing: install it (Debian: apt-get install strace)"
    );
    thread::scope(|scope| {
        for command in ["ADD", "DEL"] {
            for used in [false, true] {
                scope.spawn(move || {
                    let disturbed = Case { command, used }.run(how);
                    assert!(
                        disturbed > 20,
                        "{command} {how}: only {disturbed} calls were disturbed"
                    );
                });
            }
        }
    });
}

#[test]
fn killed_at_every_step() {
    every_case("signal=KILL");
}

#[test]
fn every_step_fails() {
    every_case("error=EIO");
}
