//! firewall: who may talk to whom, in both packet filters.

use std::net::IpAddr;

use conformance::chain::{Attachment, Network};
use conformance::net::{HOST_V4, HOST_V6, Netns, OUTSIDE_V4};
use conformance::probe::{Server, Transport};
use serde_json::{Value, json};

use super::support::{
    Lab, address_of, ask, fine, iptables, network, nft, no_answer, sandboxed, serve, tool,
};

fn list(name: &str, subnet: &str, firewall: Value) -> Network {
    let mut plugin = json!({"type": "firewall"});
    plugin
        .as_object_mut()
        .unwrap()
        .extend(firewall.as_object().unwrap().clone());
    network(&json!({"cniVersion": "1.0.0", "name": name, "plugins": [
        {"type": "bridge", "bridge": name, "isGateway": true, "ipMasq": true, "ipam": {"type": "host-local",
            "ranges": [[{"subnet": format!("10.{subnet}.0.0/24")}], [{"subnet": format!("fd00:{subnet}::/64")}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
        plugin,
        {"type": "portmap", "capabilities": {"portMappings": true}},
    ]}))
}

struct Container {
    netns: Netns,
    attachment: Attachment,
    v4: IpAddr,
    _servers: [Server; 2],
}

impl Container {
    fn add(lab: &Lab, list: &Network, name: &str) -> Self {
        Self::publishing(lab, list, name, json!([]))
    }

    fn publishing(lab: &Lab, list: &Network, name: &str, ports: Value) -> Self {
        let netns = lab.container(name);
        let mut attachment =
            Attachment::new(&format!("id-{name}"), netns.path()).capability("portMappings", ports);
        let result = lab.add(list, &mut attachment);
        let (v4, v6) = (address_of(&result, true), address_of(&result, false));
        let servers = [v4, v6].map(|address| serve(&netns, Transport::Tcp, address, 80, name));
        Self {
            netns,
            attachment,
            v4,
            _servers: servers,
        }
    }
}

fn web() -> Value {
    json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}])
}

/// Both families of the iptables tool with the same arguments.
fn both_iptables(arguments: &str) {
    iptables("iptables", arguments);
    iptables("ip6tables", arguments);
}

/// An address that the container and the outside agree on, with a server there.
fn outside_server(lab: &Lab) -> Server {
    serve(
        lab.host.outside(),
        Transport::Tcp,
        OUTSIDE_V4,
        7000,
        "outside",
    )
}

/// firewall alone, behind a result that some main plugin could have given.
fn direct(extra: Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.0.0", "name": "fw-net", "type": "firewall", "backend": "iptables",
        "prevResult": {
            "cniVersion": "1.0.0",
            "interfaces": [{"name": "br0"}, {"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.1.0.2/24", "interface": 1}, {"address": "fd00:1::2/64", "interface": 1}],
        },
    });
    config
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    config
}

