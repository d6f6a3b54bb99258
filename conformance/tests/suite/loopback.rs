//! loopback: on at ADD, and true to the result it is given.

use conformance::chain::Attachment;
use conformance::net::Rtnl;
use serde_json::{Value, json};

use super::support::{fine, refused, sandboxed};

fn config(version: &str) -> Value {
    json!({"cniVersion": version, "name": "lo-net", "type": "loopback"})
}

sandboxed! {
    fn add_switches_lo_on_and_check_notices_when_it_is_off(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let rtnl = Rtnl::open(&netns).unwrap();
        assert!(!rtnl.link("lo").unwrap().facts.up);
        let answer = lab.one("ADD", &config("1.0.0"), &attachment);
        fine(&answer);
        assert!(rtnl.link("lo").unwrap().facts.up);
        let result = answer.json().unwrap();
        assert_eq!(result["interfaces"][0]["name"], "lo");
        assert_eq!(result["interfaces"][0]["sandbox"], netns.path().to_str().unwrap());
        let addresses: Vec<&str> =
            result["ips"].as_array().unwrap().iter().filter_map(|ip| ip["address"].as_str()).collect();
        assert_eq!(addresses, ["127.0.0.1/8", "::1/128"]);
        fine(&lab.one("CHECK", &config("1.0.0"), &attachment));
        rtnl.set_down("lo").unwrap();
        let answer = lab.one("CHECK", &config("1.0.0"), &attachment);
        assert!(answer.error().is_some(), "{}", answer.text());
        fine(&lab.one("DEL", &config("1.0.0"), &attachment));
        fine(&lab.one("DEL", &config("1.0.0"), &attachment));
    }

    fn early_versions_get_their_true_shapes(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for version in ["0.1.0", "0.2.0", ""] {
            let answer = lab.one("ADD", &config(version), &attachment);
            fine(&answer);
            let result = answer.json().unwrap();
            assert_eq!(result["ip4"]["ip"], "127.0.0.1/8", "{version:?}: {result}");
            assert_eq!(result["ip6"]["ip"], "::1/128", "{version:?}: {result}");
            assert!(result.get("interfaces").is_none(), "{version:?}: {result}");
        }
        for version in ["0.3.0", "0.3.1", "0.4.0"] {
            let answer = lab.one("ADD", &config(version), &attachment);
            fine(&answer);
            let result = answer.json().unwrap();
            assert_eq!(result["cniVersion"], version);
            assert_eq!(result["ips"][0]["version"], "4", "{version}: {result}");
            assert_eq!(result["ips"][1]["version"], "6", "{version}: {result}");
        }
    }

    fn a_result_that_came_before_is_passed_on(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let previous = json!({
            "cniVersion": "0.4.0",
            "interfaces": [{"name": "eth7", "mac": "00:11:22:33:44:55", "sandbox": "/x"}],
            "ips": [{"version": "4", "address": "10.1.2.3/24", "interface": 0}],
            "routes": [{"dst": "0.0.0.0/0"}],
            "dns": {"nameservers": ["10.1.2.1"]},
        });
        let mut config = config("0.4.0");
        config["prevResult"] = previous.clone();
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        let result = answer.json().unwrap();
        for key in ["interfaces", "ips", "routes"] {
            assert_eq!(result[key], previous[key], "{key}");
        }
        assert_eq!(result["dns"]["nameservers"], previous["dns"]["nameservers"]);
    }

    fn a_foreign_address_on_lo_is_an_error(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let rtnl = Rtnl::open(&netns).unwrap();
        rtnl.add_address("lo", "10.9.9.9/32".parse().unwrap()).unwrap();
        let answer = lab.one("ADD", &config("1.0.0"), &attachment);
        let error = answer.error().unwrap_or_else(|| panic!("{}", answer.text()));
        assert!(format!("{} {}", error.msg, error.details).contains("10.9.9.9"), "{error:?}");
    }

    fn check_of_an_early_version_is_refused(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        // containerd sends loopback with 0.3.1, always.
        let text = refused(&lab.one("CHECK", &config("0.3.1"), &attachment), 1);
        assert!(text.contains("does not allow CHECK"), "{text}");
    }

    fn del_without_a_namespace_needs_nothing(lab) {
        let mut attachment = Attachment::new("c1", std::path::Path::new(""));
        fine(&lab.one("DEL", &config("1.0.0"), &attachment));
        attachment.netns = "/run/netns/never-was".into();
        fine(&lab.one("DEL", &config("1.0.0"), &attachment));
    }
}
