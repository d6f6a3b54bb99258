//! What is refused before anything is changed.

use serde_json::json;

use crate::error::Result;
use crate::net::Rtnl;
use crate::snapshot::Snapshot;

use super::site::{Container, Site, contains, equal, ip, links};

/// A name that is taken, `lo`, and whatever is wrong with the configuration: an error that says so, before a lease is
/// taken or a link made.
///
/// # Errors
/// What is not so.
pub fn refused_before_any_change(site: &Site) -> Result<()> {
    let rtnl = site.host.rtnl();
    let spare = site.container("spare")?;
    rtnl.add_bridge("br0")?;
    rtnl.add_veth("port0", &spare.netns, "far0")?;
    rtnl.set_master("port0", "br0")?;
    rtnl.add_veth("down0", &spare.netns, "far1")?;
    let Container { netns, attachment } = site.container("c1")?;
    let taken = Rtnl::open(&netns)?;
    taken.add_veth("net0", &spare.netns, "far2")?;
    let before = Snapshot::take(site.host)?;
    let inside = ip(&netns, "-o link")?;
    for (keys, words) in &site.kind.refused {
        let text = site.bad("ADD", &site.config(keys), &attachment)?;
        contains(&text, words)?;
    }
    for name in ["net0", "lo"] {
        let attachment = attachment.clone().ifname(name);
        let text = site.bad("ADD", &site.config(&json!({})), &attachment)?;
        contains(&text, &format!("{name:?} already exists"))?;
    }
    equal("links", &links(&netns)?, &vec!["net0".to_owned()])?;
    equal("links of the container", &ip(&netns, "-o link")?, &inside)?;
    let diff = before.diff(&Snapshot::take(site.host)?);
    equal("changes", &diff.to_string(), &String::new())
}
