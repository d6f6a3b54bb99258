//! What Mesos does around the plugins: single configurations, an environment from scratch, no cache.

use std::path::Path;

use conformance::chain::standard_path;
use conformance::facts::{addresses, spellings};
use conformance::net::{HOST_V4, OUTSIDE_V4, Rtnl};
use conformance::plugin::{Answer, Call};
use conformance::probe::Transport;
use serde_json::{Value, json};

use super::support::{address_of, ask, fine, plugins, sandboxed, serve};

/// A configuration without a version, with what Mesos adds to it.
fn config(name: &str, subnet: &str) -> Value {
    json!({"name": name, "type": "bridge", "bridge": format!("{name}0"), "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]], "routes": [{"dst": "0.0.0.0/0"}]},
        "args": {"org.apache.mesos": {"network_info": {
            "name": name,
            "labels": {"labels": [{"key": "rack", "value": "a1"}]},
            "port_mappings": [{"host_port": 31000, "container_port": 80, "protocol": "tcp"}]}}}})
}

/// Neither `CNI_ARGS` nor `HOME`; a namespace that is gone is left out.
fn call(verb: &str, config: &Value, id: &str, ifname: &str, netns: Option<&Path>) -> Answer {
    let mut call = Call::new(plugins().join("bridge"))
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", id)
        .env("CNI_PATH", plugins())
        .env("CNI_IFNAME", ifname)
        .env("PATH", standard_path())
        .stdin(config.to_string());
    if let Some(netns) = netns {
        call = call.env("CNI_NETNS", netns);
    }
    call.run().unwrap()
}

/// The address in the only keys that its parser knows.
fn early(answer: &Answer) -> Value {
    fine(answer);
    let result = answer.json().unwrap();
    assert!(result["ip4"]["ip"].is_string(), "{result}");
    assert!(
        result["ip4"]["routes"]
            .as_array()
            .unwrap()
            .iter()
            .all(|route| route["dst"].is_string()),
        "{result}"
    );
    assert_eq!(result["dns"], json!({}), "{result}");
    assert!(
        result.get("ips").is_none() && result.get("interfaces").is_none(),
        "{result}"
    );
    result
}

sandboxed! {
    fn a_configuration_without_a_version_in_an_environment_from_scratch(lab) {
        let config = config("mesos", "10.10.0.0/24");
        let netns = lab.container("c1");
        let id = "f0a1b2c3-5d6e-4f70-8a9b-0c1d2e3f4a5b";
        let result = early(&call("ADD", &config, id, "eth0", Some(netns.path())));
        let address = address_of(&result, true);
        let _server = serve(&netns, Transport::Tcp, address, 80, "task");
        ask(lab.host.netns(), Transport::Tcp, address, 80);
        let _outside = serve(lab.host.outside(), Transport::Tcp, OUTSIDE_V4, 7000, "outside");
        assert_eq!(ask(&netns, Transport::Tcp, OUTSIDE_V4, 7000).peer, HOST_V4);
        fine(&call("DEL", &config, id, "eth0", Some(netns.path())));
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
    }

    fn the_configuration_of_the_add_is_all_that_a_del_of_a_lost_container_has(lab) {
        let config = config("mesos", "10.10.0.0/24");
        let netns = lab.container("c1");
        // A nested container's id has the parent's before a dot.
        let id = "f0a1b2c3-5d6e-4f70-8a9b-0c1d2e3f4a5b.0a0b0c0d-1111-4222-8333-444455556666";
        let result = early(&call("ADD", &config, id, "eth0", Some(netns.path())));
        drop(netns);
        lab.rtnl().wait_without_ports("mesos0", conformance::probe::PATIENCE).unwrap();
        for _ in 0..2 {
            fine(&call("DEL", &config, id, "eth0", None));
        }
        let after = lab.snapshot();
        let owners = addresses(&result).into_iter().flat_map(|one| spellings(one.address.ip()));
        for owner in owners.chain([id.to_owned()]) {
            assert!(after.mentioning(&owner).is_empty(), "{:?}", after.mentioning(&owner));
        }
    }

    fn networks_of_one_container_are_attached_in_parallel(lab) {
        let configs: Vec<Value> = (0..4).map(|number| config(&format!("net{number}"), &format!("10.1{number}.0.0/24"))).collect();
        let netns = lab.container("c1");
        let id = "f0a1b2c3-5d6e-4f70-8a9b-0c1d2e3f4a5b";
        for verb in ["ADD", "DEL"] {
            std::thread::scope(|scope| {
                for (number, config) in configs.iter().enumerate() {
                    let netns = &netns;
                    scope.spawn(move || {
                        let answer = call(verb, config, id, &format!("eth{number}"), Some(netns.path()));
                        fine(&answer);
                        if verb == "ADD" {
                            early(&answer);
                        }
                    });
                }
            });
            let links = Rtnl::open(&netns).unwrap().links().unwrap();
            assert_eq!(links.len(), if verb == "ADD" { 5 } else { 1 }, "{links:?}");
        }
    }
}
