//! The texts of errors, as an operator meets them: each is what a plugin really answered, and compared to the letter.
//!
//! After a text was changed on purpose, `SANDBOX_WRITABLE=$PWD/conformance/tests/suite CNI_WRITE_MESSAGES=1` (for
//! `cargo test -p conformance --test suite -- messages::`) writes `messages.txt` anew.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use conformance::chain::Attachment;
use conformance::net::{Netns, Rtnl};
use conformance::plugin::PluginError;
use serde_json::{Value, json};

use super::support::{Lab, OURS, fine, nft, sandboxed, with_previous};

/// Set to write the table instead of comparing with it.
const WRITE: &str = "CNI_WRITE_MESSAGES";

fn table() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "suite", "messages.txt"]
        .iter()
        .collect()
}

/// A call that must fail.
struct Situation {
    plugin: &'static str,
    verb: &'static str,
    /// In the words of an operator.
    what: &'static str,
    /// What is unusual in the configuration.
    extra: Value,
    /// `CNI_ARGS`, or an empty text.
    args: &'static str,
    /// What the message has to name.
    names: &'static str,
}

fn of(
    plugin: &'static str,
    verb: &'static str,
    what: &'static str,
    names: &'static str,
    extra: Value,
) -> Situation {
    Situation {
        plugin,
        verb,
        what,
        extra,
        args: "",
        names,
    }
}

fn add(plugin: &'static str, what: &'static str, names: &'static str, extra: Value) -> Situation {
    of(plugin, "ADD", what, names, extra)
}

fn with_args(
    plugin: &'static str,
    what: &'static str,
    args: &'static str,
    names: &'static str,
    extra: Value,
) -> Situation {
    Situation {
        args,
        ..of(plugin, "ADD", what, names, extra)
    }
}

fn ipam(plugin: &str, extra: Value) -> Value {
    let mut ipam = json!({"type": plugin});
    ipam.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    json!({ "ipam": ipam })
}

fn range(extra: Value) -> Value {
    let mut all = json!({"subnet": "10.77.0.0/24"});
    all.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    ipam("host-local", all)
}

/// What the plugin before a chained one has answered.
fn previous(extra: Value) -> Value {
    let mut all = json!({"prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
        "ips": [{"address": "10.77.0.9/24", "interface": 0}]}});
    all.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    all
}

fn ports(one: Value) -> Value {
    previous(json!({"runtimeConfig": {"portMappings": [one]}}))
}

/// Situations that are the same for a plugin of any kind.
fn of_every_plugin(plugin: &'static str) -> [Situation; 3] {
    [
        add(
            plugin,
            "a version that nobody knows",
            "",
            json!({"cniVersion": "9.9.9"}),
        ),
        of(
            plugin,
            "GC",
            "a version without this command",
            "GC",
            json!({"cniVersion": "1.0.0"}),
        ),
        add(
            plugin,
            "a section that is no object",
            "ipam",
            json!({"ipam": 5}),
        ),
    ]
}

