//! What users have reported or relied on, and no other test holds.

use std::fs;
use std::path::PathBuf;

use conformance::chain::{Attachment, Network};
use conformance::net::{HOST_V4, HOST_V6, OUTSIDE_V4, OUTSIDE_V6};
use conformance::probe::Transport;
use conformance::snapshot::Leavings;
use serde_json::{Value, json};

use super::support::{
    Lab, address_of, ask, fine, iptables, network, no_answer, one_of, refused, run, sandboxed,
    serve, tool,
};

const BACKENDS: [&str; 2] = ["nftables", "iptables"];

fn dual() -> Value {
    json!({"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}], [{"subnet": "fd00:77::/64"}]],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]})
}

fn bridge(extra: Value) -> Value {
    let mut config = json!({"cniVersion": "1.1.0", "name": "reports", "type": "bridge", "bridge": "br0", "isGateway": true,
        "ipam": dual()});
    let extra = extra.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(extra);
    config
}

fn portmap(backend: &str, port: u16, protocol: &str) -> Value {
    json!({"cniVersion": "1.1.0", "name": "reports", "type": "portmap", "backend": backend,
        "runtimeConfig": {"portMappings": [{"hostPort": port, "containerPort": 53, "protocol": protocol}]},
        "prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.77.0.2/24", "interface": 0}]}})
}

fn whole_list(version: &str) -> Network {
    network(
        &json!({"cniVersion": version, "name": "reports", "plugins": [
            bridge(json!({"ipMasq": true})), {"type": "firewall"}, {"type": "portmap", "capabilities": {"portMappings": true}},
        ]}),
    )
}

