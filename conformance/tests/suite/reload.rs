//! A reload of the packet filter wipes the rules out; `reapply` puts them back.

use cni_types::{ContainerId, IfName, NetworkList};
use conformance::libcni::{Cni, Reapplied, RuntimeConf};
use conformance::lists::{NOMAD, NOMAD_DUAL, nomad_ports};
use conformance::net::{HOST_V4, HOST_V6, Netns};
use conformance::probe::Transport;
use conformance::snapshot::Snapshot;
use serde_json::Value;

use super::support::{Lab, address_of, ask, nft, no_answer, plugins, run, sandboxed, serve, tool};

fn attachment(netns: &Netns, id: &str, port: u16) -> RuntimeConf {
    let mut rt = RuntimeConf::new(
        ContainerId::new(id).unwrap(),
        netns.path(),
        IfName::new("eth0").unwrap(),
    );
    rt.capability_args
        .insert("portMappings".to_owned(), nomad_ports(port, 80));
    rt
}

/// Everything works, is lost in a reload, is noticed, and is put back, as often as one likes.
fn survives(lab: &Lab, list: &str, hosts: &[std::net::IpAddr], reload: impl Fn()) {
    let cni = Cni::new([plugins()]);
    let list = NetworkList::parse(list.as_bytes()).unwrap();
    let (first, second) = (lab.container("c1"), lab.container("c2"));
    let ones = [
        attachment(&first, "alloc-1", 8080),
        attachment(&second, "alloc-2", 8081),
    ];
    let results: Vec<Value> = ones
        .iter()
        .map(|rt| cni.add(&list, rt).unwrap().unwrap())
        .collect();
    let before: Snapshot = lab.snapshot();
    let reachable = || {
        for host in hosts {
            let address = address_of(&results[0], host.is_ipv4());
            let _server = serve(&first, Transport::Tcp, address, 80, "web");
            ask(lab.host.outside(), Transport::Tcp, *host, 8080);
        }
    };
    reachable();

    reload();
    no_answer(lab.host.outside(), Transport::Tcp, hosts[0], 8080);
    for rt in &ones {
        cni.check(&list, rt).unwrap_err();
    }

    for _ in 0..2 {
        let reapplied = cni.reapply(None).unwrap();
        assert_eq!(
            reapplied,
            Reapplied {
                done: 2,
                skipped: Vec::new()
            }
        );
        for rt in &ones {
            cni.check(&list, rt).unwrap();
        }
        reachable();
    }
    assert_eq!(
        lab.snapshot().diff(&before).to_string(),
        "",
        "reapply makes what ADD made"
    );

    for rt in &ones {
        cni.del(&list, rt).unwrap();
    }
}

sandboxed! {
    fn of_nftables_is_mended(lab) {
        tool("nft", "nftables");
        survives(lab, NOMAD, &[HOST_V4], || drop(nft("flush ruleset")));
    }

    fn of_iptables_and_nftables_is_mended(lab) {
        tool("iptables", "iptables");
        survives(lab, NOMAD_DUAL, &[HOST_V4, HOST_V6], || drop(nft("flush ruleset")));
    }

    fn of_iptables_alone_is_mended(lab) {
        let tools = [tool("iptables", "iptables"), tool("ip6tables", "iptables")];
        let mut list: Value = serde_json::from_str(NOMAD_DUAL).unwrap();
        list["plugins"][1]["ipMasqBackend"] = "iptables".into();
        list["plugins"][3]["backend"] = "iptables".into();
        survives(lab, &list.to_string(), &[HOST_V4, HOST_V6], || {
            for tool in &tools {
                for table in ["filter", "nat"] {
                    run(tool, &["-t", table, "-F"]);
                    run(tool, &["-t", table, "-X"]);
                }
            }
        });
    }
}
