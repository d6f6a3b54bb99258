//! portmap: published ports, with packets, through both backends.

use std::net::IpAddr;

use conformance::chain::{Attachment, Network, find_tool, standard_path};
use conformance::net::{HOST_V4, HOST_V6, Netns, OUTSIDE_V4, OUTSIDE_V6};
use conformance::probe::{PATIENCE, Server, Transport, ask_from};
use serde_json::{Map, Value, json};

use super::support::{
    Lab, address_of, ask, fine, iptables, network, nft, no_answer, sandboxed, serve, tool,
};

const BACKENDS: [&str; 2] = ["nftables", "iptables"];

/// bridge and portmap, dual stack, with one backend.
fn list(backend: &str, options: Value) -> Network {
    let mut portmap =
        json!({"type": "portmap", "backend": backend, "capabilities": {"portMappings": true}});
    portmap
        .as_object_mut()
        .unwrap()
        .extend(options.as_object().unwrap().clone());
    network(
        &json!({"cniVersion": "1.0.0", "name": "pm-net", "plugins": [
            {"type": "bridge", "bridge": "br0", "isGateway": true, "ipam": {"type": "host-local",
                "ranges": [[{"subnet": "10.77.0.0/24"}], [{"subnet": "fd00:77::/64"}]],
                "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
            portmap,
        ]}),
    )
}

fn port(host: u16, container: u16, protocol: &str) -> Value {
    json!({"hostPort": host, "containerPort": container, "protocol": protocol})
}

/// A container that publishes ports, with servers on all of its addresses.
struct Published {
    netns: Netns,
    attachment: Attachment,
    result: Value,
    _servers: Vec<Server>,
}

impl Published {
    fn add(lab: &Lab, list: &Network, name: &str, ports: Value) -> Self {
        let netns = lab.container(name);
        let mut attachment =
            Attachment::new(&format!("id-{name}"), netns.path()).capability("portMappings", ports);
        let result = lab.add(list, &mut attachment);
        let mut servers = Vec::new();
        for address in [address_of(&result, true), address_of(&result, false)] {
            servers.push(serve(&netns, Transport::Tcp, address, 80, name));
            servers.push(serve(&netns, Transport::Udp, address, 53, name));
        }
        Self {
            netns,
            attachment,
            result,
            _servers: servers,
        }
    }
}

fn localhost() -> IpAddr {
    "127.0.0.1".parse().unwrap()
}

sandboxed! {
    fn a_port_that_a_program_of_the_host_has_is_warned_about(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let program = std::net::TcpListener::bind("0.0.0.0:8080").unwrap();
        let datagrams = std::net::UdpSocket::bind("[::]:8081").unwrap();
        let add = |port: u16, protocol: &str| {
            let config = json!({"cniVersion": "1.1.0", "name": "net", "type": "portmap",
                "runtimeConfig": {"portMappings": [{"hostPort": port, "containerPort": 80, "protocol": protocol}]},
                "prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": netns.path()}],
                    "ips": [{"address": "10.77.0.9/24", "interface": 0}, {"address": "fd00:77::9/64", "interface": 0}]}});
            let answer = lab.one("ADD", &config, &attachment);
            fine(&answer);
            fine(&lab.one("DEL", &config, &attachment));
            let said = String::from_utf8_lossy(&answer.stderr).into_owned();
            let lines = said.lines().filter(|line| line.contains("a program of this host"));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        // Once for the port, not once for each family; nothing for a port or protocol that nobody has.
        for (port, protocol) in [(8080, "tcp"), (8081, "udp")] {
            let said = add(port, protocol);
            assert_eq!(said.lines().count(), 1, "{said}");
            assert!(said.contains(&format!("a program of this host has {protocol} port {port}")) && said.contains("ss -lnp"), "{said}");
        }
        for (port, protocol) in [(8080, "udp"), (8081, "tcp"), (8082, "tcp")] {
            assert_eq!(add(port, protocol), "", "{protocol} {port}");
        }
        drop((program, datagrams));
        assert_eq!(add(8080, "tcp"), "");
        assert_eq!(add(8081, "udp"), "");
    }

    fn a_udp_flow_follows_the_port_to_its_next_owner(lab) {
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let from = std::net::SocketAddr::new(OUTSIDE_V4, 40_000);
            let to = std::net::SocketAddr::new(HOST_V4, 5353);
            let talk = || ask_from(lab.host.outside(), Transport::Udp, from, to, PATIENCE).unwrap().server;
            let one = Published::add(lab, &list, &format!("{backend}-one"), json!([port(5353, 53, "udp")]));
            assert_eq!(talk(), format!("{backend}-one"));
            lab.del(&list, &one.attachment);
            let two = Published::add(lab, &list, &format!("{backend}-two"), json!([port(5353, 53, "udp")]));
            assert_eq!(talk(), format!("{backend}-two"), "the old flow is not remembered");
            lab.del(&list, &two.attachment);
        }
    }

    fn conditions_choose_who_may_come(lab) {
        for (backend, only_elsewhere, outside) in [
            ("nftables", json!(["ip", "saddr", "203.0.113.0/24"]), json!(["ip", "saddr", "192.0.2.0/24"])),
            ("iptables", json!(["-s", "203.0.113.0/24"]), json!(["-s", "192.0.2.0/24"])),
        ] {
            let closed = list(backend, json!({"conditionsV4": only_elsewhere}));
            let one = Published::add(lab, &closed, &format!("{backend}-closed"), json!([port(8080, 80, "tcp")]));
            no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
            let open = list(backend, json!({"conditionsV4": outside}));
            let two = Published::add(lab, &open, &format!("{backend}-open"), json!([port(8081, 80, "tcp")]));
            ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8081);
            no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
            lab.check(&closed, &one.attachment);
            lab.check(&open, &two.attachment);
            lab.del(&closed, &one.attachment);
            lab.del(&open, &two.attachment);
        }
    }

    fn everybody_reaches_the_port_and_nothing_stays(lab) {
        for backend in BACKENDS {
            if backend == "iptables" {
                tool("iptables", "iptables");
            }
            let list = list(backend, json!({}));
            let one = Published::add(lab, &list, &format!("{backend}-1"), json!([port(8080, 80, "tcp"), port(5353, 53, "udp")]));
            let two = Published::add(lab, &list, &format!("{backend}-2"), json!([]));
            for (host, outside) in [(HOST_V4, OUTSIDE_V4), (HOST_V6, OUTSIDE_V6)] {
                for (transport, port) in [(Transport::Tcp, 8080), (Transport::Udp, 5353)] {
                    assert_eq!(ask(lab.host.outside(), transport, host, port).peer, outside, "{backend}: the source is kept");
                    ask(lab.host.netns(), transport, host, port);
                    ask(&two.netns, transport, host, port);
                    ask(&one.netns, transport, host, port);
                }
            }
            ask(lab.host.netns(), Transport::Tcp, localhost(), 8080);
            ask(lab.host.netns(), Transport::Udp, localhost(), 5353);
            lab.check(&list, &one.attachment);
            let (first, second) = (one.attachment.clone(), two.attachment.clone());
            drop((one, two));
            for attachment in [&first, &second, &first] {
                lab.del(&list, attachment);
            }
            no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
            let left = lab.snapshot();
            for mention in ["id-", "0a4d0002", "CNI-DN-"] {
                assert!(left.mentioning(mention).is_empty(), "{backend}: {:?}", left.mentioning(mention));
            }
        }
    }

    fn neighbours_reach_the_port_whether_or_not_bridged_frames_are_filtered(lab) {
        for (number, backend) in BACKENDS.into_iter().enumerate() {
            for filtered in ["0", "1"] {
                let key = "net/bridge/bridge-nf-call-iptables";
                if std::path::Path::new("/proc/sys").join(key).exists() {
                    lab.host.sysctl(key, filtered).unwrap();
                }
                let list = list(backend, json!({}));
                let port_number = 8080 + u16::try_from(number).unwrap();
                let one = Published::add(lab, &list, &format!("{backend}{filtered}a"), json!([port(port_number, 80, "tcp")]));
                let two = Published::add(lab, &list, &format!("{backend}{filtered}b"), json!([]));
                ask(&two.netns, Transport::Tcp, HOST_V4, port_number);
                ask(&one.netns, Transport::Tcp, HOST_V4, port_number);
                lab.del(&list, &one.attachment);
                lab.del(&list, &two.attachment);
            }
        }
    }

    fn a_host_address_limits_the_port(lab) {
        lab.rtnl().add_address("up0", "192.0.2.11/24".parse().unwrap()).unwrap();
        let other: IpAddr = "192.0.2.11".parse().unwrap();
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let ports = json!([
                {"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": "192.0.2.1"},
                {"hostPort": 8081, "containerPort": 80, "protocol": "tcp", "hostIP": "0.0.0.0"},
                {"hostPort": 8082, "containerPort": 80, "protocol": "tcp", "hostIP": "::"},
                {"hostPort": 8083, "containerPort": 80, "protocol": "tcp", "hostIP": "127.0.0.1"},
                {"hostPort": 8084, "containerPort": 80, "protocol": "tcp", "hostIP": ""},
            ]);
            let one = Published::add(lab, &list, &format!("c-{backend}"), ports);
            let outside = lab.host.outside();
            ask(outside, Transport::Tcp, HOST_V4, 8080);
            no_answer(outside, Transport::Tcp, other, 8080);
            no_answer(outside, Transport::Tcp, HOST_V6, 8080);
            ask(outside, Transport::Tcp, other, 8081);
            no_answer(outside, Transport::Tcp, HOST_V6, 8081);
            ask(outside, Transport::Tcp, HOST_V6, 8082);
            no_answer(outside, Transport::Tcp, HOST_V4, 8082);
            ask(lab.host.netns(), Transport::Tcp, localhost(), 8083);
            no_answer(outside, Transport::Tcp, HOST_V4, 8083);
            ask(outside, Transport::Tcp, HOST_V4, 8084);
            ask(outside, Transport::Tcp, HOST_V6, 8084);
            lab.check(&list, &one.attachment);
            lab.del(&list, &one.attachment);
        }
    }

    fn without_snat_the_source_is_never_touched(lab) {
        for backend in BACKENDS {
            let list = list(backend, json!({"snat": false}));
            let one = Published::add(lab, &list, &format!("c-{backend}"), json!([port(8080, 80, "tcp")]));
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).peer, OUTSIDE_V4);
            assert_eq!(ask(lab.host.netns(), Transport::Tcp, HOST_V4, 8080).peer, HOST_V4);
            lab.check(&list, &one.attachment);
            lab.del(&list, &one.attachment);
        }
    }

    fn masq_all_hides_every_source(lab) {
        for backend in BACKENDS {
            let list = list(backend, json!({"masqAll": true}));
            let one = Published::add(lab, &list, &format!("c-{backend}"), json!([port(8080, 80, "tcp")]));
            assert_ne!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).peer, OUTSIDE_V4, "{backend}");
            assert_ne!(ask(lab.host.outside(), Transport::Tcp, HOST_V6, 8080).peer, OUTSIDE_V6, "{backend}");
            lab.check(&list, &one.attachment);
            lab.del(&list, &one.attachment);
        }
    }

    fn more_ports_than_one_rule_can_hold(lab) {
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let ports: Vec<Value> = (0..40).map(|number| port(9000 + number, 80, "tcp")).collect();
            let one = Published::add(lab, &list, &format!("c-{backend}"), Value::Array(ports));
            for number in [9000, 9014, 9015, 9016, 9039] {
                ask(lab.host.outside(), Transport::Tcp, HOST_V4, number);
                ask(lab.host.outside(), Transport::Tcp, HOST_V6, number);
            }
            lab.check(&list, &one.attachment);
            lab.del(&list, &one.attachment);
            assert!(lab.snapshot().mentioning("id-c").is_empty(), "{:?}", lab.snapshot().mentioning("id-c"));
        }
    }

    fn keys_and_protocols_of_any_case_work(lab) {
        for (number, mapping) in [
            json!({"HostPort": 8080, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""}),
            json!({"hostport": 8080, "CONTAINERPORT": 80, "protocol": "TCP"}),
        ].into_iter().enumerate() {
            for backend in BACKENDS {
                let list = list(backend, json!({}));
                let one = Published::add(lab, &list, &format!("{backend}{number}"), json!([mapping]));
                ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
                lab.del(&list, &one.attachment);
            }
        }
    }

    fn bad_mappings_are_refused_and_leave_nothing(lab) {
        let netns = lab.container("c1");
        for mapping in [
            port(0, 80, "tcp"), port(8080, 0, "tcp"), json!({"hostPort": 70000, "containerPort": 80, "protocol": "tcp"}),
            json!({"hostPort": -1, "containerPort": 80, "protocol": "tcp"}),  port(8080, 80, "nonsense"),
            json!({"hostPort": "8080", "containerPort": 80, "protocol": "tcp"}),
            json!({"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": "bogus"}),
        ] {
            for backend in BACKENDS {
                let attachment = Attachment::new("c1", netns.path());
                let before = lab.snapshot();
                let config = direct(backend, json!([mapping]));
                let answer = lab.one("ADD", &config, &attachment);
                assert!(answer.error().is_some(), "{backend} {mapping}: {}", answer.text());
                let diff = before.diff(&lab.snapshot());
                assert!(diff.is_empty(), "{backend} {mapping}:\n{diff}");
                fine(&lab.one("DEL", &config, &attachment));
            }
        }
    }

    fn options_of_the_other_backend_are_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for (backend, key, value) in [
            ("nftables", "externalSetMarkChain", json!("KUBE-MARK-MASQ")),
            ("nftables", "conditionsV4", json!(["-s", "192.0.2.0/24"])),
            ("iptables", "conditionsV4", json!(["ip", "saddr", "192.0.2.0/24"])),
            ("ebtables", "snat", json!(true)),
            ("iptables", "markMasqBit", json!(32)),
        ] {
            let mut config = direct(backend, json!([port(8080, 80, "tcp")]));
            config[key] = value;
            let answer = lab.one("ADD", &config, &attachment);
            assert!(answer.error().is_some(), "{backend} {key}: {}", answer.text());
        }
    }

    fn without_mappings_nothing_is_done(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let before = lab.snapshot();
        for mappings in [json!([]), Value::Null] {
            for verb in ["ADD", "CHECK", "DEL"] {
                fine(&lab.one(verb, &direct("nftables", mappings.clone()), &attachment));
            }
        }
        assert!(before.diff(&lab.snapshot()).is_empty());
    }

    fn a_port_of_a_live_container_is_not_given_twice(lab) {
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let one = Published::add(lab, &list, &format!("{backend}-one"), json!([port(8080, 80, "tcp")]));
            let netns = lab.container(&format!("{backend}-two"));
            let mut second = Attachment::new("id-second", netns.path())
                .capability("portMappings", json!([port(8080, 81, "tcp")]));
            let error = lab.ours.add(&list, &mut second).expect_err("the port is taken").to_string();
            for part in ["8080", "tcp", &one.attachment.container_id] {
                assert!(error.contains(part), "{backend}: {part} in {error}");
            }
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).server, format!("{backend}-one"));
            lab.del(&list, &second);
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).server, format!("{backend}-one"));
            lab.del(&list, &one.attachment);
            // Free again.
            lab.add(&list, &mut second);
            lab.del(&list, &second);
        }
    }

    fn one_request_cannot_claim_a_port_twice(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for backend in BACKENDS {
            let config = direct(backend, json!([port(8080, 80, "tcp"), port(8080, 81, "tcp")]));
            let answer = lab.one("ADD", &config, &attachment);
            assert!(answer.error().is_some(), "{backend}: {}", answer.text());
            let fits = direct(backend, json!([port(8080, 80, "tcp"), port(8080, 80, "udp")]));
            fine(&lab.one("ADD", &fits, &attachment));
            fine(&lab.one("DEL", &fits, &attachment));
        }
    }

    fn two_host_addresses_may_share_a_port(lab) {
        lab.rtnl().add_address("up0", "192.0.2.11/24".parse().unwrap()).unwrap();
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let at = |address: &str| json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": address}]);
            let one = Published::add(lab, &list, &format!("{backend}-one"), at("192.0.2.1"));
            let two = Published::add(lab, &list, &format!("{backend}-two"), at("192.0.2.11"));
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).server, format!("{backend}-one"));
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, "192.0.2.11".parse().unwrap(), 8080).server, format!("{backend}-two"));
            lab.del(&list, &one.attachment);
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, "192.0.2.11".parse().unwrap(), 8080).server, format!("{backend}-two"));
            lab.del(&list, &two.attachment);
        }
    }

    fn a_claim_of_a_dead_container_is_taken_over(lab) {
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let one = Published::add(lab, &list, &format!("{backend}-one"), json!([port(8080, 80, "tcp")]));
            drop(one);
            lab.rtnl().wait_without_ports("br0", PATIENCE).unwrap();
            let two = Published::add(lab, &list, &format!("{backend}-two"), json!([port(8080, 80, "tcp")]));
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).server, format!("{backend}-two"));
            lab.del(&list, &two.attachment);
        }
    }

    fn traffic_that_passes_through_is_not_taken(lab) {
        // A third machine behind the host listens on the very port that a container publishes.
        let far = lab.container("far");
        lab.rtnl().add_veth("far0", &far, "eth0").unwrap();
        let there = conformance::net::Rtnl::open(&far).unwrap();
        for (rtnl, link, address) in [(lab.rtnl(), "far0", "198.51.100.1/24"), (&there, "eth0", "198.51.100.9/24")] {
            rtnl.set_up(link).unwrap();
            rtnl.add_address(link, address.parse().unwrap()).unwrap();
        }
        there.add_route("192.0.2.0/24".parse().unwrap(), "198.51.100.1".parse().unwrap()).unwrap();
        let outside = conformance::net::Rtnl::open(lab.host.outside()).unwrap();
        outside.add_route("198.51.100.0/24".parse().unwrap(), HOST_V4).unwrap();
        lab.host.sysctl("net/ipv4/ip_forward", "1").unwrap();
        let real: IpAddr = "198.51.100.9".parse().unwrap();
        let _server = serve(&far, Transport::Tcp, real, 8080, "far");
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let one = Published::add(lab, &list, &format!("c-{backend}"), json!([port(8080, 80, "tcp")]));
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, real, 8080).server, "far", "{backend}");
            lab.del(&list, &one.attachment);
        }
    }

    fn services_of_the_hosts_loopback_stay_private(lab) {
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let one = Published::add(lab, &list, &format!("c-{backend}"), json!([port(8080, 80, "tcp")]));
            let _private = serve(lab.host.netns(), Transport::Tcp, localhost(), 6379, "private");
            let inside = conformance::net::Rtnl::open(&one.netns).unwrap();
            // A container with the right to configure its network sends to the host's loopback.
            inside.delete_loopback_routes().unwrap();
            inside.add_route("127.0.0.1/32".parse().unwrap(), "10.77.0.1".parse().unwrap()).unwrap();
            no_answer(&one.netns, Transport::Tcp, localhost(), 6379);
            ask(lab.host.netns(), Transport::Tcp, localhost(), 8080);
            lab.del(&list, &one.attachment);
        }
    }

    fn check_notices_lost_rules(lab) {
        let list_nft = list("nftables", json!({}));
        let one = Published::add(lab, &list_nft, "c-nft", json!([port(8080, 80, "tcp")]));
        lab.check(&list_nft, &one.attachment);
        if find_tool("nft", &standard_path()).is_none() {
            tool("nft", "nftables");
        }
        nft("flush ruleset");
        lab.ours.check(&list_nft, &one.attachment).expect_err("the rules are gone");
        lab.del(&list_nft, &one.attachment);

        let list_ipt = list("iptables", json!({}));
        let two = Published::add(lab, &list_ipt, "c-ipt", json!([port(8080, 80, "tcp")]));
        lab.check(&list_ipt, &two.attachment);
        iptables("iptables", "-t nat -F CNI-HOSTPORT-DNAT");
        lab.ours.check(&list_ipt, &two.attachment).expect_err("the rules are gone");
        lab.del(&list_ipt, &two.attachment);
    }

    fn the_same_container_on_two_networks_keeps_both(lab) {
        for backend in BACKENDS {
            let first = list(backend, json!({}));
            let mut second = first.clone();
            second.name = "other-net".into();
            second.plugins[0]["bridge"] = json!("br1");
            second.plugins[0]["ipam"]["ranges"] = json!([[{"subnet": "10.78.0.0/24"}]]);
            second.plugins[0]["ipam"]["routes"] = json!([]);
            let one = Published::add(lab, &first, &format!("c-{backend}"), json!([port(8080, 80, "tcp")]));
            let mut other = Attachment::new(&one.attachment.container_id, one.netns.path())
                .ifname("eth1")
                .capability("portMappings", json!([port(8081, 80, "tcp")]));
            let result = lab.add(&second, &mut other);
            let _server = serve(&one.netns, Transport::Tcp, address_of(&result, true), 80, "second");
            lab.del(&second, &other);
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).peer, OUTSIDE_V4, "{backend}");
            lab.del(&first, &one.attachment);
        }
    }

    fn a_missing_chain_of_kubernetes_is_made_up_for(lab) {
        tool("iptables", "iptables");
        let list = list("iptables", json!({"externalSetMarkChain": "KUBE-MARK-MASQ"}));
        let one = Published::add(lab, &list, "c1", json!([port(8080, 80, "tcp")]));
        ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
        ask(&one.netns, Transport::Tcp, HOST_V4, 8080);
        lab.del(&list, &one.attachment);
    }

    fn sctp_is_forwarded_where_the_kernel_has_it(lab) {
        for backend in BACKENDS {
            let list = list(backend, json!({}));
            let one = Published::add(lab, &list, &format!("c-{backend}"), json!([port(9999, 9999, "sctp")]));
            let address = std::net::SocketAddr::new(address_of(&one.result, true), 9999);
            // Without SCTP in the kernel there is nobody to talk to; the rules are made all the same.
            if let Ok(_server) = Server::start(&one.netns, Transport::Sctp, address, "sctp") {
                assert_eq!(ask(lab.host.outside(), Transport::Sctp, HOST_V4, 9999).peer, OUTSIDE_V4);
            }
            lab.check(&list, &one.attachment);
            lab.del(&list, &one.attachment);
        }
    }

    fn del_finds_the_rules_of_the_other_backend(lab) {
        let with = |backend: &str| list(backend, json!({}));
        for (made_by, removed_by) in [("iptables", "nftables"), ("nftables", "iptables")] {
            let one = Published::add(lab, &with(made_by), &format!("c-{made_by}"), json!([port(8080, 80, "tcp")]));
            let mut attachment = one.attachment.clone();
            attachment.capabilities = Map::new();
            attachment.result = None;
            lab.del(&with(removed_by), &attachment);
            no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
            let left = lab.snapshot();
            assert!(left.mentioning("id-c").is_empty(), "{made_by}: {:?}", left.mentioning("id-c"));
        }
    }

    fn gc_takes_the_forwards_of_the_lost(lab) {
        for backend in BACKENDS {
            let mut list = list(backend, json!({}));
            list.version = "1.1.0".into();
            let one = Published::add(lab, &list, &format!("{backend}-one"), json!([port(8080, 80, "tcp")]));
            let two = Published::add(lab, &list, &format!("{backend}-two"), json!([port(8081, 80, "tcp")]));
            lab.ours.gc(&list, Some(&[&two.attachment])).unwrap();
            no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
            ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8081);
            lab.ours.gc(&list, Some(&[])).unwrap();
            no_answer(lab.host.outside(), Transport::Tcp, HOST_V4, 8081);
            let left = lab.snapshot().mentioning("CNI-DN-").len();
            assert_eq!(left, 0, "{backend}");
            lab.del(&list, &one.attachment);
            lab.del(&list, &two.attachment);
        }
    }

    fn a_second_add_replaces_the_first(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for backend in BACKENDS {
            let config = direct(backend, json!([port(8080, 80, "tcp")]));
            fine(&lab.one("ADD", &config, &attachment));
            let once = lab.snapshot();
            fine(&lab.one("ADD", &config, &attachment));
            assert!(once.diff(&lab.snapshot()).is_empty(), "{backend}: {}", once.diff(&lab.snapshot()));
            let mut moved = config.clone();
            moved["prevResult"]["ips"][0]["address"] = json!("10.1.0.9/24");
            fine(&lab.one("ADD", &moved, &attachment));
            let left = lab.snapshot();
            assert!(left.mentioning("0a010002").is_empty(), "{backend}: {:?}", left.mentioning("0a010002"));
            fine(&lab.one("DEL", &moved, &attachment));
            assert!(lab.snapshot().mentioning("0a010009").is_empty());
        }
    }
}

/// portmap alone, behind a result that some main plugin could have given.
fn direct(backend: &str, mappings: Value) -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "pm-net", "type": "portmap", "backend": backend,
        "runtimeConfig": {"portMappings": mappings},
        "prevResult": {
            "cniVersion": "1.0.0",
            "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.1.0.2/24", "interface": 0}],
        },
    })
}
