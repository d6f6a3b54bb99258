//! Devices, addresses, routes and routing rules.

use std::collections::HashMap;
use std::net::IpAddr;

use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol};
use netlink_packet_route::rule::RuleMessage;

use super::item::Item;
use crate::error::Result;
use crate::net::{Link, Rtnl};

/// `RT_TABLE_LOCAL` of `linux/rtnetlink.h`.
const TABLE_LOCAL: u8 = 255;

type Names = HashMap<u32, String>;

pub(super) fn read(rtnl: &Rtnl) -> Result<Vec<Item>> {
    let links = rtnl.links()?;
    let names: Names = links
        .iter()
        .map(|link| (link.index, link.name.clone()))
        .collect();
    let mut items: Vec<Item> = links.iter().map(|link| link_item(link, &names)).collect();
    let addresses = rtnl.addresses()?;
    let lasting = addresses.iter().filter(|message| !is_link_local(message));
    items.extend(lasting.map(|message| address_item(message, &names)));
    let routes = rtnl.routes()?;
    let lasting = routes.iter().filter(|message| !is_bookkeeping(message));
    items.extend(lasting.map(|message| route_item(message, &names)));
    items.extend(rtnl.rules()?.iter().map(rule_item));
    Ok(items)
}

fn name_of(index: u32, names: &Names) -> String {
    names
        .get(&index)
        .cloned()
        .unwrap_or_else(|| format!("#{index}"))
}

/// The kernel gives every device that is on a link-local address, as soon as it finds a carrier.
fn is_link_local(message: &AddressMessage) -> bool {
    crate::net::network(message).is_some_and(|network| match network.ip() {
        IpAddr::V4(_) => false,
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    })
}

/// Routes by which the kernel keeps book of addresses: they follow from what is listed already,
/// and come and go with the carrier.
fn is_bookkeeping(message: &RouteMessage) -> bool {
    let local_table = message.header.table == TABLE_LOCAL;
    let link_local = message.attributes.iter().any(|attribute| {
        matches!(attribute, RouteAttribute::Destination(RouteAddress::Inet6(v6))
            if v6.is_unicast_link_local())
    });
    message.header.protocol == RouteProtocol::Kernel && (local_table || link_local)
}

fn link_item(link: &Link, names: &Names) -> Item {
    let facts = &link.facts;
    let mut text = vec![
        facts.kind.clone(),
        facts.mac.clone(),
        format!("mtu {}", facts.mtu),
        if facts.up { "up".into() } else { "down".into() },
    ];
    if let Some(master) = link.master {
        text.push(format!("port of {}", name_of(master, names)));
    }
    if facts.promiscuity > 0 {
        text.push(format!("promiscuity {}", facts.promiscuity));
    }
    if !facts.alias.is_empty() {
        text.push(format!("alias {:?}", facts.alias));
    }
    text.extend(facts.altnames.iter().map(|name| format!("altname {name}")));
    text.extend(facts.port.iter().cloned());
    text.retain(|word| !word.is_empty());
    Item::Link {
        name: link.name.clone(),
        facts: text.join(", "),
    }
}

fn address_item(message: &AddressMessage, names: &Names) -> Item {
    let address = crate::net::network(message).map_or_else(String::new, |one| one.to_string());
    // Duplicate detection comes and goes by itself.
    let passing = AddressFlags::Tentative | AddressFlags::Optimistic | AddressFlags::Nodad;
    let flags = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            AddressAttribute::Flags(flags) => Some(flags.difference(passing)),
            _ => None,
        });
    let flags = flags.map_or_else(String::new, |flags| format!(" {flags:?}"));
    Item::Address {
        link: name_of(message.header.index, names),
        address: address + &flags,
    }
}

fn route_item(message: &RouteMessage, names: &Names) -> Item {
    let header = &message.header;
    let mut table = u32::from(header.table);
    let mut link = String::new();
    let mut words = vec![
        format!("{:?}", header.kind),
        format!("/{}", header.destination_prefix_length),
    ];
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(id) => table = *id,
            RouteAttribute::Oif(index) => link = name_of(*index, names),
            RouteAttribute::CacheInfo(_) | RouteAttribute::Other(_) => {}
            other => words.push(format!("{other:?}")),
        }
    }
    let scope = format!("{:?} {:?}", header.scope, header.protocol);
    let text = format!("table {table}: {} dev {link} {scope}", words.join(" "));
    Item::Route { link, text }
}

fn rule_item(message: &RuleMessage) -> Item {
    let header = &message.header;
    Item::PolicyRule(format!(
        "{:?} {}/{} {:?} {:?}",
        header.family, header.src_len, header.dst_len, header.action, message.attributes
    ))
}