fn situations() -> Vec<Situation> {
    let mut all: Vec<Situation> = OURS.into_iter().flat_map(of_every_plugin).collect();
    all.extend([
        add("bridge", "the network has no name", "name", json!({"name": ""})),
        add("bridge", "the version is a number", "cniVersion", json!({"cniVersion": 1})),
        add("bridge", "a number where a switch belongs", "isGateway", json!({"isGateway": 1})),
        add("bridge", "a word where a number belongs", "mtu", json!({"mtu": "big"})),
        add("bridge", "an MTU too small for any packet", "67", json!({"mtu": 67})),
        add("bridge", "a name too long for an interface", "a-bridge-of-16-by", json!({"bridge": "a-bridge-of-16-by"})),
        add("bridge", "the name of an interface of another kind", "other0", json!({"bridge": "other0"})),
        add("bridge", "hairpin and promiscuous mode together", "hairpin", json!({"hairpinMode": true, "promiscMode": true})),
        add("bridge", "a VLAN out of range", "4095", json!({"vlan": 4095})),
        add("bridge", "a MAC address that is none", "02:00", json!({"runtimeConfig": {"mac": "02:00"}})),
        add("bridge", "an unknown backend of ipMasq", "ebtables", json!({"ipMasq": true, "ipMasqBackend": "ebtables"})),
        add("bridge", "an IPAM plugin that is not installed", "no-such-ipam", ipam("no-such-ipam", json!({}))),
        of("bridge", "CHECK", "no result of the ADD", "prevResult", json!({})),
        add("bridge", "a damaged result", "prevResult", json!({"prevResult": {"cniVersion": "1.1.0", "ips": 5}})),
        add("host-local", "no ipam section", "ipam", json!({})),
        add("host-local", "no range", "", ipam("host-local", json!({}))),
        add("host-local", "a misspelt key", "", ipam("host-local", json!({"subnett": "10.77.0.0/24"}))),
        add("host-local", "a subnet that is none", "10.77.0", ipam("host-local", json!({"subnet": "10.77.0"}))),
        add("host-local", "a range start outside the subnet", "10.78.0.1", range(json!({"rangeStart": "10.78.0.1"}))),
        add("host-local", "a range that ends before it starts", "", range(json!({"rangeStart": "10.77.0.9", "rangeEnd": "10.77.0.5"}))),
        add("host-local", "no file of name servers", "/nonexistent", range(json!({"resolvConf": "/nonexistent"}))),
        add("host-local", "leases where none can be written", "/run/in-the-way", range(json!({"dataDir": "/run/in-the-way/leases"}))),
        of("host-local", "STATUS", "leases where none can be written", "/run/in-the-way", range(json!({"dataDir": "/run/in-the-way/leases"}))),
        of("host-local", "STATUS", "leases in a file system of the kernel's", "/proc", range(json!({"dataDir": "/proc/leases"}))),
        add("host-local", "all addresses are taken", "", range(json!({"dataDir": "/run/full", "rangeStart": "10.77.0.9", "rangeEnd": "10.77.0.9"}))),
        of("host-local", "STATUS", "all addresses are taken", "", range(json!({"dataDir": "/run/full", "rangeStart": "10.77.0.9", "rangeEnd": "10.77.0.9"}))),
        with_args("host-local", "an address outside the ranges", "IP=10.99.0.1", "10.99.0.1", range(json!({}))),
        with_args("host-local", "arguments without a value", "IP", "IP", range(json!({}))),
        of("host-local", "CHECK", "no lease", "c1", {
            let mut config = range(json!({"dataDir": "/run/empty"}));
            config["prevResult"] = previous(json!({}))["prevResult"].clone();
            config
        }),
        add("static", "no ipam section", "ipam", json!({})),
        add("static", "an address without its prefix length", "10.1.2.3", ipam("static", json!({"addresses": [{"address": "10.1.2.3"}]}))),
        with_args("static", "a gateway that is none", "IP=10.1.2.3/24;GATEWAY=x", "x", ipam("static", json!({}))),
        with_args("static", "arguments without a value", "IP", "IP", ipam("static", json!({}))),
        add("dhcp", "the daemon does not run", "/run/no.sock", ipam("dhcp", json!({"daemonSocketPath": "/run/no.sock"}))),
        of("dhcp", "STATUS", "the daemon does not run", "/run/no.sock", ipam("dhcp", json!({"daemonSocketPath": "/run/no.sock"}))),
        add("dhcp", "an option that nobody knows", "hostnam", ipam("dhcp", json!({"request": [{"option": "hostnam"}]}))),
        add("ptp", "an MTU too small for any packet", "67", json!({"mtu": 67})),
        add("ptp", "an IPAM plugin that is not installed", "no-such-ipam", ipam("no-such-ipam", json!({}))),
        add("macvlan", "an unknown mode", "brigde", json!({"master": "up0", "mode": "brigde"})),
        add("macvlan", "a master that is not there", "nowhere0", json!({"master": "nowhere0"})),
        add("ipvlan", "an unknown mode", "l4", json!({"master": "up0", "mode": "l4"})),
        add("ipvlan", "a master that is not there", "nowhere0", json!({"master": "nowhere0"})),
        add("vlan", "no master", "master", json!({"vlanId": 5})),
        add("vlan", "a VLAN out of range", "4095", json!({"master": "up0", "vlanId": 4095})),
        add("vlan", "a master that is not there", "nowhere0", json!({"master": "nowhere0", "vlanId": 5})),
        add("host-device", "no device", "device", json!({})),
        add("host-device", "a device that is not there", "nowhere0", json!({"device": "nowhere0"})),
        add("host-device", "a MAC address that is none", "02:00", json!({"hwaddr": "02:00"})),
        add("host-device", "a path that is none of the kernel's", "/etc", json!({"kernelpath": "/etc"})),
        add("host-device", "the loopback interface", "lo", json!({"device": "lo"})),
        add("tap", "a MAC address that is none", "02:00", json!({"mac": "02:00"})),
        add("tap", "a bridge that is not there", "nowhere0", json!({"bridge": "nowhere0"})),
        add("bandwidth", "not in a chain", "prevResult", json!({"ingressRate": 1000, "ingressBurst": 1000})),
        add("bandwidth", "a rate without a burst", "ingress", previous(json!({"ingressRate": 1000}))),
        add("bandwidth", "a rate too small to count", "7", previous(json!({"ingressRate": 7, "ingressBurst": 1000}))),
        add("firewall", "not in a chain", "prevResult", json!({})),
        add("firewall", "an unknown policy", "closed", previous(json!({"ingressPolicy": "closed"}))),
        add("portmap", "not in a chain", "chained", json!({"runtimeConfig": {"portMappings": [{"hostPort": 1, "containerPort": 1, "protocol": "tcp"}]}})),
        add("portmap", "an unknown backend", "ipfw", previous(json!({"backend": "ipfw"}))),
        add("portmap", "a port out of range", "70000", ports(json!({"hostPort": 70000, "containerPort": 80, "protocol": "tcp"}))),
        add("portmap", "no port of the container", "containerPort", ports(json!({"hostPort": 8080, "protocol": "tcp"}))),
        add("portmap", "an unknown protocol", "icmp", ports(json!({"hostPort": 8080, "containerPort": 80, "protocol": "icmp"}))),
        add("portmap", "a host address that is none", "10.0", ports(json!({"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": "10.0"}))),
        add("portmap", "a mark out of range", "32", previous(json!({"markMasqBit": 32}))),
        add("portmap", "a port that another container has", "8088", ports(json!({"hostPort": 8088, "containerPort": 80, "protocol": "tcp"}))),
        add("tuning", "not in a chain", "prevResult", json!({"sysctl": {"net.core.somaxconn": "5"}})),
        add("tuning", "a setting outside net", "kernel.hostname", previous(json!({"sysctl": {"kernel.hostname": "x"}}))),
        add("tuning", "a setting that the kernel has not", "net.no.such", previous(json!({"sysctl": {"net.no.such": "1"}}))),
        add("sbr", "not in a chain", "chained", json!({})),
        add("sbr", "a table out of range", "-1", previous(json!({"table": -1}))),
        add("vrf", "not in a chain", "chained", json!({"vrfname": "blue"})),
        add("vrf", "no name of the VRF", "vrfname", previous(json!({}))),
        add("tc-redirect-tap", "not in a chain", "prevResult", json!({})),
        with_args("tc-redirect-tap", "a user that is no number", "TC_REDIRECT_TAP_UID=root", "root", previous(json!({}))),
    ]);
    all
}

