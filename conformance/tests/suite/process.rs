//! What a caller may do to the process of a plugin: kill it, close its streams, give it odd signals and limits.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use conformance::chain::Attachment;
use conformance::plugin::Answer;
use conformance::probe::PATIENCE;
use conformance::snapshot::Leavings;
use serde_json::{Value, json};

use super::support::{Lab, fine, leases_in, plugins, refused, sandboxed, tool};

const LEASES: &str = "/var/lib/cni/networks/net";

fn config() -> Value {
    json!({"cniVersion": "1.1.0", "name": "net", "type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]]}})
}

/// The bridge plugin with that configuration, run by another program.
fn under(lab: &Lab, wrapper: &[&str], verb: &str, attachment: &Attachment) -> Answer {
    let wrapper: Vec<OsString> = wrapper.iter().map(OsString::from).collect();
    let call = lab.ours.call("bridge", verb, attachment).unwrap();
    let call = call.under(&wrapper).stdin(config().to_string());
    call.run().unwrap()
}

/// A directory of plugins whose host-local says that it was started, and waits for a word before it goes on.
fn with_a_slow_host_local() -> PathBuf {
    let directory = PathBuf::from("/run/sandbox/tmp/slow");
    std::fs::create_dir_all(&directory).unwrap();
    std::os::unix::fs::symlink(plugins().join("bridge"), directory.join("bridge")).unwrap();
    let script = format!(
        "#!/bin/sh\ncd {0}\nmkfifo go\n: >started\nread word <go\n{1}/host-local\n: >ended\n",
        directory.display(),
        plugins().display()
    );
    let file = directory.join("host-local");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    directory
}

fn wait_for(file: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !file.exists() {
        assert!(Instant::now() < deadline, "no {}", file.display());
        std::thread::yield_now();
    }
}

#[track_caller]
fn nothing_is_left(lab: &Lab, fresh: &conformance::snapshot::Snapshot) {
    let all = fresh.diff(&lab.snapshot());
    let left = all.beyond(&Leavings {
        bridge: "br0",
        owners: &[],
    });
    assert!(left.is_empty(), "{left:#?}");
}

sandboxed! {
    fn an_add_that_is_killed_takes_its_ipam_plugin_with_it(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let slow = with_a_slow_host_local();
        let request = Path::new("/run/sandbox/tmp/request");
        std::fs::write(request, config().to_string()).unwrap();
        let mut add = Command::new(slow.join("bridge"))
            .envs([("CNI_COMMAND", "ADD"), ("CNI_CONTAINERID", "c1"), ("CNI_IFNAME", "eth0")])
            .env("CNI_NETNS", netns.path())
            .env("CNI_PATH", &slow)
            .stdin(std::fs::File::open(request).unwrap())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(&slow.join("started"));
        add.kill().unwrap();
        add.wait().unwrap();
        fine(&lab.one("DEL", &config(), &attachment));
        std::fs::write(slow.join("go"), "go\n").unwrap();
        wait_for(&slow.join("ended"));
        assert_eq!(leases_in(Path::new(LEASES)), [""; 0], "a lease of nobody");
    }

    fn a_caller_that_ignores_its_children_is_served(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let env = tool("env", "coreutils");
        for verb in ["ADD", "DEL"] {
            fine(&under(lab, &[env.to_str().unwrap(), "--ignore-signal=CHLD"], verb, &attachment));
        }
        assert_eq!(leases_in(Path::new(LEASES)), [""; 0]);
    }

    fn a_limit_to_the_size_of_files_fails_an_add_and_leaves_nothing(lab) {
        let netns = lab.container("c1");
        let fresh = lab.snapshot();
        let attachment = Attachment::new("c1", netns.path());
        let prlimit = tool("prlimit", "util-linux");
        let answer = under(lab, &[prlimit.to_str().unwrap(), "--fsize=1"], "ADD", &attachment);
        assert_eq!(answer.status.code(), Some(1), "{}", answer.text());
        nothing_is_left(lab, &fresh);
        fine(&lab.one("DEL", &config(), &attachment));
    }

    fn a_closed_standard_stream_is_an_error(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let fresh = lab.snapshot();
        let with = |redirection: &str, verb: &str| {
            let script = format!("exec \"$0\" {redirection}");
            under(lab, &["/bin/sh", "-c", &script], verb, &attachment)
        };
        let answer = with(">&-", "ADD");
        assert_eq!(answer.status.code(), Some(1), "{}", answer.text());
        assert!(String::from_utf8_lossy(&answer.stderr).contains("cannot write the answer"));
        nothing_is_left(lab, &fresh);
        for unreadable in ["<&-", "0>/dev/null"] {
            assert!(refused(&with(unreadable, "ADD"), 5).contains("stdin"));
        }
        // Whoever throws the answer away on purpose may, and a DEL has none.
        assert!(with(">/dev/null", "ADD").status.success());
        assert!(with(">&-", "DEL").status.success());
    }
}