sandboxed! {
    fn iptables_rules_are_those_of_the_reference_set(lab) {
        tool("iptables", "iptables");
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        fine(&lab.one("ADD", &direct(json!({})), &attachment));
        for (family, address) in [("iptables", "10.1.0.2/32"), ("ip6tables", "fd00:1::2/128")] {
            let forward = iptables(family, "-S FORWARD");
            assert!(forward.contains("-A FORWARD -m comment --comment \"CNI firewall plugin rules\" -j CNI-FORWARD"), "{forward}");
            let chain = iptables(family, "-S CNI-FORWARD");
            for rule in [
                "-A CNI-FORWARD -m comment --comment \"CNI firewall plugin admin overrides\" -j CNI-ADMIN".to_owned(),
                format!("-A CNI-FORWARD -d {address} -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT"),
                format!("-A CNI-FORWARD -s {address} -j ACCEPT"),
            ] {
                assert!(chain.contains(&rule), "{rule} in {chain}");
            }
            iptables(family, "-S CNI-ADMIN");
        }
        fine(&lab.one("CHECK", &direct(json!({})), &attachment));
        fine(&lab.one("DEL", &direct(json!({})), &attachment));
        for (family, address) in [("iptables", "10.1.0.2"), ("ip6tables", "fd00:1::2")] {
            let chain = iptables(family, "-S CNI-FORWARD");
            assert!(!chain.contains(address), "{chain}");
        }
        fine(&lab.one("DEL", &direct(json!({})), &attachment));
    }

    fn an_admin_chain_of_another_name_is_used(lab) {
        tool("iptables", "iptables");
        iptables("iptables", "-N NOMAD-ADMIN");
        iptables("iptables", "-A NOMAD-ADMIN -s 203.0.113.7 -j DROP");
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = direct(json!({"iptablesAdminChainName": "NOMAD-ADMIN"}));
        fine(&lab.one("ADD", &config, &attachment));
        let chain = iptables("iptables", "-S CNI-FORWARD");
        assert!(chain.contains("-j NOMAD-ADMIN"), "{chain}");
        let admin = iptables("iptables", "-S NOMAD-ADMIN");
        assert!(admin.contains("203.0.113.7"), "the administrator's rules stay: {admin}");
        fine(&lab.one("DEL", &config, &attachment));
        assert!(iptables("iptables", "-S NOMAD-ADMIN").contains("203.0.113.7"));
    }

    fn the_result_passes_through(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = direct(json!({"backend": "nftables"}));
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        let result = answer.json().unwrap();
        for key in ["interfaces", "ips"] {
            assert_eq!(result[key], config["prevResult"][key]);
        }
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn a_published_port_lives_under_a_policy_of_drop(lab) {
        tool("iptables", "iptables");
        for (backend, subnet) in [("iptables", "80"), ("auto", "86")] {
            both_iptables("-P FORWARD DROP");
            let list = list(&format!("fw-{backend}"), subnet, json!({"backend": backend}));
            let one = Container::publishing(lab, &list, &format!("c-{backend}"), web());
            let _outside = outside_server(lab);
            assert_eq!(ask(&one.netns, Transport::Tcp, OUTSIDE_V4, 7000).peer, HOST_V4);
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).peer, OUTSIDE_V4);
            ask(lab.host.outside(), Transport::Tcp, HOST_V6, 8080);
            // Only what was published: the container's own address is no door.
            let outside = conformance::net::Rtnl::open(lab.host.outside()).unwrap();
            let network = format!("10.{subnet}.0.0/24").parse().unwrap();
            outside.add_route(network, HOST_V4).unwrap();
            no_answer(lab.host.outside(), Transport::Tcp, one.v4, 80);
            outside.delete_routes_to(network).unwrap();
            lab.check(&list, &one.attachment);
            lab.del(&list, &one.attachment);
            no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
        }
    }

    fn nftables_alone_opens_what_is_needed(lab) {
        tool("nft", "nftables");
        let list = list("fw-nft", "81", json!({"backend": "nftables"}));
        let one = Container::publishing(lab, &list, "c1", web());
        let _outside = outside_server(lab);
        ask(&one.netns, Transport::Tcp, OUTSIDE_V4, 7000);
        ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
        lab.check(&list, &one.attachment);
        nft("flush ruleset");
        lab.ours.check(&list, &one.attachment).expect_err("the rules are gone");
        lab.del(&list, &one.attachment);
    }

    fn check_changes_nothing_and_notices_a_loss(lab) {
        tool("iptables", "iptables");
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = direct(json!({}));
        let before = lab.snapshot();
        let answer = lab.one("CHECK", &config, &attachment);
        assert!(answer.error().is_some(), "{}", answer.text());
        let diff = before.diff(&lab.snapshot());
        assert!(diff.is_empty(), "CHECK wrote:\n{diff}");
        fine(&lab.one("ADD", &config, &attachment));
        fine(&lab.one("CHECK", &config, &attachment));
        iptables("iptables", "-D CNI-FORWARD -s 10.1.0.2/32 -j ACCEPT");
        let answer = lab.one("CHECK", &config, &attachment);
        assert!(answer.error().is_some(), "{}", answer.text());
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn an_unknown_policy_is_refused_before_any_change(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let before = lab.snapshot();
        let answer = lab.one("ADD", &direct(json!({"ingressPolicy": "nonsense"})), &attachment);
        let error = answer.error().unwrap_or_else(|| panic!("{}", answer.text()));
        assert!(format!("{} {}", error.msg, error.details).contains("nonsense"), "{error:?}");
        assert!(before.diff(&lab.snapshot()).is_empty());
        fine(&lab.one("DEL", &direct(json!({"ingressPolicy": "nonsense"})), &attachment));
    }

    fn same_bridge_keeps_networks_apart(lab) {
        for backend in ["iptables", "nftables"] {
            let policy = json!({"backend": backend, "ingressPolicy": "same-bridge"});
            let (red, blue) = (list("red", "82", policy.clone()), list("blue", "83", policy));
            let one = Container::add(lab, &red, &format!("{backend}-red-1"));
            let two = Container::add(lab, &red, &format!("{backend}-red-2"));
            let other = Container::add(lab, &blue, &format!("{backend}-blue"));
            let _outside = outside_server(lab);
            ask(&one.netns, Transport::Tcp, two.v4, 80);
            no_answer(&one.netns, Transport::Tcp, other.v4, 80);
            no_answer(&other.netns, Transport::Tcp, one.v4, 80);
            ask(&one.netns, Transport::Tcp, OUTSIDE_V4, 7000);
            lab.check(&red, &one.attachment);
            for (list, container) in [(&red, &one), (&red, &two), (&blue, &other)] {
                lab.del(list, &container.attachment);
            }
        }
    }

    fn isolated_keeps_containers_apart(lab) {
        for backend in ["iptables", "nftables"] {
            let policy = json!({"backend": backend, "ingressPolicy": "isolated"});
            let (red, blue) = (list("red", "84", policy.clone()), list("blue", "85", policy));
            let one = Container::add(lab, &red, &format!("{backend}-red-1"));
            let two = Container::add(lab, &red, &format!("{backend}-red-2"));
            let other = Container::add(lab, &blue, &format!("{backend}-blue"));
            let _outside = outside_server(lab);
            no_answer(&one.netns, Transport::Tcp, two.v4, 80);
            no_answer(&one.netns, Transport::Tcp, other.v4, 80);
            ask(&one.netns, Transport::Tcp, OUTSIDE_V4, 7000);
            for (list, container) in [(&red, &one), (&red, &two), (&blue, &other)] {
                lab.del(list, &container.attachment);
            }
        }
    }

    fn a_late_del_does_not_close_the_next_owner_of_an_address(lab) {
        let netns = lab.container("c1");
        for backend in ["nftables", "iptables"] {
            let config = direct(json!({"backend": backend}));
            let (old, new) = (Attachment::new("old", netns.path()), Attachment::new("new", netns.path()));
            fine(&lab.one("ADD", &config, &old));
            fine(&lab.one("DEL", &config, &old));
            fine(&lab.one("ADD", &config, &new));
            if backend == "nftables" {
                fine(&lab.one("DEL", &config, &old));
            }
            fine(&lab.one("CHECK", &config, &new));
            fine(&lab.one("DEL", &config, &new));
        }
    }

    fn early_versions_are_served_too(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = json!({
            "cniVersion": "0.3.1", "name": "fw-net", "type": "firewall", "backend": "nftables",
            "prevResult": {
                "cniVersion": "0.3.1",
                "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
                "ips": [{"version": "4", "address": "10.1.0.2/24", "interface": 0}],
            },
        });
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        assert_eq!(answer.json().unwrap()["cniVersion"], "0.3.1");
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn without_iptables_del_is_fine_and_add_says_what_to_do(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let bare = lab.ours.clone().with_path(super::support::empty_path());
        super::support::hide_tools(&["iptables", "nft"]);
        let answer = super::support::one_of(&bare, "ADD", &direct(json!({})), &attachment);
        let error = answer.error().unwrap_or_else(|| panic!("{}", answer.text()));
        assert!(format!("{} {}", error.msg, error.details).contains("iptables"), "{error:?}");
        fine(&super::support::one_of(&bare, "DEL", &direct(json!({})), &attachment));
        fine(&super::support::one_of(&bare, "ADD", &direct(json!({"backend": null})), &attachment));
        fine(&super::support::one_of(&bare, "DEL", &direct(json!({"backend": null})), &attachment));
    }

    fn gc_takes_the_rules_of_the_lost(lab) {
        let netns = lab.container("c1");
        let mut config = direct(json!({"backend": "nftables", "cniVersion": "1.1.0"}));
        fine(&lab.one("ADD", &config, &Attachment::new("lost", netns.path())));
        assert!(!lab.snapshot().mentioning("0a010002").is_empty());
        config["cni.dev/valid-attachments"] = json!([]);
        let call = lab.ours.bare("firewall", "GC").unwrap();
        fine(&call.stdin(config.to_string()).run().unwrap());
        assert!(lab.snapshot().mentioning("0a010002").is_empty(), "{:?}", lab.snapshot().mentioning("0a010002"));
    }
}