/// The answer to a call, which must be an error.
fn answer(lab: &Lab, situation: &Situation, attachment: &Attachment) -> PluginError {
    let Situation {
        plugin,
        verb,
        extra,
        args,
        ..
    } = situation;
    let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": plugin});
    config
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    let attachment = match *args {
        "" => attachment.clone(),
        args => attachment.clone().args(args),
    };
    let answer = lab.one(verb, &config, &attachment);
    // Shown in the table, and found fault with, like an error that says nothing.
    answer.error().unwrap_or_else(|| PluginError {
        code: 0,
        msg: format!("it worked: {}", answer.text()),
        details: String::new(),
    })
}

/// Calls that differ in the environment, not in the configuration.
fn environments(lab: &Lab, netns: &std::path::Path) -> Vec<(Situation, PluginError)> {
    let call = |what, names, attachment: Attachment| {
        let situation = add("bridge", what, names, json!({"bridge": "br1"}));
        let error = answer(lab, &situation, &attachment);
        (situation, error)
    };
    vec![
        call(
            "no network namespace at that path",
            "/run/netns/nowhere",
            Attachment::new("c1", "/run/netns/nowhere".as_ref()),
        ),
        call(
            "a file that is no network namespace",
            "/proc/self/status",
            Attachment::new("c1", "/proc/self/status".as_ref()),
        ),
        call(
            "the namespace of the host",
            "netns",
            Attachment::new("c1", "/proc/self/ns/net".as_ref()),
        ),
        call(
            "a container id with a slash",
            "",
            Attachment::new("a/b", netns),
        ),
        call(
            "a name too long for an interface",
            "",
            Attachment::new("c1", netns).ifname("a-name-of-16-byte"),
        ),
        call(
            "an interface name that is taken",
            "eth9",
            Attachment::new("c1", netns).ifname("eth9"),
        ),
    ]
}

