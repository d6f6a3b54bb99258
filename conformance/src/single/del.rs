//! DEL cleans up, whatever is missing or broken.

use std::time::Instant;

use serde_json::{Value, json};

use crate::chain::Attachment;
use crate::error::Result;
use crate::net::Rtnl;
use crate::probe::PATIENCE;
use crate::snapshot::Snapshot;

use super::site::{Container, Site, equal, holds, leases, links, merge};

/// What becomes of an attachment before its DEL.
type Spoil = fn(&mut Value, &mut Attachment);

const SPOILS: &[(&str, Spoil)] = &[
    ("a key of the wrong kind", |config, _| {
        merge(config, &json!({"mtu": "many", "dns": 7, "mode": []}));
    }),
    ("values that ADD refuses", |config, _| {
        merge(
            config,
            &json!({"mtu": -5, "mode": "x", "vlanId": 9999, "dad": "x", "mac": "x"}),
        );
    }),
    ("a master that is gone", |config, _| {
        merge(config, &json!({"master": "nowhere"}));
    }),
    ("no master", |config, _| {
        merge(config, &json!({"master": ""}));
    }),
    ("a master said to be in the container", |config, _| {
        merge(config, &json!({"linkInContainer": true}));
    }),
    ("a result of somebody else", |config, _| {
        merge(
            config,
            &json!({"prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "a"}, {"name": "b"}]}}),
        );
    }),
    ("broken arguments", |_, attachment| {
        attachment.args = Some("A=b=c;;broken".into());
    }),
];

/// Another's way to lose a namespace, with what its path is at DEL then.
const LOST: &[&str] = &["", "/run/netns/never-was", "/run/a-plain-file"];

/// DEL works on what never was, twice, with a broken configuration, and with the namespace gone; it leaves neither link
/// nor lease. An IPAM plugin that cannot be called is an error, but the link goes all the same.
///
/// # Errors
/// What is not so.
pub fn del_is_patient(site: &Site) -> Result<()> {
    let never = site.container("never")?;
    site.good("DEL", &site.config(&json!({})), &never.attachment)?;
    site.good("DEL", &site.flat(&json!({})), &never.attachment)?;
    let before = Snapshot::take(site.host)?;
    let container = site.container("spoilt")?;
    for (what, spoil) in SPOILS {
        let mut config = site.config(&json!({}));
        let mut attachment = container.attachment.clone();
        site.add(&config, &attachment)?;
        spoil(&mut config, &mut attachment);
        site.good("DEL", &config, &attachment)?;
        equal(what, &links(&container.netns)?, &Vec::new())?;
        equal(what, &leases()?, &Vec::new())?;
    }
    without_ipam_plugin(site, &container)?;
    for (number, path) in LOST.iter().enumerate() {
        lost(site, &format!("lost{number}"), path)?;
    }
    drop(container);
    // The kernel takes the links of a lost namespace away in its own time.
    let end = Instant::now() + PATIENCE;
    while site.is_as_before(&before).is_err() && Instant::now() < end {}
    site.is_as_before(&before)
}

fn without_ipam_plugin(site: &Site, container: &Container) -> Result<()> {
    let config = site.config(&json!({}));
    site.add(&config, &container.attachment)?;
    let mut broken = config.clone();
    merge(&mut broken, &json!({"ipam": {"type": "missing-ipam"}}));
    site.bad("DEL", &broken, &container.attachment)?;
    equal("links", &links(&container.netns)?, &Vec::new())?;
    site.good("DEL", &config, &container.attachment)?;
    equal("leases", &leases()?, &Vec::new())
}

fn lost(site: &Site, name: &str, path: &str) -> Result<()> {
    std::fs::write("/run/a-plain-file", "").map_err(|source| crate::Error::System {
        what: "write /run/a-plain-file".into(),
        source,
    })?;
    let Container {
        netns,
        mut attachment,
    } = site.container(name)?;
    let config = site.config(&json!({}));
    let with = site.add(&config, &attachment)?;
    drop(netns);
    attachment.netns = path.into();
    site.good("DEL", &with, &attachment)?;
    site.good("DEL", &config, &attachment)?;
    let _ = std::fs::remove_file("/run/a-plain-file");
    equal("leases", &leases()?, &Vec::new())
}

/// A link of another kind that has taken the place of ours is not ours to remove, and neither is `lo`.
///
/// # Errors
/// What is not so.
pub fn foreign_links_stay(site: &Site) -> Result<()> {
    let Container { netns, attachment } = site.container("c1")?;
    let config = site.config(&json!({}));
    site.add(&config, &attachment)?;
    let rtnl = Rtnl::open(&netns)?;
    rtnl.delete_link("eth0")?;
    rtnl.add_veth("eth0", site.host.outside(), "theirs")?;
    site.good("DEL", &config, &attachment)?;
    holds("their link stays", rtnl.link("eth0").is_ok())?;
    equal("leases", &leases()?, &Vec::new())?;
    let lo = attachment.ifname("lo");
    site.good("DEL", &config, &lo)?;
    holds("lo stays", rtnl.link("lo").is_ok())
}
