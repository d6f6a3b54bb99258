//! What the runtimes under kubelet do around the plugins, where they themselves cannot run here:
//! CRI-O with its cached configurations, CHECK and GC, and cri-dockerd with its old loopback.

use std::fs;
use std::path::Path;

use conformance::chain::{Attachment, Network, Verb, standard_path};
use conformance::libcni;
use conformance::net::{Netns, Rtnl};
use conformance::plugin::{Answer, Call};
use conformance::probe::{PATIENCE, ping};
use serde_json::{Value, json};

use super::support::{Lab, address_of, fine, network, plugins, sandboxed};

const LEASES: &str = "/var/lib/cni/networks/pods";

fn pods(version: &str) -> Value {
    json!({"cniVersion": version, "name": "pods", "plugins": [
        {"type": "bridge", "bridge": "pods0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
         "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.85.0.0/24"}], [{"subnet": "fd00:85::/64"}]],
                  "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}},
        {"type": "firewall"},
        {"type": "portmap", "capabilities": {"portMappings": true}},
        {"type": "bandwidth", "capabilities": {"bandwidth": true}},
        {"type": "tuning", "capabilities": {"mac": true}}]})
}

/// The arguments in CRI-O's order, with what it adds for everybody.
fn pod(id: &str, netns: &Path) -> Attachment {
    Attachment::new(id, netns)
        .args(&format!(
            "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID={id};K8S_POD_UID=0a1b2c3d"
        ))
        .capability("aliases", json!({"pods": ["web"]}))
        .capability("cgroupPath", json!("/kubepods.slice/pod0a1b2c3d"))
        .capability("io.kubernetes.cri.pod-annotations", json!({"a": "b"}))
}

fn gc(lab: &Lab, network: &Network, valid: &Value) {
    for plugin in &network.plugins {
        let mut config = plugin.clone();
        config["name"] = "pods".into();
        config["cniVersion"] = network.version.clone().into();
        config["cni.dev/attachments"] = valid.clone();
        config["cni.dev/valid-attachments"] = valid.clone();
        let name = plugin["type"].as_str().unwrap();
        let call = lab.ours.bare(name, "GC").unwrap();
        fine(&call.stdin(config.to_string()).run().unwrap());
    }
}

fn leases() -> Vec<String> {
    let entries = fs::read_dir(LEASES).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut names: Vec<String> = names
        .filter(|name| name.parse::<std::net::IpAddr>().is_ok())
        .collect();
    names.sort();
    names
}