/// Calls that are none of the protocol's.
fn malformed(lab: &Lab, attachment: &Attachment) -> Vec<(Situation, PluginError)> {
    let config = json!({"cniVersion": "1.1.0", "name": "net", "type": "bridge"}).to_string();
    let call = |verb, what, names, stdin: &str, without: &str| {
        let mut invocation = lab.ours.call("bridge", verb, attachment).unwrap();
        if !without.is_empty() {
            invocation = invocation.env(without, "");
        }
        let answer = invocation.stdin(stdin).run().unwrap();
        let error = answer
            .error()
            .unwrap_or_else(|| panic!("{}", answer.text()));
        (of("bridge", verb, what, names, json!({})), error)
    };
    vec![
        call("ADD", "no configuration", "config", "", ""),
        call(
            "ADD",
            "a configuration that is cut",
            "config",
            "{\"name\": \"net\"",
            "",
        ),
        call(
            "ADD",
            "no container id",
            "CNI_CONTAINERID",
            &config,
            "CNI_CONTAINERID",
        ),
        call("ADD", "no namespace", "CNI_NETNS", &config, "CNI_NETNS"),
        call(
            "ATTACH",
            "a command that nobody knows",
            "ATTACH",
            &config,
            "",
        ),
    ]
}

/// What a running container meets when the packet filter is flushed, its interface taken away, and it is added again.
fn changed(lab: &Lab) -> Vec<(Situation, PluginError)> {
    let netns = lab.container("c3");
    let attachment = Attachment::new("c3", netns.path());
    let call = |plugin: &'static str, verb, extra: Value| {
        let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": plugin});
        config
            .as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        lab.one(verb, &config, &attachment)
    };
    let ipam = json!({"type": "host-local", "dataDir": "/run/changed", "subnet": "10.78.0.0/24"});
    let bridge =
        json!({"bridge": "br3", "ipMasq": true, "ipMasqBackend": "nftables", "ipam": ipam});
    let added = call("bridge", "ADD", bridge.clone()).json().unwrap();
    let with = |mut extra: Value| {
        extra["prevResult"] = added.clone();
        extra
    };
    let all = [
        ("bridge", with(bridge)),
        ("firewall", with(json!({"backend": "nftables"}))),
        (
            "portmap",
            with(json!({"backend": "nftables",
            "runtimeConfig": {"portMappings": [{"hostPort": 8099, "containerPort": 80, "protocol": "tcp"}]}})),
        ),
    ];
    for (plugin, extra) in &all[1..] {
        fine(&call(plugin, "ADD", extra.clone()));
    }
    let mut met = Vec::new();
    let mut meet = |plugin, verb, what, names, extra: &Value| {
        let situation = of(plugin, verb, what, names, extra.clone());
        let error = answer(lab, &situation, &attachment);
        met.push((situation, error));
    };
    meet(
        "host-local",
        "ADD",
        "the container has a lease already",
        "c3",
        &json!({"ipam": ipam}),
    );
    nft("flush ruleset");
    for (plugin, extra) in &all {
        meet(plugin, "CHECK", "the packet filter was flushed", "", extra);
    }
    Rtnl::open(&netns).unwrap().delete_link("eth0").unwrap();
    meet(
        "bridge",
        "CHECK",
        "the interface was deleted",
        "eth0",
        &all[0].1,
    );
    for (plugin, extra) in all.iter().rev() {
        fine(&call(plugin, "DEL", extra.clone()));
    }
    met
}

