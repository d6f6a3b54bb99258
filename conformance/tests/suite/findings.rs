//! Faults that were found by attacking the plugins, each of which must stay mended.

use conformance::chain::{Attachment, Network};
use conformance::facts::interfaces;
use conformance::snapshot::Leavings;
use serde_json::{Value, json};

use super::support::{fine, hide_tools, ip, iptables, network, nft, refused, sandboxed, tool};

fn bridge(extra: Value) -> Value {
    let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": "bridge", "bridge": "br0",
        "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}});
    merge(&mut config, extra);
    config
}

fn firewall(netns: &std::path::Path, extra: Value) -> Value {
    let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": "firewall", "prevResult": {
        "cniVersion": "1.1.0",
        "interfaces": [{"name": "br0"}, {"name": "veth0"}, {"name": "eth0", "sandbox": netns}],
        "ips": [{"address": "10.77.0.2/24", "interface": 2}]}});
    merge(&mut config, extra);
    config
}

fn merge(config: &mut Value, extra: Value) {
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
}

sandboxed! {
    fn a_policy_of_drop_that_comes_later_is_noticed_and_mended(lab) {
        tool("iptables", "iptables");
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = firewall(netns.path(), json!({}));
        fine(&lab.one("ADD", &config, &attachment));
        fine(&lab.one("CHECK", &config, &attachment));
        iptables("iptables", "-P FORWARD DROP");
        let answer = lab.one("CHECK", &config, &attachment);
        assert!(answer.error().is_some(), "CHECK saw nothing");
        fine(&lab.one("REAPPLY", &config, &attachment));
        fine(&lab.one("CHECK", &config, &attachment));
        assert!(iptables("iptables", "-S CNI-FORWARD").contains("-s 10.77.0.2/32 -j ACCEPT"));
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn a_policy_of_drop_without_the_tool_is_an_error(lab) {
        tool("iptables", "iptables");
        iptables("iptables", "-P FORWARD DROP");
        super::support::plugins();
        hide_tools(&["iptables", "ip6tables"]);
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = firewall(netns.path(), json!({}));
        assert!(refused(&lab.one("STATUS", &config, &attachment), 50).contains("install the package iptables"));
        assert!(lab.one("ADD", &config, &attachment).error().is_some());
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn check_of_one_family_asks_for_no_other(lab) {
        tool("iptables", "iptables");
        iptables("iptables", "-P FORWARD DROP");
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for policy in ["same-bridge", "isolated"] {
            let config = firewall(netns.path(), json!({"ingressPolicy": policy}));
            fine(&lab.one("ADD", &config, &attachment));
            fine(&lab.one("CHECK", &config, &attachment));
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn a_gateway_of_the_wrong_family_is_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let mut config = bridge(json!({}));
        config["ipam"]["routes"] = json!([{"dst": "10.9.0.0/16", "gw": "fd77::1"}]);
        let text = refused(&lab.one("ADD", &config, &attachment), 7);
        assert!(text.contains("not of the same IP family"), "{text}");
    }

    fn a_container_id_of_any_length_can_be_deleted(lab) {
        let netns = lab.container("c1");
        for length in [234, 255, 300, 1000] {
            let id = "x".repeat(length);
            let attachment = Attachment::new(&id, netns.path());
            let config = bridge(json!({}));
            let before = lab.snapshot();
            fine(&lab.one("ADD", &config, &attachment));
            fine(&lab.one("DEL", &config, &attachment));
            let left = before.diff(&lab.snapshot()).to_string();
            assert!(!left.contains(&id) && !left.contains("veth"), "{left}");
        }
    }

    fn an_address_requested_twice_is_requested_once(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path()).args("IP=10.77.0.9");
        let config = bridge(json!({"args": {"cni": {"ips": ["10.77.0.9/24"]}},
            "runtimeConfig": {"ips": ["10.77.0.9"]}}));
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        assert_eq!(answer.json().unwrap()["ips"][0]["address"], "10.77.0.9/24");
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn an_mtu_below_every_packet_is_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = bridge(json!({"mtu": 67}));
        for verb in ["STATUS", "ADD"] {
            assert!(refused(&lab.one(verb, &config, &attachment), 7).contains("mtu 67"));
        }
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn a_pipe_in_place_of_the_lock_holds_nobody_up(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let directory = std::path::Path::new("/var/lib/cni/networks/net");
        std::fs::create_dir_all(directory).unwrap();
        nix::unistd::mkfifo(&directory.join("lock"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let config = bridge(json!({}));
        let started = std::time::Instant::now();
        for verb in ["ADD", "DEL"] {
            let _ = lab.one(verb, &config, &attachment);
        }
        assert!(started.elapsed().as_secs() < 20);
    }

    fn an_emptied_set_of_records_is_noticed_and_del_removes_all_the_same(lab) {
        let list = published(json!({}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("container-1", netns.path())
            .capability("portMappings", json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]));
        let fresh = lab.snapshot();
        for with_result in [true, false] {
            let before = attachment.clone();
            lab.add(&list, &mut attachment);
            lab.check(&list, &attachment);
            nft("flush set inet ferrule owners");
            lab.ours.check(&list, &attachment).expect_err("the records are lost");
            lab.del(&list, if with_result { &attachment } else { &before });
            let left = fresh.diff(&lab.snapshot()).beyond(&Leavings { bridge: "br0", owners: &["container-1".into()] });
            assert!(left.is_empty(), "{left:#?}");
            attachment = before;
        }
    }

    fn hairpin_mode_that_somebody_switches_off_is_noticed_and_mended(lab) {
        let list = published(json!({}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("container-1", netns.path())
            .capability("portMappings", json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]));
        let result = lab.add(&list, &mut attachment);
        let port = interfaces(&result).into_iter().nth(1).unwrap().name;
        let hairpin = |on: bool| lab.rtnl().link(&port).unwrap().facts.port_has(&format!("HairpinMode({on})"));
        assert!(hairpin(true));
        ip(lab.host.netns(), &format!("link set dev {port} type bridge_slave hairpin off"));
        assert!(hairpin(false));
        let error = lab.ours.check(&list, &attachment).expect_err("the container does not reach itself").to_string();
        assert!(error.contains("hairpin mode") && error.contains(&port), "{error}");
        let mut portmap = list.plugins[1].clone();
        for (key, value) in [("cniVersion", json!("1.1.0")), ("name", json!("net")), ("prevResult", result.clone()),
            ("runtimeConfig", json!({"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}))] {
            portmap[key] = value;
        }
        fine(&lab.one("REAPPLY", &portmap, &attachment));
        assert!(hairpin(true));
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
    }
}

fn published(extra: Value) -> Network {
    network(&json!({"cniVersion": "1.1.0", "name": "net", "plugins": [
        bridge(extra), {"type": "portmap", "capabilities": {"portMappings": true}}]}))
}
