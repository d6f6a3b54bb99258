//! Both kinds of plugin on one host: what one made, the other takes away.

use conformance::chain::{Attachment, Network, Runtime};
use conformance::facts::addresses;
use conformance::net::HOST_V4;
use conformance::probe::Transport;
use conformance::snapshot::Item;
use serde_json::{Value, json};

use super::support::{
    Lab, address_of, ask, fine, network, one_of, reference, sandboxed, serve, tool,
};

/// A list in which both kinds leave the same objects: leases, and rules of iptables.
fn list() -> Network {
    list_of("0.4.0")
}

fn list_of(version: &str) -> Network {
    network(&json!({"cniVersion": version, "name": "mixed", "plugins": [
        {"type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true, "ipMasqBackend": "iptables",
         "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}], [{"subnet": "fd00:77::/64"}]],
                  "routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "firewall", "backend": "iptables"},
        {"type": "portmap", "backend": "iptables", "capabilities": {"portMappings": true}},
    ]}))
}

fn ports() -> Value {
    json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}, {"hostPort": 5353, "containerPort": 53, "protocol": "udp"}])
}

/// ADD by one, traffic, DEL by the other; nothing stays, but that the reference set does not know where we note whose
/// connections to mark. GC does.
fn across(lab: &Lab, name: &str, maker: &Runtime, remover: &Runtime) {
    let list = list();
    let netns = lab.container(name);
    let id = format!("container-{name}");
    let mut attachment = Attachment::new(&id, netns.path()).capability("portMappings", ports());
    let result = maker
        .add(&list, &mut attachment)
        .unwrap_or_else(|error| panic!("{error}"));
    {
        let _server = serve(&netns, Transport::Tcp, address_of(&result, true), 80, name);
        ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
    }
    remover
        .del(&list, &attachment)
        .unwrap_or_else(|error| panic!("{error}"));
    let noted = lab.snapshot();
    let noted = noted.mentioning(&id);
    let is_note = |item: &&Item| matches!(item, Item::Element { set, .. } if set.starts_with("known") || set == "owners");
    assert!(noted.iter().all(is_note), "{noted:?}");
    lab.ours
        .gc(&list_of("1.1.0"), Some(&[]))
        .unwrap_or_else(|error| panic!("{error}"));
    let after = lab.snapshot();
    for address in addresses(&result) {
        for spelling in conformance::facts::spellings(address.address.ip()) {
            assert!(
                after.mentioning(&spelling).is_empty(),
                "{:?}",
                after.mentioning(&spelling)
            );
        }
    }
    for mention in [id.as_str(), "CNI-DN-", "port of br0"] {
        assert!(
            after.mentioning(mention).is_empty(),
            "{:?}",
            after.mentioning(mention)
        );
    }
}

sandboxed! {
    fn what_the_reference_set_made_ours_takes_away(lab) {
        tool("iptables", "iptables");
        across(lab, "theirs", &reference(), &lab.ours);
        across(lab, "theirs-again", &reference(), &lab.ours);
    }

    fn what_ours_made_the_reference_set_takes_away(lab) {
        tool("iptables", "iptables");
        across(lab, "ours", &lab.ours, &reference());
        across(lab, "ours-again", &lab.ours, &reference());
    }

    fn a_lost_container_of_the_reference_set_is_taken_away(lab) {
        tool("iptables", "iptables");
        let list = list();
        let netns = lab.container("lost");
        let mut attachment =
            Attachment::new("container-lost", netns.path()).capability("portMappings", ports());
        reference().add(&list, &mut attachment).unwrap();
        drop(netns);
        lab.rtnl().wait_without_ports("br0", conformance::probe::PATIENCE).unwrap();
        attachment.netns = "".into();
        lab.del(&list, &attachment);
        let after = lab.snapshot();
        for mention in ["container-lost", "CNI-DN-", "0a4d0002"] {
            assert!(after.mentioning(mention).is_empty(), "{:?}", after.mentioning(mention));
        }
    }

    fn both_share_one_directory_of_leases(lab) {
        let config = json!({"cniVersion": "1.0.0", "name": "shared", "type": "host-local",
            "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}});
        // The reference set of that release knows versions up to 1.0.0.
        let theirs = reference();
        let mut seen = Vec::new();
        for number in 0..6 {
            let attachment = Attachment::new(&format!("c{number}"), std::path::Path::new("/run/netns/none"));
            let runtime = if number % 2 == 0 { &lab.ours } else { &theirs };
            let answer = one_of(runtime, "ADD", &config, &attachment);
            fine(&answer);
            seen.extend(addresses(&answer.json().unwrap()).into_iter().map(|one| one.address.to_string()));
        }
        let expected: Vec<String> = (2..8).map(|host| format!("10.1.0.{host}/24")).collect();
        assert_eq!(seen, expected, "both follow one counter");
        for number in 0..6 {
            let attachment = Attachment::new(&format!("c{number}"), std::path::Path::new("/run/netns/none"));
            let runtime = if number % 2 == 1 { &lab.ours } else { &theirs };
            fine(&one_of(runtime, "DEL", &config, &attachment));
        }
        let left = std::fs::read_dir("/var/lib/cni/networks/shared").unwrap();
        let names: Vec<String> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.iter().all(|name| name.parse::<std::net::IpAddr>().is_err()), "{names:?}");
    }

    fn both_at_once_never_share_an_address(lab) {
        let config = json!({"cniVersion": "1.0.0", "name": "race", "type": "host-local",
            "ipam": {"type": "host-local", "subnet": "10.1.0.0/24"}});
        let theirs = reference();
        let seen: Vec<String> = std::thread::scope(|scope| {
            let running: Vec<_> = (0..40)
                .map(|number| {
                    let (config, theirs) = (&config, &theirs);
                    scope.spawn(move || {
                        let id = format!("c{number}");
                        let attachment = Attachment::new(&id, std::path::Path::new("/run/netns/none"));
                        let runtime = if number % 2 == 0 { &lab.ours } else { theirs };
                        let answer = one_of(runtime, "ADD", config, &attachment);
                        fine(&answer);
                        addresses(&answer.json().unwrap())[0].address.to_string()
                    })
                })
                .collect();
            running.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let distinct: std::collections::HashSet<&String> = seen.iter().collect();
        assert_eq!(distinct.len(), 40);
    }
}