/// VERSION as every runtime of the Go library asks it.
fn version_of(plugin: &str) -> Vec<String> {
    let mut call = Call::new(plugins().join(plugin)).env("CNI_COMMAND", "VERSION");
    for name in ["CNI_NETNS", "CNI_IFNAME", "CNI_PATH"] {
        call = call.env(name, "dummy");
    }
    let answer = call.stdin(r#"{"cniVersion":"1.1.0"}"#).run().unwrap();
    let answer = answer.json().unwrap();
    serde_json::from_value(answer["supportedVersions"].clone()).unwrap()
}

/// A call with capability arguments as cri-dockerd fills them in.
fn dockerd(verb: &str, plugin: &str, netns: &Path, config: &Value) -> Answer {
    Call::new(plugins().join(plugin))
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", "4d2e8f")
        .env("CNI_NETNS", netns)
        .env("CNI_IFNAME", "eth0")
        .env("CNI_PATH", plugins())
        .env("CNI_ARGS", "IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web;K8S_POD_INFRA_CONTAINER_ID=4d2e8f")
        .env("PATH", standard_path())
        .stdin(config.to_string())
        .run()
        .unwrap()
}

fn reaches_its_gateway(netns: &Netns) {
    ping(netns, "10.85.0.1".parse().unwrap(), PATIENCE).unwrap();
}

sandboxed! {
    fn cri_o_validates_checks_after_every_add_and_deletes_with_the_cached_configuration(lab) {
        for version in ["0.4.0", "1.0.0", "1.1.0"] {
            let list = pods(version);
            for plugin in list["plugins"].as_array().unwrap() {
                let known = version_of(plugin["type"].as_str().unwrap());
                assert!(known.contains(&version.to_owned()), "{plugin}");
            }
            fs::create_dir_all("/etc/cni/net.d").unwrap();
            let file = "/etc/cni/net.d/10-pods.conflist";
            fs::write(file, list.to_string()).unwrap();
            let netns = lab.container(&format!("c-{version}"));
            let cni = libcni::Cni::new([plugins()]);
            let loaded = libcni::list_from_file(Path::new(file)).unwrap();
            let conf = conf(&pod("9f8e7d", netns.path()));
            cni.add(&loaded, &conf).unwrap();
            cni.check(&loaded, &conf).unwrap();
            reaches_its_gateway(&netns);
            // Between the pod's start and its end the list on disk becomes another one.
            fs::write(file, r#"{"cniVersion":"1.0.0","name":"pods","plugins":[{"type":"loopback"}]}"#).unwrap();
            let list = Network::parse(&cached()).unwrap();
            let mut attachment = pod("9f8e7d", netns.path());
            attachment.result = result();
            assert!(attachment.result.is_some());
            lab.check(&list, &attachment);
            lab.del(&list, &attachment);
            assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
            assert!(leases().is_empty());
            fs::remove_dir_all("/var/lib/cni/results").unwrap();
        }
    }

    fn cri_o_without_pods_sends_null_and_everything_is_stale(lab) {
        let list = network(&pods("1.1.0"));
        let netns = lab.container("c1");
        let mut attachment = pod("9f8e7d", netns.path());
        lab.add(&list, &mut attachment);
        drop(netns);
        assert_eq!(leases().len(), 2);
        gc(lab, &list, &Value::Null);
        assert!(leases().is_empty(), "{:?}", leases());
    }

    fn cri_o_after_its_restart_frees_a_lease_of_nobody_and_leaves_its_pods_alone(lab) {
        let list = network(&pods("1.1.0"));
        let netns = lab.container("c1");
        let mut attachment = pod("9f8e7d", netns.path());
        let result = lab.add(&list, &mut attachment);
        fs::write(format!("{LEASES}/10.85.0.200"), "nobody-knows\r\neth0").unwrap();
        lab.ours.status(&list).unwrap();
        gc(lab, &list, &json!([{"containerID": "9f8e7d", "ifname": "eth0"}]));
        assert_eq!(leases(), ["10.85.0.2", "fd00:85::2"]);
        lab.check(&list, &attachment);
        assert_eq!(address_of(&result, true).to_string(), "10.85.0.2");
        reaches_its_gateway(&netns);
        lab.del(&list, &attachment);
    }

    fn the_second_del_of_a_pod_comes_without_namespace_and_costs_nothing(lab) {
        let list = network(&pods("1.0.0"));
        let netns = lab.container("c1");
        let mut attachment = pod("9f8e7d", netns.path())
            .capability("portMappings", json!([{"HostPort": 8080, "ContainerPort": 80, "Protocol": "tcp", "HostIP": ""}]))
            .capability("bandwidth", json!({"IngressRate": 10_000_000, "IngressBurst": 4_294_967_295_u64,
                                            "EgressRate": 10_000_000, "EgressBurst": 4_294_967_295_u64}));
        lab.add(&list, &mut attachment);
        lab.del(&list, &attachment);
        drop(netns);
        let before = lab.snapshot();
        attachment.netns = "".into();
        lab.del(&list, &attachment);
        attachment.result = None;
        lab.del(&list, &attachment);
        let diff = before.diff(&lab.snapshot());
        assert!(diff.is_empty(), "{diff}");
    }

    fn containerd_sets_loopback_up_beside_the_chain(lab) {
        let lo = network(&json!({"cniVersion": "0.3.1", "name": "cni-loopback", "plugins": [{"type": "loopback"}]}));
        let list = network(&pods("1.0.0"));
        let netns = lab.container("c1");
        let (mut first, mut second) = (pod("9f8e7d", netns.path()).ifname("lo"), pod("9f8e7d", netns.path()));
        std::thread::scope(|scope| {
            scope.spawn(|| lab.add(&lo, &mut first));
            scope.spawn(|| lab.add(&list, &mut second));
        });
        assert!(Rtnl::open(&netns).unwrap().link("lo").unwrap().facts.up);
        reaches_its_gateway(&netns);
        // One after the other, in forward order.
        lab.del(&lo, &first);
        lab.del(&list, &second);
        assert!(!lo.has(Verb::Check));
    }

    fn cri_dockerd_has_an_old_loopback_under_the_name_of_the_interface(lab) {
        let netns = lab.container("c1");
        let lo = json!({"cniVersion": "0.2.0", "name": "cni-loopback", "type": "loopback"});
        let answer = dockerd("ADD", "loopback", netns.path(), &lo);
        fine(&answer);
        let result = answer.json().unwrap();
        assert_eq!(result["cniVersion"], "0.2.0");
        assert!(result.get("interfaces").is_none() && result.get("ips").is_none(), "{result}");
        // No published ports is an empty list; the range is the node's.
        let runtime = json!({"portMappings": [], "ipRanges": [[{"subnet": "10.85.7.0/24"}]],
            "bandwidth": {"ingressRate": 1_000_000, "ingressBurst": 2_147_483_647, "egressRate": 1_000_000, "egressBurst": 2_147_483_647}});
        let bridge = json!({"cniVersion": "0.4.0", "name": "pods", "type": "bridge", "bridge": "pods0", "isGateway": true,
            "capabilities": {"ipRanges": true}, "ipam": {"type": "host-local"}, "runtimeConfig": runtime});
        let answer = dockerd("ADD", "bridge", netns.path(), &bridge);
        fine(&answer);
        let result = answer.json().unwrap();
        assert_eq!(result["ips"][0]["address"], "10.85.7.2/24");
        let mut previous = json!({"cniVersion": "0.4.0", "name": "pods", "type": "portmap",
            "capabilities": {"portMappings": true}, "runtimeConfig": runtime, "prevResult": result});
        fine(&dockerd("ADD", "portmap", netns.path(), &previous));
        previous["type"] = "bandwidth".into();
        fine(&dockerd("ADD", "bandwidth", netns.path(), &previous));
        for plugin in ["bandwidth", "portmap"] {
            previous["type"] = plugin.into();
            fine(&dockerd("DEL", plugin, netns.path(), &previous));
        }
        fine(&dockerd("DEL", "bridge", netns.path(), &bridge));
        fine(&dockerd("DEL", "loopback", netns.path(), &lo));
        assert!(leases().is_empty());
    }
}

/// The attachment as the library wants it.
fn conf(attachment: &Attachment) -> libcni::RuntimeConf {
    let pairs = attachment.args.as_deref().unwrap_or_default().split(';');
    let args = pairs
        .filter_map(|pair| pair.split_once('='))
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
    libcni::RuntimeConf {
        args: args.collect(),
        capability_args: attachment.capabilities.clone(),
        ..libcni::RuntimeConf::new(
            attachment.container_id.parse().unwrap(),
            &attachment.netns,
            attachment.ifname.parse().unwrap(),
        )
    }
}

/// The only file of the cache, which other runtimes read directly.
fn cache_file() -> Value {
    let files: Vec<_> = fs::read_dir("/var/lib/cni/results")
        .unwrap()
        .flatten()
        .collect();
    let file = files
        .iter()
        .find(|file| file.file_name().to_string_lossy().starts_with("pods-"))
        .unwrap();
    serde_json::from_slice(&fs::read(file.path()).unwrap()).unwrap()
}

/// The configuration in the cache, as CRI-O reads it.
fn cached() -> String {
    use base64::Engine;
    let file = cache_file();
    assert_eq!(
        (file["kind"].as_str(), file["ifName"].as_str()),
        (Some("cniCacheV1"), Some("eth0"))
    );
    let text = file["config"].as_str().unwrap();
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text)
        .unwrap();
    String::from_utf8(bytes).unwrap()
}

fn result() -> Option<Value> {
    Some(cache_file()["result"].clone())
}
