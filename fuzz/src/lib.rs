//! One call of a plugin from arbitrary bytes, and what every answer must look like.
//!
//! An input is lines and a document: the command, `CNI_CONTAINERID`, `CNI_IFNAME`, `CNI_NETNS` and
//! `CNI_ARGS`, one a line, then everything else as standard input. Anything that is missing is taken
//! from a call that would work, so short inputs get far too.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use skel::{Environment, Plugin, serve};

const COMMANDS: [&str; 7] = ["ADD", "DEL", "CHECK", "GC", "STATUS", "VERSION", ""];

/// Runs a plugin in this process. It really acts, so this works only inside a sandbox.
///
/// # Panics
/// When the answer is neither success nor one error object, which is what the fuzzer looks for.
pub fn call<P: Plugin>(input: &[u8]) {
    let container = container();
    let mut lines = input.splitn(6, |byte| *byte == b'\n');
    let mut next = |default: &str| match lines.next() {
        Some(line) if !line.is_empty() => OsString::from_vec(line.to_vec()),
        _ => OsString::from(default),
    };
    let command = next("ADD");
    let environment = Environment {
        command: spell(&command),
        container_id: next("c1"),
        ifname: next("eth0"),
        netns: next(&container.to_string_lossy()),
        args: next(""),
        path: std::env::var_os("CNI_PATH").unwrap_or_default(),
        netns_override: OsString::new(),
    };
    let stdin = next("").into_vec();
    let reply = serve::<P>(&environment, stdin.as_slice());
    match reply.status {
        0 => {}
        1 => {
            let error: serde_json::Value =
                serde_json::from_str(&reply.stdout).expect("a failure is one JSON document");
            assert!(
                error["code"].is_u64() && error["msg"].is_string(),
                "{error}"
            );
        }
        other => panic!("exit status {other}"),
    }
    // Not committed: the changes of an ADD are taken back, so one call does not meet the next.
    drop(reply);
}

/// A digit stands for a command, so that the fuzzer finds them all at once.
fn spell(command: &OsString) -> OsString {
    let digit = command.to_str().and_then(|text| text.parse::<usize>().ok());
    match digit.and_then(|digit| COMMANDS.get(digit)) {
        Some(known) => OsString::from(known),
        None => command.clone(),
    }
}

/// The container of every call.
fn container() -> &'static Path {
    static CONTAINER: OnceLock<PathBuf> = OnceLock::new();
    CONTAINER.get_or_init(|| {
        // Left by the sandbox binary of the conformance crate, in a /run of its own.
        let inside = Path::new("/run/sandbox/netns").exists();
        assert!(
            inside,
            "the plugins really act: start this through fuzz/run"
        );
        let path = PathBuf::from("/run/netns/fuzz");
        std::fs::File::create(&path).expect("a file to bind to");
        let make = || {
            unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
            let own = Some("/proc/thread-self/ns/net");
            mount(own, &path, None::<&str>, MsFlags::MS_BIND, None::<&str>).expect("a bind mount");
        };
        std::thread::scope(|scope| scope.spawn(make).join()).expect("a namespace can be made");
        path
    })
}
