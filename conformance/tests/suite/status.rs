//! STATUS fails when ADD would, and only then.

use conformance::chain::Attachment;
use conformance::plugin::Answer;
use serde_json::{Value, json};

use super::support::{Lab, fine, sandboxed};

fn config(ranges: Value) -> Value {
    json!({"cniVersion": "1.1.0", "name": "net", "type": "bridge", "bridge": "br0", "isGateway": true,
        "ipam": {"type": "host-local", "ranges": ranges}})
}

fn v4() -> Value {
    json!([[{"subnet": "10.1.2.0/24"}]])
}

fn dual() -> Value {
    json!([[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00:1::/64"}]])
}

/// STATUS says what ADD then meets: the same words, but its own code.
#[track_caller]
fn says_what_add_meets(lab: &Lab, config: &Value, words: &str) {
    let netns = lab.container("c1");
    let attachment = Attachment::new("c1", netns.path());
    let before = lab.snapshot();
    let text = |answer: &Answer, code: Option<u64>| {
        let error = answer
            .error()
            .unwrap_or_else(|| panic!("worked: {}", answer.text()));
        assert!(
            code.is_none_or(|code| error.code == code),
            "{}",
            answer.text()
        );
        assert!(error.msg.contains(words), "{}", answer.text());
    };
    text(&lab.one("STATUS", config, &attachment), Some(50));
    text(&lab.one("ADD", config, &attachment), None);
    // The directory of the leases, empty of leases, may stay.
    let leases = " file /var/lib/cni/networks";
    let changed = before.diff(&lab.snapshot()).to_string();
    let changed: Vec<&str> = changed
        .lines()
        .filter(|line| !line.contains(leases))
        .collect();
    assert_eq!(changed, [""; 0]);
}

fn set(path: &str, value: &str) {
    std::fs::write(format!("/proc/sys/net/{path}"), value).unwrap();
}

sandboxed! {
    fn is_fine_before_and_beside_an_attachment(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = config(dual());
        fine(&lab.one("STATUS", &config, &attachment));
        fine(&lab.one("ADD", &config, &attachment));
        fine(&lab.one("STATUS", &config, &attachment));
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn tells_of_a_bridge_that_is_none(lab) {
        let other = lab.container("other");
        lab.rtnl().add_veth("br0", &other, "far").unwrap();
        says_what_add_meets(lab, &config(v4()), "not a bridge");
    }

    fn tells_of_a_bridge_with_an_address_in_the_way(lab) {
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl().add_address("br0", "10.99.0.1/24".parse().unwrap()).unwrap();
        lab.rtnl().set_up("br0").unwrap();
        says_what_add_meets(lab, &config(v4()), "10.99.0.1/24");
        let mut forced = config(v4());
        forced["forceAddress"] = true.into();
        let netns = lab.container("c2");
        let attachment = Attachment::new("c2", netns.path());
        fine(&lab.one("STATUS", &forced, &attachment));
        fine(&lab.one("ADD", &forced, &attachment));
    }

    fn tells_of_ipv6_that_is_off(lab) {
        set("ipv6/conf/default/disable_ipv6", "1");
        says_what_add_meets(lab, &config(dual()), "IPv6 is disabled on this host");
        let netns = lab.container("c2");
        let attachment = Attachment::new("c2", netns.path());
        fine(&lab.one("STATUS", &config(v4()), &attachment));
        fine(&lab.one("ADD", &config(v4()), &attachment));
    }

    fn tells_of_a_kernel_without_vlans_on_bridges(lab) {
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl().set_up("br0").unwrap();
        let mut tagged = config(v4());
        tagged["vlan"] = 100.into();
        // A bridge that does not filter, or a kernel that cannot: either way nothing would be apart.
        says_what_add_meets(lab, &tagged, "filter VLANs");
    }
}
