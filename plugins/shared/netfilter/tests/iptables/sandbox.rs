//! A host of one's own: namespaces, an empty /run, and shell commands that must succeed.

use std::net::IpAddr;
use std::process::{Command, Output};

use netfilter::{
    ApplyOptions, Backend, Hints, Intent, Kinds, MarkStyle, Netfilter, Owner, Protocol, Snat,
};
use nix::mount::{MsFlags, mount};

const MARK: &str = "IPTABLES_TEST_SANDBOX";

/// Declares tests whose bodies run in a sandbox.
macro_rules! sandboxed {
    ($($(#[$doc:meta])* fn $name:ident() $body:block)*) => {
        $($(#[$doc])* #[test] fn $name() {
            $crate::sandbox::run(concat!(module_path!(), "::", stringify!($name)), || $body);
        })*
    };
}

/// In the test process: runs this same test again, alone, in new namespaces. In that child: runs the body.
pub fn run(path: &str, body: impl FnOnce()) {
    let test = path.split_once("::").unwrap().1;
    if std::env::var_os(MARK).is_some() {
        for dir in ["/run", "/var/lib"] {
            mount(
                Some("tmpfs"),
                dir,
                Some("tmpfs"),
                MsFlags::empty(),
                None::<&str>,
            )
            .unwrap();
        }
        sh("ip link set lo up && mkdir -p /run/netns /run/bin");
        return body();
    }
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        // The mapping must exist before the network namespace, or files in /proc/net belong to nobody.
        command.args(["--map-root-user", "--user", "unshare"]);
    }
    let output = command
        .args(["--net", "--mount"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .env_remove("DBUS_SYSTEM_BUS_ADDRESS")
        // Tests put stand-ins for tools there.
        .env(
            "PATH",
            format!(
                "/run/bin:{}:/usr/sbin:/sbin",
                std::env::var("PATH").unwrap()
            ),
        )
        .output()
        .expect("these tests need unshare(1) from util-linux");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success() && out.contains("1 passed"),
        "{test}: {}\n{out}\n{err}",
        output.status
    );
}

/// Runs a shell command that must succeed; its output.
pub fn sh(command: &str) -> String {
    let output = try_sh(command);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{command}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    text(&output.stdout)
}

/// Runs a shell command.
pub fn try_sh(command: &str) -> Output {
    Command::new("sh").arg("-ec").arg(command).output().unwrap()
}

/// A table as `iptables-save` prints it, without what changes from call to call.
pub fn save(tool: &str, table: &str) -> String {
    let text = sh(&format!("{tool}-save -t {table}"));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split(" [").next().unwrap())
        .collect::<Vec<_>>()
        .join("\n")
}

/// The rules of a table.
pub fn rules(tool: &str, table: &str) -> Vec<String> {
    save(tool, table)
        .lines()
        .filter(|line| line.starts_with("-A"))
        .map(str::to_owned)
        .collect()
}

pub fn owner(network: &str, id: &str, ifname: &str) -> Owner {
    Owner {
        network: network.into(),
        container_id: id.into(),
        ifname: ifname.into(),
    }
}

/// Applies with the iptables backend.
pub fn apply(owner: &Owner, intents: &[Intent]) -> netfilter::Result<()> {
    apply_if(owner, intents, &|_, _| true)
}

/// Applies, with an answer to whether a port's holder lives.
pub fn apply_if(
    owner: &Owner,
    intents: &[Intent],
    alive: &dyn Fn(&netfilter::Holder, IpAddr) -> bool,
) -> netfilter::Result<()> {
    let options = ApplyOptions {
        alive,
        ..ApplyOptions::default()
    };
    let mut netfilter = Netfilter::open()?;
    let applied = netfilter.apply(Backend::Iptables, owner, intents, &options);
    assert_eq!(netfilter.take_warnings(), [""; 0]);
    applied
}

/// Removes everything of the owner; with the addresses it had, where they are known.
pub fn remove(owner: &Owner, addresses: &[&str]) {
    let addresses = addresses
        .iter()
        .map(|address| address.parse().unwrap())
        .collect();
    let hints = Hints {
        addresses,
        ..Hints::default()
    };
    Netfilter::open()
        .unwrap()
        .remove(owner, Kinds::ALL, &hints)
        .unwrap();
}

pub fn verify(owner: &Owner, intents: &[Intent]) -> netfilter::Result<()> {
    Netfilter::open()
        .unwrap()
        .verify(Backend::Iptables, owner, intents)
}

pub fn masquerade(source: &str) -> Intent {
    Intent::Masquerade {
        source: source.parse().unwrap(),
        except: Vec::new(),
    }
}

pub fn admit(address: &str) -> Intent {
    Intent::Admit {
        address: address.parse().unwrap(),
        admin_chain: "CNI-ADMIN".into(),
        zone: None,
    }
}

pub fn publish(host_port: u16, protocol: Protocol, to: &str, to_port: u16) -> Intent {
    publish_with(
        None,
        host_port,
        protocol,
        to,
        to_port,
        Snat::Hairpin,
        MarkStyle::default(),
    )
}

pub fn publish_with(
    host_ip: Option<&str>,
    host_port: u16,
    protocol: Protocol,
    to: &str,
    to_port: u16,
    snat: Snat,
    mark: MarkStyle,
) -> Intent {
    Intent::Publish {
        host_ip: host_ip.map(|ip| ip.parse().unwrap()),
        host_port,
        protocol,
        to: to.parse().unwrap(),
        to_port,
        snat,
        conditions: Vec::new(),
        mark,
    }
}

/// Puts a script before a tool in PATH.
pub fn stand_in(tool: &str, script: &str) {
    std::fs::write(format!("/run/bin/{tool}"), format!("#!/bin/sh\n{script}\n")).unwrap();
    sh(&format!("chmod +x /run/bin/{tool}"));
}

/// Makes the tools count themselves; [`children`] tells the result.
pub fn count_children() {
    for family in ["iptables", "ip6tables"] {
        for tool in [
            format!("{family}-nft-restore"),
            format!("{family}-legacy-restore"),
            format!("{family}-nft-save"),
            format!("{family}-legacy-save"),
        ] {
            stand_in(
                &tool,
                &format!("echo {tool} >>/run/children; exec /usr/sbin/{tool} \"$@\""),
            );
        }
    }
}

/// The tools that were started since the last call.
pub fn children() -> Vec<String> {
    let list = std::fs::read_to_string("/run/children").unwrap_or_default();
    let _ = std::fs::remove_file("/run/children");
    list.lines().map(str::to_owned).collect()
}
