//! An ADD that fails.

use serde_json::{Value, json};

use crate::error::Result;
use crate::snapshot::Snapshot;

use super::site::{Container, Site, contains, equal, links};

/// An ADD that fails after its first change takes everything back, so that the next one works.
///
/// # Errors
/// What is not so.
pub fn failed_add_leaves_nothing(site: &Site) -> Result<()> {
    let Container { netns, attachment } = site.container("c1")?;
    let before = Snapshot::take(site.host)?;
    for (keys, words) in cases(site) {
        let text = site.bad("ADD", &site.config(&keys), &attachment)?;
        contains(&text, words)?;
        equal(words, &links(&netns)?, &Vec::new())?;
        site.is_as_before(&before)?;
    }
    let config = site.config(&json!({}));
    site.add(&config, &attachment)?;
    site.reaches(&netns)?;
    site.good("DEL", &config, &attachment)?;
    site.is_as_before(&before)
}

fn cases(site: &Site) -> Vec<(Value, &'static str)> {
    let ranges = json!([[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]]);
    let mut cases = vec![
        (json!({"ipam": {"type": "missing-ipam"}}), "missing-ipam"),
        (
            json!({"ipam": {"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/32"}]]}}),
            "10.1.0.0/32",
        ),
        (
            json!({"ipam": {"type": "host-local", "ranges": ranges,
                "routes": [{"dst": "198.51.100.0/24", "gw": "fd00:1::1"}]}}),
            "not of the same IP family",
        ),
        (
            json!({"ipam": {"type": "host-local", "ranges": ranges,
                "routes": [{"dst": "198.51.100.0/24", "gw": "10.1.0.255"}]}}),
            "198.51.100.0/24",
        ),
    ];
    if site.kind.has_master {
        cases.push((json!({"mtu": 1000}), "IPv6 needs at least 1280"));
    }
    cases
}
