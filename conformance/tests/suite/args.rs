//! CNI_ARGS and JSON as real runtimes write them.

use conformance::chain::Attachment;
use conformance::facts::addresses;
use serde_json::json;

use super::support::{fine, sandboxed};

sandboxed! {
    fn an_argument_for_ipam_does_not_disturb_the_bridge(lab) {
        let netns = lab.container("c1");
        let config = json!({"cniVersion": "1.0.0", "name": "n", "type": "bridge", "bridge": "br0",
            "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}});
        for (number, args) in ["IP=10.77.0.50", "IP=10.77.0.51;", "IgnoreUnknown=1;IP=10.77.0.52;FOO=a=b", ";;IP=10.77.0.53"]
            .into_iter()
            .enumerate()
        {
            let attachment = Attachment::new("c1", netns.path()).args(args).ifname(&format!("eth{number}"));
            let answer = lab.one("ADD", &config, &attachment);
            fine(&answer);
            let got = addresses(&answer.json().unwrap())[0].address.ip().to_string();
            assert_eq!(got, format!("10.77.0.5{number}"), "{args}");
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn del_survives_any_argument(lab) {
        let netns = lab.container("c1");
        let config = json!({"cniVersion": "1.0.0", "name": "n", "type": "bridge", "bridge": "br0",
            "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}});
        let attachment = Attachment::new("c1", netns.path());
        for args in ["A", "A=b=c", ";", "MAC=nonsense", "IP=nonsense", "\u{1}=\u{2}"] {
            fine(&lab.one("ADD", &config, &attachment));
            fine(&lab.one("DEL", &config, &attachment.clone().args(args)));
            assert!(conformance::net::Rtnl::open(&netns).unwrap().link("eth0").is_err(), "{args:?}");
        }
        let leases = std::fs::read_dir("/var/lib/cni/networks/n").unwrap();
        let names: Vec<String> = leases.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(names.iter().all(|name| !name.starts_with("10.")), "{names:?}");
    }

    fn keys_are_matched_without_regard_to_case_and_null_is_unset(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = json!({"CniVersion": "1.0.0", "NAME": "n", "type": "bridge", "Bridge": "other",
            "bridge": "br7", "ISGATEWAY": true, "ipMasq": null, "mtu": null, "unknown": {"a": [1]},
            "IPAM": {"TYPE": "host-local", "Subnet": "10.77.0.0/24"}});
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        let result = answer.json().unwrap();
        assert_eq!(result["interfaces"][0]["name"], "br7", "of two spellings the last one counts");
        assert_eq!(result["ips"][0]["gateway"], "10.77.0.1");
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn numbers_too_large_for_a_float_are_no_problem(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = json!({"cniVersion": "1.0.0", "name": "n", "type": "portmap",
            "other": 12_345_678_901_234_567_890_u64,
            "prevResult": {"cniVersion": "1.0.0", "ips": [{"address": "10.1.0.2/24"}]}});
        fine(&lab.one("ADD", &config, &attachment));
    }
}
