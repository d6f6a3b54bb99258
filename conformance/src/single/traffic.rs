//! Packets between those on one segment.

use std::net::{IpAddr, SocketAddr};

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::facts;
use crate::net::Netns;
use crate::plugin::Answer;
use crate::probe::{PATIENCE, Server, Transport, ask};
use crate::snapshot::Snapshot;

use super::site::{Container, Site, equal, ip, parse};

const PORT: u16 = 9;

/// How many containers come and go at once.
const CROWD: usize = 12;

/// One datagram each way: a neighbour entry that is wrong would lose it.
fn one_datagram(from: &Netns, to: &Netns, address: IpAddr, name: &str) -> Result<()> {
    let place = SocketAddr::new(address, PORT);
    let _server = Server::start(to, Transport::Udp, place, name)?;
    let seen = ask(from, Transport::Udp, place, PATIENCE)?;
    equal("server", &seen.server.as_str(), &name)
}

/// Two containers on one master reach one another.
///
/// # Errors
/// What is not so.
pub fn siblings(site: &Site) -> Result<()> {
    let config = site.config(&json!({}));
    let one = site.container("c1")?;
    let two = site.container("c2")?;
    site.add(&config, &one.attachment)?;
    let with = site.add(&config, &two.attachment)?;
    for assigned in facts::addresses(with.get("prevResult").unwrap_or(&Value::Null)) {
        one_datagram(&one.netns, &two.netns, assigned.address.ip(), "c2")?;
    }
    site.good("DEL", &config, &one.attachment)?;
    site.good("CHECK", &with, &two.attachment)?;
    site.good("DEL", &config, &two.attachment)?;
    Ok(())
}

/// A neighbour outside that remembers another holder of the address reaches the new one with the first packet.
///
/// # Errors
/// What is not so.
pub fn stale_neighbours(site: &Site) -> Result<()> {
    let Some(gateway) = site.kind.segment.gateway else {
        return Ok(());
    };
    let outside = site.host.outside();
    let addresses = [site.kind.segment.first_v4, site.kind.segment.first_v6];
    for dad in ["optimistic", "off", "wait"] {
        let Container { netns, attachment } = site.container(&format!("c-{dad}"))?;
        for address in addresses {
            let entry = format!("lladdr 02:00:00:00:00:99 nud stale dev {}", gateway.link);
            ip(outside, &format!("neigh replace {address} {entry}"))?;
        }
        let config = site.config(&json!({"dad": dad}));
        site.add(&config, &attachment)?;
        for address in addresses {
            one_datagram(outside, &netns, parse(address)?, dad)?;
        }
        site.good("DEL", &config, &attachment)?;
        let _ = std::fs::remove_dir_all("/var/lib/cni/networks/segment");
    }
    Ok(())
}

/// Many at once: nobody fails, nobody shares an address, everybody is reached, and nothing stays.
///
/// # Errors
/// What is not so.
pub fn many_at_once(site: &Site) -> Result<()> {
    let config = site.config(&json!({}));
    let before = Snapshot::take(site.host)?;
    let crowd: Vec<Container> = (0..CROWD)
        .map(|number| site.container(&format!("c{number}")))
        .collect::<Result<_>>()?;
    let mut seen = Vec::new();
    for answer in at_once(site, "ADD", &config, &crowd)? {
        let result = super::site::result(&answer)?;
        seen.extend(facts::addresses(&result).into_iter().map(|one| one.address));
    }
    seen.sort();
    seen.dedup();
    equal("distinct addresses", &seen.len(), &(2 * CROWD))?;
    for container in &crowd {
        site.reaches(&container.netns)?;
    }
    at_once(site, "DEL", &config, &crowd)?;
    site.is_as_before(&before)
}

fn at_once(site: &Site, verb: &str, config: &Value, crowd: &[Container]) -> Result<Vec<Answer>> {
    std::thread::scope(|scope| {
        let running: Vec<_> = crowd
            .iter()
            .map(|one| {
                let call = site.runtime.call(site.kind.plugin, verb, &one.attachment);
                let call = call.map(|call| call.stdin(config.to_string()));
                scope.spawn(move || call?.run())
            })
            .collect();
        running
            .into_iter()
            .map(|one| {
                let gone = |_| Error::unexpected("an answer", "a panic");
                let answer = one.join().map_err(gone)??;
                if answer.ok() {
                    Ok(answer)
                } else {
                    Err(Error::unexpected(format!("{verb} to work"), answer.text()))
                }
            })
            .collect()
    })
}
