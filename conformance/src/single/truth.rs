//! CHECK.

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::facts;
use crate::net::{Netns, Rtnl};

use super::site::{Container, Site, ip, merge};

/// Something that happens to an attachment; it may say that it cannot happen to this kind.
type Breakage = fn(&Site, &Netns, &mut Value) -> Result<bool>;

const BREAKAGES: &[(&str, Breakage)] = &[
    ("the interface is gone", |_, netns, _| {
        Rtnl::open(netns)?.delete_link("eth0")?;
        Ok(true)
    }),
    ("the interface is down", |_, netns, _| {
        Rtnl::open(netns)?.set_down("eth0")?;
        Ok(true)
    }),
    ("the addresses are gone", |_, netns, _| {
        Rtnl::open(netns)?.flush_addresses("eth0")?;
        Ok(true)
    }),
    ("the default route is gone", |site, netns, _| {
        if site.kind.segment.gateway.is_none() {
            return Ok(false);
        }
        ip(netns, "route del default")?;
        Ok(true)
    }),
    ("the MAC address is another", |site, netns, _| {
        if site.kind.shares_mac {
            return Ok(false);
        }
        Rtnl::open(netns)?.set_mac("eth0", [2, 0, 0, 0, 0, 0x77])?;
        Ok(true)
    }),
    ("the interface is of another kind", |site, netns, config| {
        let rtnl = Rtnl::open(netns)?;
        rtnl.delete_link("eth0")?;
        rtnl.add_veth("eth0", site.host.outside(), "theirs")?;
        rtnl.set_up("eth0")?;
        for one in facts::addresses(config.get("prevResult").unwrap_or(&Value::Null)) {
            rtnl.add_address("eth0", one.address)?;
        }
        Ok(true)
    }),
    ("the configuration has other settings", |site, _, config| {
        let Some(others) = &site.kind.others else {
            return Ok(false);
        };
        merge(config, others);
        Ok(true)
    }),
    ("the master is another", |site, _, config| {
        if !site.kind.has_master {
            return Ok(false);
        }
        let rtnl = site.host.rtnl();
        if rtnl.link("other0").is_err() {
            rtnl.add_veth("other0", site.host.outside(), "other1")?;
        }
        merge(config, &json!({"master": "other0"}));
        Ok(true)
    }),
    ("the lease is gone", |site, netns, config| {
        let attachment = crate::chain::Attachment::new("container-c8", netns.path());
        let ipam = site.runtime.call("host-local", "DEL", &attachment)?;
        ipam.stdin(config.to_string()).run()?;
        Ok(true)
    }),
    ("there is no result", |_, _, config| {
        merge(config, &json!({"prevResult": null}));
        Ok(true)
    }),
];

/// CHECK fails for each thing that is not as ADD left it, and for nothing else.
///
/// # Errors
/// What is not so.
pub fn check_notices(site: &Site) -> Result<()> {
    for (number, (what, breakage)) in BREAKAGES.iter().enumerate() {
        let Container { netns, attachment } = site.container(&format!("c{number}"))?;
        let config = site.config(&json!({}));
        let mut with = site.add(&config, &attachment)?;
        site.good("CHECK", &with, &attachment)?;
        if breakage(site, &netns, &mut with)? {
            let answer = site.call("CHECK", &with, &attachment)?;
            if answer.error().is_none() {
                return Err(Error::unexpected(
                    format!("CHECK to notice that {what}"),
                    answer.text(),
                ));
            }
        }
        site.good("DEL", &config, &attachment)?;
    }
    still_true(site)
}

/// What does not matter: other spellings, and fields that a chained plugin has lost.
fn still_true(site: &Site) -> Result<()> {
    let Container {
        netns: _netns,
        attachment,
    } = site.container("same")?;
    let config = site.config(&json!({}));
    let mut with = site.add(&config, &attachment)?;
    if let Some(interface) = with.pointer_mut("/prevResult/interfaces/0") {
        let mac = interface.get("mac").and_then(Value::as_str);
        let upper = mac.unwrap_or_default().to_uppercase();
        merge(interface, &json!({"mac": upper, "sandbox": ""}));
    }
    site.good("CHECK", &with, &attachment)?;
    site.good("DEL", &with, &attachment)?;
    Ok(())
}
