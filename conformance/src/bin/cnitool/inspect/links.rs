//! Links of the host that carry the attachment's name, and its interface in the namespace.

use cni_types::{Value, json};
use conformance::facts::{Interface, addresses, interfaces};
use conformance::libcni::Cached;
use conformance::net::{Link, Netns, Rtnl};
use netfilter::Owner;

use super::Resource;

/// The owner as plugins write it into aliases and comments.
pub fn owner(cached: &Cached) -> Owner {
    Owner::new(&*cached.network, &*cached.container_id, &*cached.ifname)
}

pub fn all(cached: &Cached) -> Vec<Resource> {
    let mut all = on_host(cached);
    all.extend(in_namespace(cached));
    all
}

fn on_host(cached: &Cached) -> Vec<Resource> {
    let links = match Rtnl::here().and_then(|rtnl| rtnl.links()) {
        Ok(links) => links,
        Err(error) => return vec![Resource::unknown("link", "-", error.to_string())],
    };
    let hash = owner(cached).instance_hash();
    let result = interfaces(&cached.result);
    let named = result.iter().filter(|one| one.sandbox.is_empty());
    let mut all: Vec<Resource> = named
        .map(
            |one| match links.iter().find(|link| link.name == one.name) {
                Some(link) => describe(link),
                None => Resource::new("link", &*one.name, false).note("named in the result"),
            },
        )
        .collect();
    let marked = links.iter().filter(|link| link.facts.alias.contains(&hash));
    let mut has_ifb = false;
    for link in marked {
        has_ifb |= link.facts.kind == "ifb";
        if !result
            .iter()
            .any(|one| one.sandbox.is_empty() && one.name == link.name)
        {
            all.push(describe(link));
        }
    }
    if wants_ifb(cached) && !has_ifb {
        all.push(Resource::new("ifb", "-", false).note("limits what the container sends"));
    }
    all
}

fn describe(link: &Link) -> Resource {
    let kind = if link.facts.kind == "ifb" {
        "ifb"
    } else {
        "link"
    };
    let up = if link.facts.up { "up" } else { "down" };
    Resource::new(kind, &*link.name, true).note(format!("{} {up}", link.facts.kind))
}

/// Whether bandwidth was asked to limit what the container sends, which takes a block of its own.
fn wants_ifb(cached: &Cached) -> bool {
    let Some(list) = cached.list() else {
        return false;
    };
    let mut plugins = list
        .plugins
        .iter()
        .filter(|one| one.plugin_type == "bandwidth");
    plugins.any(|plugin| {
        let rate = |value: &Value| json::get(value, "egressRate").and_then(Value::as_u64);
        let given = cached.capability_args.get("bandwidth");
        let given = given.filter(|_| plugin.capabilities().any(|name| name == "bandwidth"));
        let own = Value::Object(plugin.raw().clone());
        rate(given.unwrap_or(&own)).is_some_and(|rate| rate > 0)
    })
}

fn in_namespace(cached: &Cached) -> Vec<Resource> {
    let result = interfaces(&cached.result);
    let inside: Vec<&Interface> = result
        .iter()
        .filter(|one| !one.sandbox.is_empty())
        .collect();
    if !cached.may_live() || cached.netns.as_os_str().is_empty() {
        return Vec::new();
    }
    let opened = Netns::open(&cached.netns).and_then(|netns| Rtnl::open(&netns));
    let rtnl = match opened {
        Ok(rtnl) => rtnl,
        Err(error) => {
            return vec![Resource::unknown(
                "interface",
                &*cached.ifname,
                error.to_string(),
            )];
        }
    };
    let mut all = Vec::new();
    for one in inside {
        let link = rtnl.link(&one.name).ok();
        let resource = Resource::new("interface", &*one.name, link.is_some());
        all.push(match link {
            Some(link) if !one.mac.is_empty() && !one.mac.eq_ignore_ascii_case(&link.facts.mac) => {
                resource.note(format!("its MAC is {}, not {}", link.facts.mac, one.mac))
            }
            Some(link) if !link.facts.up => resource.note("down"),
            _ => resource,
        });
    }
    for one in addresses(&cached.result) {
        let index = one.interface.and_then(|index| usize::try_from(index).ok());
        let link = index.and_then(|index| result.get(index));
        let link = link.map_or(&cached.ifname, |link| &link.name);
        let there = rtnl.addresses_of(link).unwrap_or_default();
        let what = format!("{} on {link}", one.address);
        all.push(Resource::new("address", what, there.contains(&one.address)));
    }
    all
}
