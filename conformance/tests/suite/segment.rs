//! What the tests of plugins on the host's own segment share: addresses of that segment, and ways to disturb it.

use conformance::chain::Attachment;
use conformance::net::Netns;
use conformance::plugin::Answer;
use conformance::snapshot::Snapshot;
use serde_json::{Value, json};

use super::support::{Lab, fine};

/// All versions of the specification.
pub const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

/// How the container ids of these tests begin.
pub const ID: &str = "container-";

/// Where addresses come from.
pub struct Segment {
    pub v4: &'static str,
    pub v6: &'static str,
    pub first_v4: &'static str,
    pub first_v6: &'static str,
    pub gateway_v4: &'static str,
    pub gateway_v6: &'static str,
}

/// The segment between the host and the outside, which is the gateway.
pub const ADDRESSES: Segment = Segment {
    v4: "192.0.2.0/24",
    v6: "2001:db8::/64",
    first_v4: "192.0.2.100",
    first_v6: "2001:db8::100",
    gateway_v4: "192.0.2.9",
    gateway_v6: "2001:db8::9",
};

impl Segment {
    /// host-local with a range of each family and default routes.
    pub fn ipam(&self) -> Value {
        json!({"type": "host-local", "ranges": [
            [{"subnet": self.v4, "rangeStart": self.first_v4, "gateway": self.gateway_v4}],
            [{"subnet": self.v6, "rangeStart": self.first_v6, "gateway": self.gateway_v6}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]})
    }
}

pub fn merge(config: &mut Value, extra: Value) {
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
}

pub fn with_previous(config: &Value, answer: &Answer) -> Value {
    let mut config = config.clone();
    config["prevResult"] = answer.json().unwrap();
    config
}

/// ADD that must work; the answer carries the result.
#[track_caller]
pub fn add(lab: &Lab, config: &Value, attachment: &Attachment) -> Answer {
    let answer = lab.one("ADD", config, attachment);
    fine(&answer);
    answer
}

#[track_caller]
pub fn failure(answer: &Answer) -> String {
    let error = answer
        .error()
        .unwrap_or_else(|| panic!("no error object: {}", answer.text()));
    format!("{}; {}", error.msg, error.details)
}

pub fn attach(lab: &Lab, name: &str) -> (Netns, Attachment) {
    let netns = lab.container(name);
    let attachment = Attachment::new(&format!("{ID}{name}"), netns.path());
    (netns, attachment)
}

/// The host is as it was, but for the directory of the leases; and no lease is there.
#[track_caller]
pub fn leaves_nothing(lab: &Lab, before: &Snapshot, attachment: &Attachment) {
    let diff = before.diff(&lab.snapshot());
    let left: Vec<String> = diff
        .added
        .iter()
        .chain(&diff.removed)
        .map(ToString::to_string)
        .filter(|item| {
            !item.contains("/var/lib/cni/networks") || item.contains(&attachment.container_id)
        })
        .collect();
    assert!(left.is_empty(), "{left:#?}");
}
