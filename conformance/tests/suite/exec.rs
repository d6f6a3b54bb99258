//! Which processes a command starts, counted by a tracer.

use std::ffi::OsString;
use std::fs;

use conformance::chain::{Attachment, Network, Runtime};
use conformance::lists::{
    CARD, LAN, LIMITED_MICROVM, MACVLAN, MESOS, MICROVM, NOMAD, NOMAD_DUAL, OPERATOR, PTP, TAP,
    nomad_ports,
};
use conformance::net::{UPLINK, card_id, provide_card};

use super::dhcp::world::{daemon, dnsmasq};
use super::support::{Lab, OURS, plugins, sandboxed, tool};

const TRACE: &str = "/run/sandbox/tmp/trace";

/// The runtime under a tracer of these system calls, which it appends to one file.
fn traced(lab: &Lab, calls: &str) -> Runtime {
    let strace = tool("strace", "strace");
    let mut wrapper: Vec<OsString> = vec![strace.into()];
    wrapper.extend(["-f", "-qq", "-A", "-o", TRACE, "-e"].map(OsString::from));
    wrapper.push(format!("trace={calls}").into());
    lab.ours.clone().under(&wrapper)
}

/// What was traced since the last call.
fn trace() -> String {
    let text = fs::read_to_string(TRACE).unwrap_or_default();
    fs::remove_file(TRACE).unwrap();
    text
}

/// The programs that were started, by their bare names.
fn programs() -> Vec<String> {
    let text = trace();
    let started = text
        .lines()
        .filter(|line| line.contains("execve(") && line.ends_with("= 0"));
    let path = |line: &str| line.split('"').nth(1).unwrap().to_owned();
    started
        .map(|line| path(line).rsplit('/').next().unwrap().to_owned())
        .collect()
}

/// Only plugins, host-local, and one restore for each family.
fn judge(name: &str, verb: &str, restores: usize) {
    let started = programs();
    let (restoring, others): (Vec<&String>, Vec<&String>) = started
        .iter()
        .partition(|program| program.ends_with("-restore"));
    assert!(
        others
            .iter()
            .all(|program| OURS.contains(&program.as_str())),
        "{name} {verb}: {started:?}"
    );
    assert!(restoring.len() <= restores, "{name} {verb}: {started:?}");
}

fn run_list(lab: &Lab, name: &str, text: &str, restores: usize) {
    let network = Network::parse(text).unwrap();
    if name == "c" {
        lab.rtnl().add_bridge("virbr0").unwrap();
    }
    let netns = lab.container(name);
    let mut attachment = Attachment::new(name, netns.path())
        .capability("portMappings", nomad_ports(8080, 80))
        .capability("deviceID", card_id(0).into());
    let runtime = traced(lab, "execve");
    runtime
        .add(&network, &mut attachment)
        .unwrap_or_else(|error| panic!("{error}"));
    judge(name, "ADD", restores);
    if network.has(conformance::chain::Verb::Check) {
        runtime
            .check(&network, &attachment)
            .unwrap_or_else(|error| panic!("{error}"));
        judge(name, "CHECK", 0);
    }
    runtime
        .del(&network, &attachment)
        .unwrap_or_else(|error| panic!("{error}"));
    judge(name, "DEL", restores);
}

/// ADD, CHECK and DEL of a list without waiting for time to pass.
fn nothing_sleeps(lab: &Lab, list: &str, name: &str) {
    let network = Network::parse(list).unwrap();
    let netns = lab.container(name);
    let mut attachment = Attachment::new(name, netns.path())
        .capability("portMappings", nomad_ports(8080, 80))
        .capability("deviceID", card_id(0).into());
    let runtime = traced(lab, "nanosleep,clock_nanosleep,select,pselect6,execve");
    runtime.add(&network, &mut attachment).unwrap();
    runtime.check(&network, &attachment).unwrap();
    runtime.del(&network, &attachment).unwrap();
    let text = trace();
    assert!(text.contains("execve("), "the tracer worked: {text}");
    for call in ["nanosleep(", "select(", "pselect6("] {
        assert!(!text.contains(call), "{text}");
    }
}

sandboxed! {
    fn list_a_starts_nothing_but_plugins(lab) {
        run_list(lab, "a", NOMAD, 0);
    }

    fn list_b_starts_at_most_one_restore_for_each_family(lab) {
        tool("iptables", "iptables");
        run_list(lab, "b", NOMAD_DUAL, 2);
    }

    fn list_c_starts_nothing_but_plugins(lab) {
        run_list(lab, "c", OPERATOR, 0);
    }

    fn list_d_starts_nothing_but_plugins(lab) {
        run_list(lab, "d", MESOS, 0);
    }

    fn a_microvm_starts_nothing_but_plugins(lab) {
        run_list(lab, "v", MICROVM, 0);
        run_list(lab, "w", LIMITED_MICROVM, 0);
    }

    fn a_tap_starts_nothing_but_plugins(lab) {
        run_list(lab, "tap", TAP, 0);
    }

    fn a_routed_pair_starts_nothing_but_plugins(lab) {
        run_list(lab, "r", PTP, 0);
    }

    fn a_macvlan_starts_nothing_but_plugins(lab) {
        run_list(lab, "m", MACVLAN, 0);
    }

    fn a_card_starts_nothing_but_plugins(lab) {
        provide_card(&lab.host, 0).unwrap();
        run_list(lab, "h", CARD, 0);
    }

    fn a_lease_from_a_dhcp_server_starts_nothing_but_plugins_and_nothing_sleeps(lab) {
        let _server = dnsmasq(lab, &[]);
        let _daemon = daemon(lab, &[]);
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl().set_master(UPLINK, "br0").unwrap();
        run_list(lab, "l", LAN, 0);
        nothing_sleeps(lab, LAN, "c1");
    }

    fn nothing_sleeps_on_the_way(lab) {
        provide_card(&lab.host, 0).unwrap();
        for (number, list) in [NOMAD, LIMITED_MICROVM, TAP, PTP, MACVLAN, CARD].into_iter().enumerate() {
            nothing_sleeps(lab, list, &format!("c{number}"));
        }
    }

    fn version_touches_nothing(lab) {
        for plugin in OURS {
            let runtime = traced(lab, "read,pread64,socket,openat,open,unshare,setns,clone,clone3,execve");
            let answer = runtime.bare(plugin, "VERSION").unwrap().run().unwrap();
            assert!(answer.ok(), "{}", answer.text());
            let text = trace();
            for call in ["socket(", "setns(", "unshare(", "clone(", "clone3(", "read(0"] {
                assert!(!text.contains(call), "{plugin}: {call} in {text}");
            }
            assert!(!text.contains("O_WRONLY") && !text.contains("O_RDWR|O_CREAT"), "{plugin}: {text}");
        }
    }

    fn binaries_are_static_and_small(_lab) {
        for plugin in OURS {
            let bytes = fs::read(plugins().join(plugin)).unwrap();
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]).into_owned();
            assert!(!text.contains("/lib64/ld-linux") && !text.contains("/lib/ld-"), "{plugin} is not static");
        }
    }
}
