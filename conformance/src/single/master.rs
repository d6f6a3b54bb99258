//! Where the master is and who names it.

use serde_json::{Value, json};

use crate::error::Result;
use crate::net::Rtnl;

use super::kind::Gateway;
use super::site::{Container, Site, contains, equal, ip, links};

/// Without a name the default route's interface is the master; without a default route that is an error.
///
/// # Errors
/// What is not so.
pub fn of_default_route(site: &Site) -> Result<()> {
    let Container { netns, attachment } = site.container("c1")?;
    let config = site.config(&json!({"master": ""}));
    contains(
        &site.bad("ADD", &config, &attachment)?,
        "no default route interface found",
    )?;
    // A default route that leads nowhere names no interface, and one of a worse metric is not the one.
    ip(
        site.host.netns(),
        "link add worse0 type veth peer name worse1",
    )?;
    ip(site.host.netns(), "link set worse0 up")?;
    ip(site.host.netns(), "route add unreachable default metric 1")?;
    ip(site.host.netns(), "route add default dev worse0 metric 900")?;
    ip(
        site.host.netns(),
        "route add default via 192.0.2.9 metric 100",
    )?;
    let with = site.add(&config, &attachment)?;
    site.reaches(&netns)?;
    // Nothing was promised about the route, so CHECK does not miss it.
    ip(site.host.netns(), "route del default metric 100")?;
    site.good("CHECK", &with, &attachment)?;
    site.good("DEL", &with, &attachment)?;
    Ok(())
}

/// The master is in the container.
///
/// # Errors
/// What is not so.
pub fn in_container(site: &Site) -> Result<()> {
    let Container { netns, attachment } = site.container("c1")?;
    let outside = site.host.outside();
    let rtnl = Rtnl::open(&netns)?;
    rtnl.add_veth("net0", outside, "far0")?;
    rtnl.set_up("net0")?;
    ip(outside, "link set far0 up")?;
    let far = far_end(site)?;
    ip(outside, &format!("addr add 10.20.0.9/24 dev {far}"))?;
    ip(outside, &format!("addr add fd00:20::9/64 dev {far} nodad"))?;
    let mut inner = Site {
        host: site.host,
        runtime: site.runtime,
        kind: site.kind.clone(),
    };
    inner.kind.segment = super::Segment {
        v4: "10.20.0.0/24",
        v6: "fd00:20::/64",
        first_v4: "10.20.0.100",
        first_v6: "fd00:20::100",
        gateway: Some(Gateway {
            v4: "10.20.0.9",
            v6: "fd00:20::9",
            link: "far0",
        }),
    };
    let config = inner.config(&json!({"master": "net0", "linkInContainer": true}));
    let with = inner.add(&config, &attachment)?;
    inner.reaches(&netns)?;
    inner.good("CHECK", &with, &attachment)?;
    inner.good("DEL", &with, &attachment)?;
    equal("links", &links(&netns)?, &vec!["net0".to_owned()])?;
    inner.good("DEL", &config, &attachment)?;
    let mut hostless = config.clone();
    super::site::merge(&mut hostless, &json!({"linkInContainer": false}));
    contains(
        &inner.bad("ADD", &hostless, &attachment)?,
        "\"net0\" not found",
    )
}

/// The interface outside that the container's frames reach.
fn far_end(site: &Site) -> Result<&'static str> {
    let tagged = site.kind.keys.get("vlanId").and_then(Value::as_u64);
    let Some(id) = tagged else {
        return Ok("far0");
    };
    let outside = site.host.outside();
    ip(
        outside,
        &format!("link add link far0 name far0.v type vlan id {id}"),
    )?;
    ip(outside, "link set far0.v up")?;
    Ok("far0.v")
}
