//! Duplicate address detection on a segment where others live.

use std::time::Duration;

use serde_json::json;

use crate::error::{Error, Result};
use crate::net::{Netns, Rtnl};
use crate::probe::ping;

use super::site::{Container, Site, contains, equal, holds, ip, links, parse};

/// Far less than the second that a detection takes at least.
const AT_ONCE: Duration = Duration::from_millis(700);

/// Without a wish, ADD does not wait for the detection to end, and the first packets flow both ways.
///
/// # Errors
/// What is not so.
pub fn no_waiting(site: &Site) -> Result<()> {
    let Some(gateway) = site.kind.segment.gateway else {
        return Ok(());
    };
    let inward = [site.kind.segment.first_v4, site.kind.segment.first_v6];
    let outside = site.host.outside();
    let ways = |container: &Netns| -> Result<()> {
        for to in [gateway.v6, gateway.v4] {
            ping(container, parse(to)?, AT_ONCE)?;
        }
        for to in inward {
            ping(outside, parse(to)?, AT_ONCE)?;
        }
        Ok(())
    };
    // What an ADD costs on this machine, which may be emulated.
    let mut usual = None;
    for dad in [json!("off"), json!(null), json!("optimistic")] {
        // The range starts anew each time, so that the same addresses come back.
        let Container { netns, attachment } = site.container("c1")?;
        let config = site.config(&json!({"dad": dad}));
        let answer = site.good("ADD", &config, &attachment)?;
        let limit = *usual.get_or_insert(answer.took) + AT_ONCE;
        if answer.took > limit {
            return Err(Error::unexpected(
                format!("ADD with dad {dad} within {limit:?}"),
                format!(
                    "{:?}; {}",
                    answer.took,
                    ip(&netns, "-6 addr show dev eth0")?
                ),
            ));
        }
        ways(&netns)?;
        site.good("DEL", &config, &attachment)?;
        forget(site)?;
    }
    Ok(())
}

/// The counter of the range is part of what host-local remembers.
fn forget(site: &Site) -> Result<()> {
    let _ = std::fs::remove_dir_all("/var/lib/cni/networks/segment");
    ip(site.host.outside(), "neigh flush all").map(drop)
}

/// Somebody outside holds the address that is leased. With `wait` ADD fails and names it; without, CHECK finds out; with
/// `off` nobody asks.
///
/// # Errors
/// What is not so.
pub fn duplicates(site: &Site) -> Result<()> {
    let Some(gateway) = site.kind.segment.gateway else {
        return Ok(());
    };
    let taken = site.kind.segment.first_v6;
    ip(
        site.host.outside(),
        &format!("addr add {taken}/64 dev {} nodad", gateway.link),
    )?;
    let Container { netns, attachment } = site.container("c1")?;
    let wait = site.config(&json!({"dad": "wait"}));
    contains(&site.bad("ADD", &wait, &attachment)?, taken)?;
    equal("links", &links(&netns)?, &Vec::new())?;
    forget(site)?;

    let optimistic = site.config(&json!({}));
    match site.add(&optimistic, &attachment) {
        // The holder was faster than ADD.
        Err(error) => contains(&error.to_string(), taken)?,
        Ok(with) => {
            until_duplicate(&netns)?;
            contains(&site.bad("CHECK", &with, &attachment)?, taken)?;
        }
    }
    site.good("DEL", &optimistic, &attachment)?;
    forget(site)?;

    let off = site.config(&json!({"dad": "off"}));
    let with = site.add(&off, &attachment)?;
    site.good("CHECK", &with, &attachment)?;
    site.good("DEL", &off, &attachment)?;
    forget(site)?;

    ip(
        site.host.outside(),
        &format!("addr del {taken}/64 dev {}", gateway.link),
    )?;
    site.add(&wait, &attachment)?;
    ping(&netns, parse(gateway.v6)?, AT_ONCE)?;
    site.good("DEL", &wait, &attachment)?;
    Ok(())
}

/// The holder's answer is under way when ADD returns.
fn until_duplicate(netns: &Netns) -> Result<()> {
    let rtnl = Rtnl::open(netns)?;
    let end = std::time::Instant::now() + crate::probe::PATIENCE;
    while !ip(netns, "-6 addr show dev eth0")?.contains("dadfailed") {
        holds("the duplicate is noticed", std::time::Instant::now() < end)?;
        rtnl.links()?;
    }
    Ok(())
}
