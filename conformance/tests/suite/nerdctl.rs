//! What nerdctl does around the plugins.

use conformance::chain::Attachment;
use conformance::net::{HOST_V4, Rtnl};
use conformance::probe::{PATIENCE, Transport};
use serde_json::json;

use super::support::{address_of, ask, network, sandboxed, serve};

sandboxed! {
    fn every_add_has_a_del_without_namespace_before_it(lab) {
        let list = network(&json!({"cniVersion": "1.0.0", "name": "bridge", "plugins": [
            {"type": "bridge", "bridge": "nerdctl0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
             "ipam": {"type": "host-local", "ranges": [[{"gateway": "10.4.0.1", "subnet": "10.4.0.0/24"}]],
                      "routes": [{"dst": "0.0.0.0/0"}]}},
            {"type": "portmap", "capabilities": {"portMappings": true}},
            {"type": "firewall", "ingressPolicy": "same-bridge"},
            {"type": "tuning"}]}));
        let ports = json!([{"HostPort": 8080, "ContainerPort": 80, "Protocol": "tcp", "HostIP": "0.0.0.0"}]);
        for round in 0..3 {
            // A restart is a new namespace under the same id; the old one's end told nobody.
            let netns = lab.container(&format!("round{round}"));
            let mut attachment = Attachment::new("default-4af6d2b07d5e", netns.path())
                .args("IgnoreUnknown=1;IP=10.4.0.9;MAC=02:42:0a:04:00:09;NERDCTL_CNI_DHCP_HOSTNAME=web")
                .capability("portMappings", ports.clone());
            let mut lost = attachment.clone();
            lost.netns = "".into();
            lab.del(&list, &lost);
            let result = lab.add(&list, &mut attachment);
            assert_eq!(address_of(&result, true).to_string(), "10.4.0.9");
            let link = Rtnl::open(&netns).unwrap().link("eth0").unwrap();
            assert_eq!(link.facts.mac, "02:42:0a:04:00:09");
            let server = serve(&netns, Transport::Tcp, address_of(&result, true), 80, "web");
            ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
            drop((server, netns));
            lab.rtnl().wait_without_ports("nerdctl0", PATIENCE).unwrap();
        }
        let mut lost = Attachment::new("default-4af6d2b07d5e", "".as_ref());
        lost.capabilities.insert("portMappings".into(), ports);
        lab.del(&list, &lost);
        let after = lab.snapshot();
        for mention in ["default-4af6d2b07d5e", "0a040009", "10.4.0.9"] {
            assert!(after.mentioning(mention).is_empty(), "{:?}", after.mentioning(mention));
        }
    }
}
