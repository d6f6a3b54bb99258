//! `cnitool` at a shell, with the real plugins.

use std::fs;
use std::process::{Command, Output};

use conformance::net::{HOST_V4, Netns, Rtnl};
use conformance::probe::Transport;
use serde_json::{Value, json};

use super::support::{Lab, address_of, ask, nft, plugins, sandboxed, serve};

fn cnitool(verb: &[&str], ports: &Value) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cnitool"))
        .args(verb)
        .env("CNI_PATH", plugins())
        .env("CAP_ARGS", json!({"portMappings": ports}).to_string())
        .output()
        .unwrap()
}

/// What the tool printed; it must have worked.
#[track_caller]
fn worked(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{text} {}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Puts a list where an operator would.
fn install(version: &str) {
    fs::create_dir_all("/etc/cni/net.d").unwrap();
    let list = json!({"cniVersion": version, "name": "by-hand", "plugins": [
        {"type": "bridge", "bridge": "br0", "isDefaultGateway": true, "ipMasq": true,
         "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}},
        {"type": "firewall"},
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ]});
    fs::write("/etc/cni/net.d/10-by-hand.conflist", list.to_string()).unwrap();
}

fn remembered(_lab: &Lab) -> usize {
    fs::read_dir("/var/lib/cni/results").map_or(0, Iterator::count)
}

sandboxed! {
    fn a_container_by_hand(lab) {
        let ports = json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]);
        for version in ["0.4.0", "1.1.0"] {
            install(version);
            let netns = lab.container(&format!("c-{version}"));
            let path = netns.path().to_str().unwrap();
            let printed = worked(&cnitool(&["add", "by-hand", path], &ports));
            let result: Value = serde_json::from_str(&printed).unwrap();
            let _server = serve(&netns, Transport::Tcp, address_of(&result, true), 80, "web");
            ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
            assert_eq!(remembered(lab), 1, "runtimes find the result where they look for it");
            worked(&cnitool(&["check", "by-hand", path], &ports));
            if version == "1.1.0" {
                worked(&cnitool(&["status", "by-hand"], &ports));
            }
            worked(&cnitool(&["del", "by-hand", path], &ports));
            worked(&cnitool(&["del", "by-hand", path], &ports));
            assert_eq!(remembered(lab), 0);
            assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
        }
    }

    fn a_failure_is_explained(lab) {
        install("1.0.0");
        let netns = lab.container("c1");
        let output = cnitool(&["add", "no-such-network", netns.path().to_str().unwrap()], &json!([]));
        assert!(!output.status.success());
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(said.contains("no-such-network"), "{said}");
        let ports = json!([{"hostPort": 0, "containerPort": 80, "protocol": "tcp"}]);
        let output = cnitool(&["add", "by-hand", netns.path().to_str().unwrap()], &ports);
        assert!(!output.status.success());
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err(), "a failed add is taken back");
        assert_eq!(remembered(lab), 0);
    }

    fn a_name_with_a_slip_is_understood(lab) {
        install("1.0.0");
        let said = |verb: &[&str]| String::from_utf8_lossy(&cnitool(verb, &json!([])).stderr).into_owned();
        let netns = lab.container("c1");
        let path = netns.path().to_str().unwrap();
        let answer = said(&["add", "by-hnad", path]);
        assert!(answer.contains("did you mean \"by-hand\"?"), "{answer}");
        let answer = said(&["status", "by-hand"]);
        assert!(answer.contains("no plugin was asked") && answer.contains("1.1.0"), "{answer}");
        let file = "/etc/cni/net.d/10-by-hand.conflist";
        let list = fs::read_to_string(file).unwrap();
        fs::write(file, list.replace("\"bridge\",", "\"brigde\",").replace("\"type\":\"bridge\"", "\"type\":\"brigde\"")).unwrap();
        let answer = said(&["add", "by-hand", path]);
        assert!(answer.contains("did you mean \"bridge\"?"), "{answer}");
        fs::write(file, list.replace("subnet", "subnett")).unwrap();
        let answer = said(&["add", "by-hand", path]);
        assert!(answer.contains("the key \"ipam.subnett\" is unknown, was \"ipam.subnet\" meant?"), "{answer}");
        install("1.1.0");
        assert_eq!(said(&["status", "by-hand"]), "");
    }

    fn what_an_attachment_has_is_listed_and_what_is_lost_is_named(lab) {
        let ports = json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]);
        for backend in ["nftables", "iptables"] {
            fs::create_dir_all("/etc/cni/net.d").unwrap();
            let list = json!({"cniVersion": "1.1.0", "name": "by-hand", "plugins": [
                {"type": "bridge", "bridge": "br0", "isDefaultGateway": true, "ipMasq": true, "ipMasqBackend": backend,
                 "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}},
                {"type": "firewall", "backend": backend},
                {"type": "portmap", "backend": backend, "capabilities": {"portMappings": true}},
                {"type": "tuning", "mtu": 1400},
                {"type": "bandwidth", "egressRate": 8_000_000, "egressBurst": 80_000},
            ]});
            fs::write("/etc/cni/net.d/10-by-hand.conflist", list.to_string()).unwrap();
            let netns = lab.container(&format!("green-{backend}"));
            worked(&cnitool(&["add", "by-hand", netns.path().to_str().unwrap()], &ports));

            let listed = worked(&cnitool(&["list"], &json!([])));
            assert!(listed.contains("8080->80/tcp") && listed.contains("live"), "{listed}");
            let listed: Value = serde_json::from_str(&worked(&cnitool(&["list", "--json"], &json!([])))).unwrap();
            let address = listed[0]["addresses"][0].as_str().unwrap().split('/').next().unwrap().to_owned();
            assert_eq!(listed[0]["portMappings"], ports);

            let (code, whole) = inspect(&netns);
            assert_eq!(code, Some(0), "{whole:#}");
            for kind in ["namespace", "lease", "link", "interface", "address", "rules", "masquerade", "admitted",
                "port", "backup", "ifb"] {
                assert!(states(&whole, kind).iter().all(|state| state == "present"), "{backend} {kind}: {whole:#}");
                assert!(!states(&whole, kind).is_empty(), "{backend} {kind}: {whole:#}");
            }
            assert_eq!(whole[0]["check"]["passed"], true, "{whole:#}");

            fs::remove_file(format!("/var/lib/cni/networks/by-hand/{address}")).unwrap();
            fs::remove_dir_all("/run/cni/tuning").unwrap();
            nft("flush ruleset");
            let ifb = whole[0]["resources"].as_array().unwrap().iter().find(|one| one["kind"] == "ifb").unwrap();
            lab.rtnl().delete_link(ifb["what"].as_str().unwrap()).unwrap();
            Rtnl::open(&netns).unwrap().flush_addresses("eth0").unwrap();
            let (code, broken) = inspect(&netns);
            assert_eq!(code, Some(3), "{broken:#}");
            for kind in ["lease", "address", "masquerade", "admitted", "port", "backup", "ifb"] {
                assert_eq!(states(&broken, kind), ["missing"], "{backend} {kind}: {broken:#}");
            }
            assert_eq!(states(&broken, "interface"), ["present"]);
            assert_eq!(broken[0]["check"]["passed"], false);
            worked(&cnitool(&["del", "by-hand", netns.path().to_str().unwrap()], &ports));
            let gone = cnitool(&["inspect", &format!("green-{backend}")], &json!([]));
            assert_eq!(gone.status.code(), Some(1));
        }
    }
}

/// What inspect says of the attachments in a namespace that is known by its name.
fn inspect(netns: &Netns) -> (Option<i32>, Value) {
    let name = netns.path().file_name().unwrap().to_str().unwrap();
    let output = cnitool(&["inspect", name, "--json"], &json!([]));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!(
            "{error}: {text} {}",
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code(), report)
}

fn states(report: &Value, kind: &str) -> Vec<String> {
    let resources = report[0]["resources"].as_array().unwrap().iter();
    resources
        .filter(|one| one["kind"] == kind)
        .map(|one| one["state"].as_str().unwrap().to_owned())
        .collect()
}
