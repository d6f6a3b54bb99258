//! What Nomad does around the plugins.

use conformance::chain::{Attachment, Network};
use conformance::lists::{NOMAD, NOMAD_DUAL, nomad_ports};
use conformance::net::{HOST_V4, HOST_V6};
use conformance::probe::Transport;
use serde_json::json;

use super::support::{address_of, ask, iptables, sandboxed, serve, tool};

fn nomad_args() -> &'static str {
    "IgnoreUnknown=true;NOMAD_ALLOC_ID=5d3c0ff3;NOMAD_JOB_ID=web;CONSUL_IPTABLES_CONFIG={\"ConsulDNSIP\":\"\",\"x\":\"a=b\"}"
}

sandboxed! {
    fn three_allocations_at_once_on_a_fresh_host(lab) {
        let network = Network::parse(NOMAD).unwrap();
        let containers: Vec<_> = (0..3).map(|number| lab.container(&format!("c{number}"))).collect();
        let results: Vec<_> = std::thread::scope(|scope| {
            let running: Vec<_> = containers
                .iter()
                .enumerate()
                .map(|(number, netns)| {
                    let network = &network;
                    scope.spawn(move || {
                        let port = 8080 + u16::try_from(number).unwrap();
                        let mut attachment = Attachment::new(&format!("alloc-{number}"), netns.path())
                            .args(nomad_args())
                            .capability("portMappings", nomad_ports(port, 80));
                        let result = lab.add(network, &mut attachment);
                        (attachment, result)
                    })
                })
                .collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        });
        for (number, (netns, (attachment, result))) in containers.iter().zip(&results).enumerate() {
            let port = 8080 + u16::try_from(number).unwrap();
            let _server = serve(netns, Transport::Tcp, address_of(result, true), 80, "web");
            ask(lab.host.outside(), Transport::Tcp, HOST_V4, port);
            lab.check(&network, attachment);
        }
        for (attachment, _) in &results {
            lab.del(&network, attachment);
        }
    }

    fn the_admin_chain_that_nomad_made_is_kept(lab) {
        tool("iptables", "iptables");
        for family in ["iptables", "ip6tables"] {
            iptables(family, "-N NOMAD-ADMIN");
            iptables(family, "-P FORWARD DROP");
        }
        iptables("iptables", "-A NOMAD-ADMIN -o nomad -d 172.26.64.0/20 -j ACCEPT");
        let network = Network::parse(NOMAD_DUAL).unwrap();
        let netns = lab.container("c1");
        let mut attachment =
            Attachment::new("alloc", netns.path()).capability("portMappings", nomad_ports(8080, 80));
        let result = lab.add(&network, &mut attachment);
        for (host, v4) in [(HOST_V4, true), (HOST_V6, false)] {
            let _server = serve(&netns, Transport::Tcp, address_of(&result, v4), 80, "web");
            ask(lab.host.outside(), Transport::Tcp, host, 8080);
        }
        lab.del(&network, &attachment);
        let admin = iptables("iptables", "-S NOMAD-ADMIN");
        assert!(admin.contains("172.26.64.0/20"), "{admin}");
    }

    fn its_own_clean_up_recognises_our_masquerade_rules(lab) {
        tool("iptables", "iptables");
        let mut network = Network::parse(NOMAD).unwrap();
        network.plugins[0]["ipMasqBackend"] = json!("iptables");
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("5d3c0ff3-9a5e", netns.path());
        lab.add(&network, &mut attachment);
        let rules = iptables("iptables", "-t nat -S POSTROUTING");
        // -A POSTROUTING -s <ip> -m comment --comment "name: \"nomad\" id: \"<alloc>\"" -j CNI-<hex>
        let rule = rules
            .lines()
            .find(|line| line.contains(r#"--comment "name: \"nomad\" id: \"5d3c0ff3-9a5e\"""#))
            .unwrap_or_else(|| panic!("{rules}"));
        assert!(rule.starts_with("-A POSTROUTING -s 172.26.66.2/32 -m comment"), "{rule}");
        let chain = rule.rsplit(' ').next().unwrap();
        let hash = chain.strip_prefix("CNI-").unwrap_or_else(|| panic!("{rule}"));
        assert!(hash.len() == 24 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{rule}");
        lab.del(&network, &attachment);
        assert!(!iptables("iptables", "-t nat -S").contains(chain));
    }

    fn an_add_that_failed_can_simply_be_repeated(lab) {
        // Nomad repeats a failed ADD without a DEL in between.
        let mut network = Network::parse(NOMAD).unwrap();
        let netns = lab.container("c1");
        let mut attachment =
            Attachment::new("alloc", netns.path()).capability("portMappings", nomad_ports(8080, 80));
        network.plugins[0]["ipam"]["ranges"] = json!([[{"subnet": "172.26.66.0/30"}]]);
        let other = lab.container("c2");
        let mut holder = Attachment::new("holder", other.path());
        lab.add(&network, &mut holder);
        for _ in 0..3 {
            lab.ours.add(&network, &mut attachment).expect_err("no address is left");
        }
        lab.del(&network, &holder);
        lab.add(&network, &mut attachment);
        lab.del(&network, &attachment);
    }

    fn an_add_after_a_later_plugin_failed_can_be_repeated_after_del(lab) {
        let network = Network::parse(NOMAD).unwrap();
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("alloc", netns.path())
            .capability("portMappings", json!([{"HostPort": 0, "ContainerPort": 80, "Protocol": "tcp"}]));
        lab.ours.add(&network, &mut attachment).expect_err("port 0 cannot be published");
        lab.del(&network, &attachment);
        attachment.capabilities.insert("portMappings".into(), nomad_ports(8080, 80));
        lab.add(&network, &mut attachment);
        lab.del(&network, &attachment);

    }

    fn retries_without_del_and_a_teardown_without_a_namespace_leave_nothing(lab) {
        tool("iptables", "iptables");
        let network = Network::parse(NOMAD_DUAL).unwrap();
        let id = "5d3c0ff3-9a5e-4c1b-8f00-6b1d2c3e4f50";
        // Another allocation holds the port.
        let other = lab.container("c0");
        let mut holder = Attachment::new("holder", other.path()).capability("portMappings", nomad_ports(8080, 80));
        lab.add(&network, &mut holder);
        let before = lab.snapshot();
        let netns = lab.container("c1");
        let mut attachment = Attachment::new(id, netns.path())
            .args(nomad_args())
            .capability("portMappings", nomad_ports(8080, 80));
        for _ in 0..3 {
            lab.ours.add(&network, &mut attachment).expect_err("the port is taken");
        }
        drop(netns);
        // Teardown: no arguments, no result, no namespace.
        let mut lost = Attachment::new(id, std::path::Path::new(""));
        lost.capabilities.clone_from(&attachment.capabilities);
        for _ in 0..2 {
            lab.del(&network, &lost);
        }
        lab.rtnl().wait_links_gone("veth", 2, conformance::probe::PATIENCE).unwrap();
        let after = lab.snapshot();
        assert!(after.mentioning(id).is_empty(), "{:?}", after.mentioning(id));
        let diff = before.diff(&after);
        assert!(diff.is_empty(), "{diff}");
        let result = holder.result.clone().unwrap();
        let _server = serve(&other, Transport::Tcp, address_of(&result, true), 80, "holder");
        ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
        lab.del(&network, &holder);
    }

    fn its_task_drivers_find_the_address_by_the_first_interface_with_a_sandbox(lab) {
        let network = Network::parse(NOMAD).unwrap();
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("alloc", netns.path());
        let result = lab.add(&network, &mut attachment);
        let listed = conformance::facts::interfaces(&result);
        let mut inside: Vec<_> = (0..listed.len()).filter(|index| !listed[*index].sandbox.is_empty()).collect();
        inside.sort_by_key(|index| listed[*index].name.clone());
        let first = u64::try_from(inside[0]).unwrap();
        let given = conformance::facts::addresses(&result);
        let found = given.iter().find(|one| one.interface == Some(first)).unwrap();
        assert_eq!(found.address.to_string(), "172.26.66.2/23");
        lab.del(&network, &attachment);
    }
}
