//! Rules, elements and port maps of an attachment, in nftables and in iptables.

use std::collections::BTreeMap;
use std::net::IpAddr;

use conformance::facts::{addresses, spellings};
use conformance::libcni::Cached;
use conformance::snapshot::{Item, Snapshot};

use super::links::owner;
use super::{Resource, flag};
use crate::list;

/// The chain of the reference set that admits addresses. Its rules carry no comment.
const ADMITTING: &str = "CNI-FORWARD";

pub fn all(cached: &Cached) -> Vec<Resource> {
    let mut items = Vec::new();
    let mut all = Vec::new();
    for (kind, read) in [
        (
            "nftables",
            Snapshot::nftables as fn() -> conformance::Result<Snapshot>,
        ),
        ("legacy iptables", Snapshot::xtables),
    ] {
        match read() {
            Ok(snapshot) => items.extend(snapshot.items().to_vec()),
            Err(error) => all.push(Resource::unknown("rules", kind, error.to_string())),
        }
    }
    let blind = !all.is_empty();
    let own = owned(&items, cached);
    for (place, count) in places(&own) {
        let plural = if count == 1 { "" } else { "s" };
        all.push(Resource::new("rules", place, true).note(format!("{count} item{plural}")));
    }
    let mut expected = expected(cached, &own);
    if blind {
        expected.retain(|one| one.state == super::State::Present);
    }
    all.extend(expected);
    all
}

/// What the attachment's configuration asks of the packet filter, and whether it is there.
fn expected(cached: &Cached, own: &[&Item]) -> Vec<Resource> {
    let Some(list) = cached.list() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let has_addresses = !addresses(&cached.result).is_empty();
    if has_addresses && list.plugins.iter().any(|plugin| flag(plugin, "ipMasq")) {
        let there = own.iter().any(|item| is_masquerade(item));
        all.push(Resource::new("masquerade", "ipMasq", there));
    }
    if has_addresses && list.plugins.iter().any(|one| one.plugin_type == "firewall") {
        let there = own.iter().any(|item| is_admitting(item));
        all.push(if there {
            Resource::new("admitted", "firewall", true)
        } else if firewalld_may_do_it() {
            Resource::unknown("admitted", "firewall", "firewalld may have it in a zone")
        } else {
            Resource::new("admitted", "firewall", false)
        });
    }
    if list.plugins.iter().any(|one| one.plugin_type == "portmap") {
        for port in list::ports(cached) {
            let there = own.iter().any(|item| is_published(item, port.host_port));
            all.push(Resource::new("port", port.to_string(), there));
        }
    }
    all
}

/// firewalld's sources are known by address alone, and asked for over D-Bus.
fn firewalld_may_do_it() -> bool {
    std::path::Path::new("/run/dbus/system_bus_socket").exists()
}

/// The items that carry the attachment's name, and those of chains that they lead to and nobody else does.
fn owned<'a>(items: &'a [Item], cached: &Cached) -> Vec<&'a Item> {
    let hash = owner(cached).instance_hash();
    let id = format!("id: \"{}\"", cached.container_id);
    let name = format!("name: \"{}\"", cached.network);
    let ips: Vec<IpAddr> = addresses(&cached.result)
        .iter()
        .map(|one| one.address.ip())
        .collect();
    let named = |item: &Item| {
        let text = item.to_string().replace('\\', "");
        text.contains(&hash)
            || (text.contains(&id) && text.contains(&name))
            || (text.contains(ADMITTING) && ips.iter().any(|ip| mentions(&text, *ip)))
    };
    let direct: Vec<&Item> = items.iter().filter(|item| named(item)).collect();
    let chains: Vec<&str> = items
        .iter()
        .filter_map(|item| match item {
            Item::Chain { name, .. } => Some(name.as_str()),
            Item::Xtables { line, .. } => line.strip_prefix(':')?.split(' ').next(),
            _ => None,
        })
        .filter(|chain| is_single(chain))
        .filter(|chain| direct.iter().any(|item| leads_to(item, chain)))
        .collect();
    let of_chain = |item: &Item| match item {
        Item::Chain { name, .. } => chains.contains(&name.as_str()),
        Item::Rule { chain, .. } => chains.contains(&chain.as_str()),
        Item::Xtables { line, .. } => chains.iter().any(|chain| {
            line.starts_with(&format!(":{chain} ")) || line.starts_with(&format!("-A {chain} "))
        }),
        _ => false,
    };
    items
        .iter()
        .filter(|item| named(item) || of_chain(item))
        .collect()
}

/// Whether a chain is one attachment's by the reference set's naming: a prefix and many hex digits.
fn is_single(chain: &str) -> bool {
    let rest = chain.strip_prefix("CNI-").unwrap_or_default();
    let digits = rest.strip_prefix("DN-").unwrap_or(rest);
    digits.len() >= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn leads_to(item: &Item, chain: &str) -> bool {
    item.to_string().contains(chain)
}

fn mentions(text: &str, address: IpAddr) -> bool {
    spellings(address).iter().any(|one| text.contains(one))
}

/// Where the items are, and how many.
fn places(own: &[&Item]) -> BTreeMap<String, usize> {
    let mut places = BTreeMap::new();
    for item in own {
        let place = match item {
            Item::Element { table, set, .. } => format!("nft {table} {set}"),
            Item::Rule { table, chain, .. } => format!("nft {table} {chain}"),
            Item::Xtables { table, line } => {
                let chain = line.split(' ').nth(1).unwrap_or_default();
                format!("iptables-legacy {table} {chain}")
            }
            _ => continue,
        };
        *places.entry(place).or_insert(0) += 1;
    }
    places
}

fn set_of(item: &Item) -> &str {
    match item {
        Item::Element { set, .. } => set,
        _ => "",
    }
}

fn is_masquerade(item: &Item) -> bool {
    let of_reference = match item {
        Item::Rule { table, text, .. } => {
            table.contains("cni_plugins_masquerade")
                || text.contains("MASQUERADE")
                || text.contains("[masq")
        }
        Item::Xtables { line, .. } => line.contains("MASQUERADE"),
        _ => false,
    };
    set_of(item).starts_with("masquerade") || of_reference
}

fn is_admitting(item: &Item) -> bool {
    let chain = match item {
        Item::Rule { chain, .. } => chain == ADMITTING,
        Item::Xtables { line, .. } => line.starts_with(&format!("-A {ADMITTING} ")),
        _ => false,
    };
    chain || set_of(item).starts_with("admit")
}

/// Whether the item publishes that port of the host.
fn is_published(item: &Item, port: u64) -> bool {
    match item {
        Item::Element { set, text, .. } => {
            let key = text.split(" :").next().unwrap_or_default();
            set.starts_with("publish") && !set.starts_with("published") && has_port(key, port)
        }
        Item::Rule { chain, text, .. } => {
            (chain.starts_with("CNI-DN-") || chain.starts_with("CNI-HOSTPORT"))
                && has_port(text, port)
        }
        Item::Xtables { line, .. } => {
            let mut words = line.split([' ', ',']);
            line.contains("CNI-") && words.any(|word| word == port.to_string())
        }
        _ => false,
    }
}

/// A port stands in network order, in two bytes.
fn has_port(text: &str, port: u64) -> bool {
    text.contains(&format!("{port:04x}"))
}
