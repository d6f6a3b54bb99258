//! The sandbox keeps its promise: nothing gets out.

use std::path::Path;
use std::process::Command;

use conformance::net::{HOST_V4, Host, Netns, OUTSIDE_V4, UPLINK};
use conformance::probe::{PATIENCE, Transport, ping};
use conformance::sandbox::Launcher;

use super::support::{ask, no_answer, sandboxed, serve};

#[test]
fn outside_of_it_nothing_is_touched() {
    let refused = Host::new().expect_err("a test process is not in a sandbox");
    assert!(
        matches!(refused, conformance::Error::NotInSandbox),
        "{refused}"
    );
}

#[test]
fn the_exit_code_comes_through() {
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_sandbox"));
    for code in [0, 1, 77] {
        let status = launcher
            .command("sh")
            .args(["-c", &format!("exit {code}")])
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(code));
    }
    let status = Command::new(env!("CARGO_BIN_EXE_sandbox"))
        .arg("/no/such/program")
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(125));
}

#[test]
fn what_is_made_inside_is_not_there_outside() {
    let launcher = Launcher::new(env!("CARGO_BIN_EXE_sandbox"));
    let script = "touch /run/from-a-sandbox /var/lib/cni/from-a-sandbox && echo made";
    let output = launcher
        .command("sh")
        .args(["-c", script])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "made");
    for file in ["/run/from-a-sandbox", "/var/lib/cni/from-a-sandbox"] {
        assert!(!Path::new(file).exists(), "{file}");
    }
}

sandboxed! {
    fn the_world_around_the_host_is_wired(lab) {
        assert!(lab.rtnl().link(UPLINK).unwrap().facts.up);
        ping(lab.host.netns(), OUTSIDE_V4, PATIENCE).unwrap();
        ping(lab.host.outside(), HOST_V4, PATIENCE).unwrap();
        ping(lab.host.netns(), conformance::net::OUTSIDE_V6, PATIENCE).unwrap();
        ping(lab.host.outside(), conformance::net::HOST_V6, PATIENCE).unwrap();
        for transport in [Transport::Tcp, Transport::Udp] {
            let server = serve(lab.host.outside(), transport, OUTSIDE_V4, 7000, "outside");
            let seen = ask(lab.host.netns(), transport, OUTSIDE_V4, 7000);
            assert_eq!((seen.server.as_str(), seen.peer), ("outside", HOST_V4));
            drop(server);
            no_answer(lab.host.netns(), transport, OUTSIDE_V4, 7000);
        }
    }

    fn a_snapshot_sees_every_kind_of_change(lab) {
        let fresh = lab.snapshot();
        assert!(fresh.diff(&lab.snapshot()).is_empty(), "{}", fresh.diff(&lab.snapshot()));
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl().add_address("br0", "10.1.0.1/24".parse().unwrap()).unwrap();
        lab.rtnl().add_route("198.51.100.0/24".parse().unwrap(), OUTSIDE_V4).unwrap();
        lab.host.sysctl("net/ipv4/ip_forward", "1").unwrap();
        std::fs::write("/run/left", "behind").unwrap();
        let diff = fresh.diff(&lab.snapshot()).to_string();
        for mention in ["link br0", "10.1.0.1/24", "198.51.100.0", "ip_forward = 1", "/run/left"] {
            assert!(diff.contains(mention), "{mention} in {diff}");
        }
    }

    fn a_snapshot_reads_rules_and_sets(lab) {
        super::support::nft(
            "add table inet mine; add set inet mine s { type ipv4_addr; }; \
             add element inet mine s { 10.9.8.7 comment \"whose\" }; \
             add chain inet mine c { type filter hook forward priority 5; policy drop; }; \
             add rule inet mine c ip saddr @s counter accept comment \"why\"",
        );
        let items: Vec<String> = lab.snapshot().items().iter().map(ToString::to_string).collect();
        for line in [
            "nft table inet mine", "nft chain inet mine c (filter hook 2 priority 5; policy drop)", "nft set inet mine s",
            "nft element inet mine s: key 0a090807 comment whose",
        ] {
            assert!(items.iter().any(|item| item == line), "{line} in {items:#?}");
        }
        assert!(items.iter().any(|item| item.starts_with("nft rule inet mine c:") && item.contains("why")), "{items:#?}");
        let before = lab.snapshot();
        super::support::nft("delete element inet mine s { 10.9.8.7 }");
        assert_eq!(before.diff(&lab.snapshot()).removed.len(), 1);
    }

    fn a_namespace_is_gone_when_it_is_dropped(lab) {
        let netns = lab.container("c1");
        let path = netns.path().to_owned();
        assert!(path.exists());
        drop(netns);
        assert!(!path.exists());
        Netns::create(lab.host.sandbox(), "c1").unwrap();
    }

    fn the_machines_own_files_are_read_only(_lab) {
        let plugins = super::support::plugins();
        for directory in [Path::new("/"), Path::new("/etc"), Path::new(env!("CARGO_MANIFEST_DIR")), &plugins] {
            let file = directory.join("from-a-sandbox");
            let refused = std::fs::write(&file, "x");
            // Where the directory is a mirror in memory, writing works and reaches nobody.
            if refused.is_ok() {
                assert_eq!(directory, Path::new("/etc"), "{}", file.display());
            }
        }
    }

    fn the_state_directories_are_private_and_empty(_lab) {
        for directory in ["/var/lib/cni", "/etc/cni", "/run/lock"] {
            assert_eq!(std::fs::read_dir(directory).unwrap().count(), 0, "{directory}");
        }
    }
}

#[test]
fn the_table_of_scenarios_is_true() {
    let output = Command::new(std::env::current_exe().unwrap())
        .arg("--list")
        .output()
        .unwrap();
    let list = String::from_utf8(output.stdout).unwrap();
    let real: std::collections::BTreeSet<&str> = list
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .collect();
    let table =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios.md")).unwrap();
    let named: std::collections::BTreeSet<&str> = table
        .split('`')
        .filter(|word| word.contains("::") && !word.contains(' '))
        .collect();
    let missing: Vec<_> = named.difference(&real).collect();
    let unnamed: Vec<_> = real.difference(&named).collect();
    assert!(
        missing.is_empty() && unnamed.is_empty(),
        "no such test: {missing:?}; not in the table: {unnamed:?}"
    );
}