/// Another container has the one address of a range, and a port.
fn another_has_an_address_and_a_port(lab: &Lab) -> Netns {
    let netns = lab.container("c2");
    let attachment = Attachment::new("c2", netns.path());
    let mut config =
        range(json!({"dataDir": "/run/full", "rangeStart": "10.77.0.9", "rangeEnd": "10.77.0.9"}));
    config["cniVersion"] = "1.1.0".into();
    config["name"] = "net".into();
    config["type"] = "bridge".into();
    let added = lab.added(&config, &attachment);
    let mut config = ports(json!({"hostPort": 8088, "containerPort": 80, "protocol": "tcp"}));
    config["cniVersion"] = "1.1.0".into();
    config["name"] = "net".into();
    config["type"] = "portmap".into();
    lab.added(&with_previous(&config, &added), &attachment);
    netns
}

sandboxed! {
    fn texts_of_errors_are_as_they_were(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        lab.rtnl().add_veth("other0", &netns, "eth9").unwrap();
        let _other = another_has_an_address_and_a_port(lab);
        fs::write("/run/in-the-way", "").unwrap();
        let before = lab.snapshot();
        let mut met: Vec<(Situation, PluginError)> = situations().into_iter()
            .map(|situation| { let error = answer(lab, &situation, &attachment); (situation, error) })
            .collect();
        met.extend(environments(lab, netns.path()));
        met.extend(malformed(lab, &attachment));
        // Nothing of what failed is left, but for empty places of leases and locks.
        let left = before.diff(&lab.snapshot()).to_string();
        assert!(!left.contains("link") && !left.contains("10.77.0.9"), "{left}");
        met.extend(changed(lab));
        let places = [(netns.path().to_str().unwrap(), "NETNS"), (super::support::plugins().to_str().unwrap(), "PLUGINS")]
            .map(|(place, word)| (place.to_owned(), word));
        let mut text = String::new();
        let mut faults = Vec::new();
        for (situation, error) in &met {
            let Situation { plugin, verb, what, names, .. } = situation;
            let plain = |text: &str| places.iter().fold(text.to_owned(), |text, (place, word)| text.replace(place, word));
            writeln!(text, "{plugin} {verb}: {what}\ncode {}\nmsg {}\ndetails {}\n", error.code, plain(&error.msg), plain(&error.details)).unwrap();
            if error.details.is_empty() || !error.msg.contains(names) || error.msg.contains('\n') {
                faults.push(format!("{plugin} {verb}, {what}: {error:?}"));
            }
        }
        assert!(faults.is_empty(), "no next step, or the object is not named:\n{}", faults.join("\n"));
        assert!(OURS.iter().all(|plugin| met.iter().any(|(one, _)| one.plugin == *plugin)) && met.len() >= 60);
        if std::env::var_os(WRITE).is_some() {
            fs::write(table(), &text).unwrap();
            return;
        }
        let expected = fs::read_to_string(table()).unwrap();
        for (is, was) in text.split("\n\n").zip(expected.split("\n\n")) {
            assert_eq!(is, was);
        }
        assert_eq!(text.lines().count(), expected.lines().count());
    }
}
