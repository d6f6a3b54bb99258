//! macvlan: what it makes on the host's segment, what it promises, and what it gives back.

use conformance::facts::{addresses, interfaces};
use conformance::net::{OUTSIDE_V4, OUTSIDE_V6, Rtnl, UPLINK};
use conformance::probe::{PATIENCE, ping};
use serde_json::{Value, json};

use super::segment::{
    ADDRESSES, VERSIONS, add, attach, failure, leaves_nothing, merge, with_previous,
};
use super::support::{fine, sandboxed};

/// macvlan on the host's uplink, with addresses of both families of that segment.
fn config(extra: Value) -> Value {
    let mut config = json!({"cniVersion": "1.0.0", "name": "segment", "type": "macvlan", "master": UPLINK,
        "ipam": ADDRESSES.ipam()});
    merge(&mut config, extra);
    config
}

sandboxed! {
    fn every_version_attaches_checks_and_detaches(lab) {
        for version in VERSIONS {
            let (netns, attachment) = attach(lab, &format!("c{}", version.replace('.', "-")));
            let config = config(json!({"cniVersion": version}));
            let before = lab.snapshot();
            let answer = add(lab, &config, &attachment);
            let result = answer.json().unwrap();
            for gateway in [OUTSIDE_V4, OUTSIDE_V6] {
                ping(&netns, gateway, PATIENCE).unwrap();
            }
            if !version.starts_with("0.1") && !version.starts_with("0.2") {
                let listed = interfaces(&result);
                assert_eq!(listed.len(), 1, "{result}");
                assert_eq!((listed[0].name.as_str(), listed[0].sandbox.as_str()), ("eth0", netns.path().to_str().unwrap()));
                let link = Rtnl::open(&netns).unwrap().link("eth0").unwrap();
                assert_eq!((link.facts.kind.as_str(), &link.facts.mac), ("macvlan", &listed[0].mac));
                assert!(addresses(&result).iter().all(|one| one.interface == Some(0)), "{result}");
            }
            let checked = lab.one("CHECK", &with_previous(&config, &answer), &attachment);
            if version < "0.4.0" {
                assert!(failure(&checked).contains("does not allow CHECK"), "{}", checked.text());
            } else {
                fine(&checked);
            }
            fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
            assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
            fine(&lab.one("DEL", &config, &attachment));
            leaves_nothing(lab, &before, &attachment);
        }
    }
}