fn host_local(extra: Value) -> Value {
    let mut ipam = json!({"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]]});
    let extra = extra.as_object().unwrap().clone();
    ipam.as_object_mut().unwrap().extend(extra);
    json!({"cniVersion": "1.1.0", "name": "reports", "type": "host-local", "ipam": ipam})
}

fn lease(address: &str) -> PathBuf {
    PathBuf::from("/var/lib/cni/networks/reports").join(address)
}

/// The attachment as a runtime knows it that has lost everything but its name.
fn forgotten(attachment: &Attachment) -> Attachment {
    Attachment {
        netns: PathBuf::new(),
        result: None,
        ..attachment.clone()
    }
}

#[track_caller]
fn clean(lab: &Lab, fresh: &conformance::snapshot::Snapshot, owners: &[String]) {
    let beyond = fresh.diff(&lab.snapshot()).beyond(&Leavings {
        bridge: "br0",
        owners,
    });
    assert!(beyond.is_empty(), "{beyond:#?}");
}

sandboxed! {
    fn flows_of_other_ports_and_protocols_are_not_forgotten(lab) {
        let conntrack = tool("conntrack", "conntrack");
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let flow = |protocol: &str, port: &str| {
            let mut arguments = vec!["-I", "-p", protocol, "-s", "203.0.113.5", "-d", "192.0.2.1", "--sport", "1000", "--dport", port, "-t", "300"];
            if protocol == "tcp" {
                arguments.extend(["--state", "ESTABLISHED"]);
            }
            run(&conntrack, &arguments);
        };
        for backend in BACKENDS {
            for (protocol, port) in [("udp", "9999"), ("udp", "5353"), ("tcp", "5353")] {
                flow(protocol, port);
            }
            let config = portmap(backend, 5353, "udp");
            fine(&lab.one("ADD", &config, &attachment));
            let left = |protocol: &str, port: &str| {
                let listed = run(&conntrack, &["-L", "-p", protocol]);
                listed.lines().any(|line| line.contains(&format!("dport={port} ")))
            };
            assert!(left("udp", "9999") && left("tcp", "5353"), "{backend}");
            assert!(!left("udp", "5353"), "{backend}: the flow would go on to the former owner");
            fine(&lab.one("DEL", &config, &attachment));
            assert!(left("udp", "9999") && left("tcp", "5353"), "{backend}");
            run(&conntrack, &["-F"]);
        }
    }

    fn a_bridge_with_a_smaller_mtu_is_told_of(lab) {
        let (one, two) = (lab.container("c1"), lab.container("c2"));
        fine(&lab.one("ADD", &bridge(json!({"mtu": 1400})), &Attachment::new("c1", one.path())));
        let answer = lab.one("ADD", &bridge(json!({"mtu": 8000})), &Attachment::new("c2", two.path()));
        fine(&answer);
        let said = String::from_utf8_lossy(&answer.stderr).into_owned();
        assert!(said.contains("br0") && said.contains("1400") && said.contains("8000"), "{said}");
        let again = lab.container("c3");
        let answer = lab.one("ADD", &bridge(json!({"mtu": 1300})), &Attachment::new("c3", again.path()));
        fine(&answer);
        assert!(answer.stderr.is_empty(), "{}", answer.text());
    }

    fn a_guard_of_the_mac_address_goes_without_the_namespace(lab) {
        let fresh = lab.snapshot();
        let netns = lab.container("c1");
        let config = bridge(json!({"macspoofchk": true}));
        let attachment = Attachment::new("container-1", netns.path());
        fine(&lab.one("ADD", &config, &attachment));
        assert!(!lab.snapshot().mentioning("container-1").is_empty());
        drop(netns);
        fine(&lab.one("DEL", &config, &forgotten(&attachment)));
        clean(lab, &fresh, &["container-1".into()]);
    }

    fn masquerading_of_both_families_comes_and_goes_with_each_backend(lab) {
        let fresh = lab.snapshot();
        for (number, backend) in [Value::Null, json!("nftables"), json!("iptables")].into_iter().enumerate() {
            let id = format!("container-{number}");
            let netns = lab.container(&format!("c{number}"));
            let config = bridge(json!({"ipMasq": true, "ipMasqBackend": backend}));
            let attachment = Attachment::new(&id, netns.path());
            let answer = lab.one("ADD", &config, &attachment);
            fine(&answer);
            let _servers = [OUTSIDE_V4, OUTSIDE_V6].map(|address| serve(lab.host.outside(), Transport::Tcp, address, 7000, "outside"));
            assert_eq!(ask(&netns, Transport::Tcp, OUTSIDE_V4, 7000).peer, HOST_V4, "{backend}");
            assert_eq!(ask(&netns, Transport::Tcp, OUTSIDE_V6, 7000).peer, HOST_V6, "{backend}");
            // With nothing but the names, both rules go.
            let bare = json!({"cniVersion": "1.1.0", "name": "reports", "type": "bridge", "bridge": "br0", "ipam": config["ipam"]});
            fine(&lab.one("DEL", &bare, &forgotten(&attachment)));
            let result = answer.json().unwrap();
            let mut owners = vec![id];
            for v4 in [true, false] {
                owners.extend(conformance::facts::spellings(address_of(&result, v4)));
            }
            clean(lab, &fresh, &owners);
        }
    }

    fn an_add_over_a_live_one_is_refused_and_changes_nothing(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = host_local(json!({}));
        fine(&lab.one("ADD", &config, &attachment));
        let before = lab.snapshot();
        let text = refused(&lab.one("ADD", &config, &attachment), 999);
        assert!(text.contains("10.77.0.2") && text.contains("c1"), "{text}");
        assert!(before.diff(&lab.snapshot()).is_empty());
        // Another interface of the same container is another attachment.
        fine(&lab.one("ADD", &config, &attachment.clone().ifname("eth1")));
        fine(&lab.one("DEL", &config, &attachment));
        assert!(!lease("10.77.0.2").exists() && lease("10.77.0.3").exists());
    }

    fn blanks_around_the_owner_of_a_lease_do_not_count(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = host_local(json!({}));
        fs::create_dir_all(lease("")).unwrap();
        fs::write(lease("10.77.0.9"), " \tc1\r\neth0 \n").unwrap();
        fine(&lab.one("DEL", &config, &attachment));
        assert!(!lease("10.77.0.9").exists());
    }

    fn resolv_conf_is_read_with_all_its_keywords(lab) {
        let netns = lab.container("c1");
        let text = "# a comment\nnameserver 192.0.2.53\n; another\nnameserver 2001:db8::53\n\ndomain example.test\n\
            search one.test two.test\nsortlist 10.0.0.0\noptions ndots:4\noptions edns0 rotate\n";
        fs::write("/run/resolv.conf", text).unwrap();
        let answer = lab.one("ADD", &host_local(json!({"resolvConf": "/run/resolv.conf"})), &Attachment::new("c1", netns.path()));
        fine(&answer);
        let dns = &answer.json().unwrap()["dns"];
        assert_eq!(dns["nameservers"], json!(["192.0.2.53", "2001:db8::53"]));
        assert_eq!(dns["domain"], "example.test");
        assert_eq!(dns["search"], json!(["one.test", "two.test"]));
        assert_eq!(dns["options"], json!(["ndots:4", "edns0", "rotate"]));
    }

    fn the_result_of_a_list_says_where_everything_is(lab) {
        for (number, version) in ["0.3.1", "0.4.0", "1.0.0", "1.1.0"].into_iter().enumerate() {
            let id = format!("c{number}");
            let netns = lab.container(&id);
            let mut attachment = Attachment::new(&id, netns.path())
                .capability("portMappings", json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]));
            let list = whole_list(version);
            let result = lab.add(&list, &mut attachment);
            assert_eq!(result["cniVersion"], version);
            let interfaces = result["interfaces"].as_array().unwrap();
            assert_eq!(interfaces.len(), 3, "{result}");
            assert_eq!(interfaces[0]["name"], "br0");
            assert!(interfaces[..2].iter().all(|one| one.get("sandbox").is_none()), "{result}");
            assert_eq!(interfaces[2]["sandbox"], netns.path().to_str().unwrap());
            assert!(interfaces.iter().all(|one| one["mac"].as_str().is_some_and(|mac| mac.len() == 17)), "{result}");
            let ips = result["ips"].as_array().unwrap();
            assert!(ips.len() == 2 && ips.iter().all(|ip| ip["interface"] == 2 && ip["gateway"].is_string()), "{result}");
            lab.del(&list, &attachment);
        }
    }

    fn many_deletes_at_once_leave_the_rules_of_others(lab) {
        tool("iptables", "iptables");
        iptables("iptables", "-t nat -A PREROUTING -d 203.0.113.7 -j ACCEPT");
        let netns = lab.container("c1");
        for backend in BACKENDS {
            let config = portmap(backend, 8080, "tcp");
            let attachment = Attachment::new("c1", netns.path());
            fine(&lab.one("ADD", &config, &attachment));
            std::thread::scope(|scope| {
                for _ in 0..10 {
                    scope.spawn(|| fine(&one_of(&lab.ours, "DEL", &config, &attachment)));
                }
            });
            assert!(lab.snapshot().mentioning("0a4d0002").is_empty(), "{backend}");
            fine(&lab.one("ADD", &config, &attachment));
            fine(&lab.one("CHECK", &config, &attachment));
            fine(&lab.one("DEL", &config, &attachment));
        }
        assert!(iptables("iptables", "-t nat -S PREROUTING").contains("203.0.113.7"));
    }

    fn an_address_that_names_no_interface_is_the_containers(lab) {
        let list = network(&json!({"cniVersion": "1.1.0", "name": "reports", "plugins": [bridge(json!({"ipMasq": true}))]}));
        for backend in BACKENDS {
            let id = format!("c-{backend}");
            let netns = lab.container(&id);
            let mut attachment = Attachment::new(&id, netns.path());
            let mut result = lab.add(&list, &mut attachment);
            for ip in result["ips"].as_array_mut().unwrap() {
                ip.as_object_mut().unwrap().remove("interface");
            }
            let address = address_of(&result, true);
            let mut config = portmap(backend, 8080, "tcp");
            config["runtimeConfig"]["portMappings"][0]["containerPort"] = json!(80);
            config["prevResult"] = result;
            let firewall = json!({"cniVersion": "1.1.0", "name": "reports", "type": "firewall", "backend": backend,
                "prevResult": config["prevResult"]});
            fine(&lab.one("ADD", &firewall, &attachment));
            fine(&lab.one("ADD", &config, &attachment));
            let _server = serve(&netns, Transport::Tcp, address, 80, "web");
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).server, "web");
            for config in [&config, &firewall] {
                fine(&lab.one("CHECK", config, &attachment));
                fine(&lab.one("DEL", config, &attachment));
            }
            no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
            lab.del(&list, &attachment);
        }
    }
}
