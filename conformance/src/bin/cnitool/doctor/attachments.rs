//! Attachments, leases and published ports whose owner is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use conformance::libcni::Cached;
use conformance::snapshot::Item;
use netfilter::Holder;

use super::{Finding, Host};
use crate::inspect::{Check, check_with, lease_dirs, owner, read_leases};

/// What `bridge` and `ptp` say where the switch is off that [`kernel`](super::kernel) looks at.
const FORWARDING: &str = "forwarding is off (/proc/sys/net/";

pub fn examine(host: &Host) -> Vec<Finding> {
    let mut findings = vec![Finding::note(
        "attachments",
        format!(
            "{} in the cache, {} of them live",
            host.attachments.len(),
            host.live().count()
        ),
    )];
    findings.extend(gone(host));
    findings.extend(changed(host));
    findings.extend(ports(host));
    findings.extend(leases(host));
    findings
}

fn gone(host: &Host) -> Vec<Finding> {
    let dead: Vec<&Cached> = host
        .attachments
        .iter()
        .filter(|cached| !cached.may_live())
        .collect();
    let networks: BTreeSet<&str> = dead.iter().map(|one| one.network.as_str()).collect();
    networks
        .into_iter()
        .map(|network| {
            let of_network = dead.iter().filter(|one| one.network == network);
            let ids: Vec<&str> = of_network.map(|one| one.container_id.as_str()).collect();
            Finding::warning(
                format!("network {network}"),
                format!("attachments without their namespace: {}", shortened(&ids)),
                format!("cnitool gc {network} frees what they left"),
            )
        })
        .collect()
}

/// What live attachments have lost since their ADD, by asking with CHECK: one finding for each network.
fn changed(host: &Host) -> Vec<Finding> {
    let mut by_network: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
    for cached in host.live() {
        let (asked, failed) = by_network.entry(&cached.network).or_default();
        match check_with(&host.cni, cached) {
            Check::Passed => *asked += 1,
            Check::NotAsked(_) => {}
            // Told once, with the switch.
            Check::Failed(why) if why.contains(FORWARDING) => {}
            Check::Failed(why) => {
                *asked += 1;
                failed.push(format!("{} {}: {why}", cached.container_id, cached.ifname));
            }
        }
    }
    let mut findings = Vec::new();
    for (network, (asked, failed)) in by_network {
        let Some(first) = failed.first() else {
            continue;
        };
        findings.push(Finding::fault(
            format!("network {network}"),
            format!(
                "CHECK fails for {} of {asked} live attachments; {first}",
                failed.len()
            ),
            format!(
                "cnitool reapply {network} puts back what a reload of the packet filter took; cnitool inspect ID shows what else is missing"
            ),
        ));
    }
    findings
}

/// Ports that are published for somebody who is not there any more: nobody answers on them.
fn ports(host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for item in &host.items {
        let Item::Element { table, set, text } = item else {
            continue;
        };
        let publishes = set.starts_with("publish") && !set.starts_with("published");
        if table != "inet ferrule" || !publishes || set.contains("then") {
            continue;
        }
        let comment = text.split("comment ").nth(1);
        let Some(holder) = comment.and_then(Holder::parse) else {
            continue;
        };
        let owner = host
            .attachments
            .iter()
            .find(|cached| owner(cached).instance_hash() == holder.instance_hash);
        let key = port_of(set, text);
        let whose = format!("{} of network {}", holder.container_id, holder.network);
        let cure = format!("cnitool gc {} frees it; so does its DEL", holder.network);
        match owner {
            Some(cached) if cached.may_live() => {}
            Some(_) => findings.push(Finding::fault(
                format!("port {key}"),
                format!("is published for {whose}, whose namespace is gone"),
                cure,
            )),
            None => findings.push(Finding::warning(
                format!("port {key}"),
                format!("is published for {whose}, which the cache does not know"),
                format!("if that container does not run any more: {cure}"),
            )),
        }
    }
    findings.dedup_by(|one, other| one.subject == other.subject && one.problem == other.problem);
    findings
}

/// Protocol and port out of an element's key: both stand padded to four bytes, before them an address in one kind of set.
fn port_of(set: &str, text: &str) -> String {
    let key: String = text
        .trim_start_matches("key ")
        .chars()
        .take_while(char::is_ascii_hexdigit)
        .collect();
    let address = match set {
        "publish_at4" => 8,
        "publish_at6" => 32,
        _ => 0,
    };
    let byte = |at: usize, digits: usize| {
        let hex = key.get(address + at..address + at + digits)?;
        u16::from_str_radix(hex, 16).ok()
    };
    let protocol = match byte(0, 2) {
        Some(6) => "tcp",
        Some(17) => "udp",
        Some(132) => "sctp",
        _ => "?",
    };
    match byte(8, 4) {
        Some(port) => format!("{port}/{protocol}"),
        None => key,
    }
}

/// How the leases of each directory stand.
fn leases(host: &Host) -> Vec<Finding> {
    let mut dirs: BTreeSet<(String, PathBuf)> = BTreeSet::new();
    for list in host.lists() {
        for dir in lease_dirs(&list.name, &list.plugins) {
            dirs.insert((list.name.clone(), dir));
        }
    }
    dirs.into_iter()
        .filter_map(|(network, dir)| {
            let leases = read_leases(&dir).ok()?;
            let state = |id: &str| {
                let of: Vec<&Cached> = host
                    .attachments
                    .iter()
                    .filter(|one| one.network == network && one.container_id == id)
                    .collect();
                if of.is_empty() {
                    "unknown"
                } else if of.iter().any(|one| one.may_live()) {
                    "live"
                } else {
                    "gone"
                }
            };
            let count = |word| leases.iter().filter(|one| state(&one.1) == word).count();
            let (live, gone, unknown) = (count("live"), count("gone"), count("unknown"));
            let text = format!(
                "{} in {}: {live} of live attachments, {gone} of gone ones, {unknown} of none in the cache",
                leases.len(),
                dir.display()
            );
            let subject = format!("leases of {network}");
            Some(if gone > 0 {
                let cure = format!("cnitool gc {network} frees those that are not live");
                Finding::warning(subject, text, cure)
            } else {
                Finding::note(subject, text)
            })
        })
        .collect()
}

/// Ten of them at most.
fn shortened(ids: &[&str]) -> String {
    match ids.get(..10) {
        Some(some) if ids.len() > 10 => format!("{} and {} more", some.join(", "), ids.len() - 10),
        _ => ids.join(", "),
    }
}
