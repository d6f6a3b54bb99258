//! Runs each test in a child process with namespaces of its own, as root and as an ordinary user alike.
#![allow(dead_code)]

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use netlink::{Handle, Link, MacAddr, Netns, NewBridge, NewVeth, Veth};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};

const MARK: &str = "NETLINK_TEST_SANDBOX";

/// Declares tests whose bodies run in a fresh network and mount namespace (and user namespace, unless run by root).
#[macro_export]
macro_rules! sandboxed {
    ($($(#[$doc:meta])* fn $name:ident() $body:block)*) => {
        $($(#[$doc])* #[test] fn $name() { $crate::common::sandbox(stringify!($name), || $body); })*
    };
}

/// In the test process: runs this same test again, alone, in new namespaces. In that child: runs the body.
pub fn sandbox(test: &str, body: impl FnOnce()) {
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let mut command = Command::new("unshare");
    command.arg("--net").arg("--mount");
    if !nix::unistd::geteuid().is_root() {
        command.arg("--map-root-user");
    }
    let output = command
        .arg("--")
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .expect("these tests need unshare(1) from util-linux");
    let status = output.status;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(
        status.success() && out.contains("1 passed"),
        "{test}: code {:?}, signal {:?}\n{out}\n{err}",
        status.code(),
        status.signal()
    );
}

/// A second namespace, named by a bind mount on a tmpfs of our own, as `ip netns` does it.
pub fn new_netns(name: &str) -> PathBuf {
    let dir = Path::new("/run/netns");
    if !dir.join(".ours").exists() {
        mount(
            Some("tmpfs"),
            "/run",
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .unwrap();
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join(".ours"), "").unwrap();
    }
    let path = dir.join(name);
    fs::write(&path, "").unwrap();
    let target = path.clone();
    thread::spawn(move || {
        unshare(CloneFlags::CLONE_NEWNET).unwrap();
        mount(
            Some("/proc/thread-self/ns/net"),
            &target,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .unwrap();
    })
    .join()
    .unwrap();
    path
}

/// The sandbox's own namespace as "the host", with `lo` up, and a second one as "the container".
pub fn host_and_container() -> (Handle, Handle) {
    let host = Handle::host().unwrap();
    host.set_up(&host.link("lo").unwrap()).unwrap();
    let container = Handle::open(&Netns::open(new_netns("blue")).unwrap()).unwrap();
    (host, container)
}

/// A bridge that is up.
pub fn bridge(host: &Handle, name: &str) -> Link {
    host.create_bridge(&NewBridge {
        name: name.to_owned(),
        mac: MacAddr::random().unwrap(),
        mtu: None,
        vlan_filtering: false,
        up: true,
    })
    .unwrap()
}

/// A pair whose far end is `eth0` in the container, both ends down.
pub fn veth(host: &Handle, container: &Handle) -> Veth {
    host.create_veth(&NewVeth::new("eth0").unwrap(), container)
        .unwrap()
}

/// This thread's entry in `/proc`.
pub fn this_thread() -> PathBuf {
    Path::new("/proc").join(fs::read_link("/proc/thread-self").unwrap())
}

/// Returns once that thread of this process is blocked in the kernel.
pub fn until_asleep(waiter: &Path) {
    loop {
        let stat = fs::read_to_string(waiter.join("stat")).unwrap();
        // The state follows the command's name, which is in parentheses (proc_pid_stat(5)).
        if stat
            .rsplit(')')
            .next()
            .unwrap()
            .trim_start()
            .starts_with('S')
        {
            return;
        }
        thread::yield_now();
    }
}

/// Returns once this process has a single thread: one that was joined is still there for a moment.
pub fn until_alone() {
    while fs::read_dir("/proc/self/task").unwrap().count() > 1 {
        thread::yield_now();
    }
}
