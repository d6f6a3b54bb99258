//! `cnitool doctor` names the fault: each test breaks a host in one way.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use conformance::net::Netns;
use serde_json::{Value, json};

use super::firewalld::Bus;
use super::support::{Lab, iptables, nft, plugins, run, sandboxed, tool};

fn cnitool(arguments: &[&str], ports: &Value) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cnitool"))
        .args(arguments)
        .env("CNI_PATH", plugins())
        .env("CAP_ARGS", json!({"portMappings": ports}).to_string())
        .output()
        .unwrap()
}

/// Puts a list where an operator would.
fn install(plugins: &Value) {
    fs::create_dir_all("/etc/cni/net.d").unwrap();
    let list = json!({"cniVersion": "1.1.0", "name": "net", "plugins": plugins});
    fs::write("/etc/cni/net.d/10-net.conflist", list.to_string()).unwrap();
}

fn bridge(extra: Value) -> Value {
    let mut plugin = json!({"type": "bridge", "bridge": "br0", "isDefaultGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}});
    for (key, value) in extra.as_object().unwrap() {
        plugin[key] = value.clone();
    }
    plugin
}

fn usual() -> Value {
    json!([
        bridge(json!({})),
        {"type": "firewall"},
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ])
}

#[track_caller]
fn add(netns: &Netns, ports: &Value) {
    let output = cnitool(&["add", "net", netns.path().to_str().unwrap()], ports);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

fn findings(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    report["findings"].as_array().unwrap().clone()
}

/// Nothing is wrong.
#[track_caller]
fn healthy() {
    let output = cnitool(&["doctor", "--json"], &json!([]));
    let bad: Vec<Value> = findings(&output)
        .into_iter()
        .filter(|one| one["level"] != "note")
        .collect();
    assert_eq!(bad, [Value::Null; 0], "a healthy host");
    assert_eq!(output.status.code(), Some(0));
}

/// Exactly one fault is found, and it has all these words and a cure.
#[track_caller]
fn names(words: &[&str]) {
    let output = cnitool(&["doctor", "--json"], &json!([]));
    let all = findings(&output);
    let faults: Vec<&Value> = all.iter().filter(|one| one["level"] == "fault").collect();
    assert_eq!(faults.len(), 1, "{all:#?}");
    let text = faults[0].to_string();
    for word in words {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_ne!(faults[0]["cure"], "", "{text}");
    assert_eq!(output.status.code(), Some(3));
    let spoken = cnitool(&["doctor"], &json!([]));
    let spoken = String::from_utf8_lossy(&spoken.stdout).into_owned();
    assert!(spoken.contains("1 faults"), "{spoken}");
    assert!(words.iter().all(|word| spoken.contains(word)), "{spoken}");
}

fn write(path: &str, value: &str) {
    fs::write(format!("/proc/sys/net/{path}"), value).unwrap();
}

sandboxed! {
    fn a_healthy_host_has_no_fault(lab) {
        install(&usual());
        healthy();
        let netns = lab.container("c1");
        add(&netns, &json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]));
        healthy();
    }

    fn a_packet_filter_that_was_flushed(lab) {
        tool("nft", "nftables");
        install(&usual());
        let netns = lab.container("c1");
        add(&netns, &json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]));
        nft("flush ruleset");
        names(&["network net", "CHECK fails for 1 of 1 live attachments", "cnitool-", "cnitool reapply net"]);
        assert!(cnitool(&["reapply", "net"], &json!([])).status.success());
        healthy();
    }

    fn a_version_that_nobody_knows(_lab) {
        install(&usual());
        let path = "/etc/cni/net.d/10-net.conflist";
        let list = fs::read_to_string(path).unwrap().replace("1.1.0", "1.9.0");
        fs::write(path, list).unwrap();
        names(&["network net", "1.9.0", "0.4.0, 1.0.0, 1.1.0", "cniVersion"]);
    }

    fn forwarding_that_was_switched_off(lab) {
        install(&usual());
        let netns = lab.container("c1");
        add(&netns, &json!([]));
        write("ipv4/ip_forward", "0");
        names(&["net.ipv4.ip_forward", "sysctl -w net.ipv4.ip_forward=1", "cnitool-"]);
    }

    fn a_drop_in_another_table(_lab) {
        install(&usual());
        for rest in ["policy drop;", "policy accept; counter drop;"] {
            nft(&format!("table inet site {{ chain fence {{ type filter hook forward priority 10; {rest} }}; }}"));
            names(&["inet site", "fence", "nft insert rule inet site fence"]);
            nft("delete table inet site");
        }
        healthy();
    }

    fn legacy_rules_beside_nftables(lab) {
        install(&usual());
        let netns = lab.container("c1");
        add(&netns, &json!([]));
        let legacy = tool("iptables-legacy", "iptables");
        run(&legacy, &["-t", "nat", "-A", "PREROUTING", "-p", "tcp", "--dport", "80", "-j", "RETURN"]);
        names(&["legacy", "ip nat", "inet ferrule", "iptables-legacy-save"]);
    }

    fn firewalld_without_the_zone(_lab) {
        install(&json!([bridge(json!({})), {"type": "firewall", "firewalldZone": "containers"}]));
        let _bus = Bus::with_firewalld();
        names(&["firewall", "zone containers", "firewalldZone"]);
    }

    fn a_full_range(lab) {
        install(&json!([bridge(json!({"ipam": {"type": "host-local", "subnet": "10.77.0.0/30"}}))]));
        let netns = lab.container("c1");
        add(&netns, &json!([]));
        names(&["bridge", "10.77.0.2", "cnitool-"]);
    }

    fn a_lease_directory_that_cannot_be_written(lab) {
        install(&usual());
        read_only(lab, Path::new("/var/lib/cni/networks"));
        names(&["/var/lib/cni/networks", "Read-only"]);
    }

    fn an_address_of_former_times_on_the_bridge(lab) {
        install(&usual());
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl().add_address("br0", "10.99.0.1/24".parse().unwrap()).unwrap();
        lab.rtnl().set_up("br0").unwrap();
        names(&["br0", "10.99.0.1/24"]);
    }

    fn isolation_without_bridge_filtering(_lab) {
        install(&json!([bridge(json!({})), {"type": "firewall", "backend": "iptables", "ingressPolicy": "isolated"}]));
        write("bridge/bridge-nf-call-iptables", "0");
        names(&["br_netfilter", "isolated", "net.bridge.bridge-nf-call-iptables=1"]);
        write("bridge/bridge-nf-call-iptables", "1");
        healthy();
    }

    fn a_port_of_a_dead_owner(lab) {
        install(&usual());
        let netns = lab.container("c1");
        add(&netns, &json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]));
        drop(netns);
        names(&["8080/tcp", "cnitool-", "gone", "cnitool gc net"]);
        assert!(cnitool(&["gc", "net"], &json!([])).status.success());
        healthy();
    }

    fn a_kernel_without_the_module(_lab) {
        // This kernel has no IPVLAN; where one has it, the test proves nothing and says so.
        install(&json!([{"type": "ipvlan", "master": "up0", "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}}]));
        names(&["ipvlan", "this kernel has no links of kind ipvlan", "load the module ipvlan"]);
    }

    fn the_host_of_iptables_with_a_closed_forward_chain_is_served_by_firewall(_lab) {
        tool("iptables", "iptables");
        iptables("iptables", "-P FORWARD DROP");
        install(&usual());
        healthy();
        let told = findings(&cnitool(&["doctor", "--json"], &json!([])));
        assert!(told.iter().any(|one| one["subject"] == "firewall" && one["problem"].to_string().contains("iptables backend in net")), "{told:#?}");
        install(&json!([bridge(json!({}))]));
        names(&["FORWARD", "DROP", "net"]);
    }
}

/// An empty file system there, which nobody may write to.
fn read_only(_lab: &Lab, directory: &Path) {
    use nix::mount::{MsFlags, mount};
    fs::create_dir_all(directory).unwrap();
    let flags = MsFlags::MS_RDONLY;
    mount(Some("tmpfs"), directory, Some("tmpfs"), flags, None::<&str>).unwrap();
}
