//! CHECK of a container's interface: what ADD promised, and nothing else.

use cni_types::NetnsPath;
use cni_types::result::{CniResult, Interface};
use ipnetwork::IpNetwork;
use netlink::{Handle, Link, MacAddr, NewRoute, Route, TABLE_MAIN};

use crate::addressing;
use crate::error::Error;

/// The interface of that name in a container, as the result lists it. Of several the last counts: it is the newest.
/// One without a sandbox counts if there is no other: some chained plugins lose that part.
///
/// # Errors
/// [`Error::Check`] if the result does not list it.
pub fn promised<'a>(result: &'a CniResult, ifname: &str) -> Result<&'a Interface, Error> {
    let listed = || result.interfaces.iter().filter(|i| i.name == ifname);
    listed()
        .rfind(|i| !i.sandbox.is_empty())
        .or_else(|| listed().next_back())
        .ok_or_else(|| {
            Error::Check(format!(
                "container interface {ifname} is not among the interfaces of prevResult"
            ))
        })
}

/// The container's interface, which must be there, of the kind (`veth`, `macvlan`, ...) and with the MAC address that
/// were promised.
///
/// # Errors
/// [`Error::Check`] if it is not.
pub fn link(
    container: &Handle,
    netns: &NetnsPath,
    ifname: &str,
    kind: &str,
    result: &CniResult,
) -> Result<Link, Error> {
    let promised = promised(result, ifname)?;
    let link = container.find_link(ifname)?.ok_or_else(|| {
        Error::Check(format!(
            "container interface {ifname} not found in {}",
            netns.as_path().display()
        ))
    })?;
    if link.kind.as_deref() != Some(kind) {
        return Err(Error::Check(format!(
            "container interface {ifname} is not a {kind} (it is {})",
            link.kind.as_deref().unwrap_or("no virtual link")
        )));
    }
    same_mac(promised, &link)?;
    Ok(link)
}

/// The link has the MAC address that the result says, if it says one.
///
/// # Errors
/// [`Error::Check`] if it has another.
pub fn same_mac(promised: &Interface, link: &Link) -> Result<(), Error> {
    if promised.mac.is_empty() {
        return Ok(());
    }
    let wanted: Option<MacAddr> = promised.mac.parse().ok();
    if wanted == link.mac {
        return Ok(());
    }
    let has = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
    Err(Error::Check(format!(
        "interface {} has MAC {has}, but prevResult says {}",
        link.name, promised.mac
    )))
}

/// The link is up.
///
/// # Errors
/// [`Error::Check`] if it is not.
pub fn is_up(link: &Link) -> Result<(), Error> {
    if link.up {
        return Ok(());
    }
    Err(Error::Check(format!(
        "container interface {} is down",
        link.name
    )))
}

/// The link has the configured MTU, if one is.
///
/// # Errors
/// [`Error::Check`] if it has another.
pub fn has_mtu(link: &Link, mtu: Option<u32>) -> Result<(), Error> {
    match mtu.filter(|mtu| *mtu != link.mtu) {
        None => Ok(()),
        Some(mtu) => Err(Error::Check(format!(
            "container interface {} has MTU {}, not {mtu}",
            link.name, link.mtu
        ))),
    }
}

/// Every address of the result that is not another interface's is on the link.
///
/// # Errors
/// [`Error::Check`] for the first that is not.
pub fn addresses(container: &Handle, result: &CniResult, link: &Link) -> Result<(), Error> {
    let present = container.addresses(link)?;
    for ip in &result.ips {
        let elsewhere = result.interface_of(ip).is_some_and(|i| i.name != link.name);
        if elsewhere {
            continue;
        }
        let found = present.iter().find(|a| a.ip == ip.address);
        let wrong = match found {
            None => "is not on",
            Some(found) if found.is_duplicate() => "is held by another station as well as by",
            Some(_) => continue,
        };
        return Err(Error::Check(format!(
            "address {} {wrong} interface {}",
            ip.address, link.name
        )));
    }
    Ok(())
}

/// Every route of the result is there, in its table, alone or as one of several ways to its destination.
///
/// # Errors
/// [`Error::Check`] for the first that is not.
pub fn routes(container: &Handle, result: &CniResult, link: &Link) -> Result<(), Error> {
    require_routes(container, &addressing::routes(result, link.index), link)
}

/// As [`routes`], for routes that a plugin made up itself.
///
/// # Errors
/// [`Error::Check`] for the first that is not there.
pub fn require_routes(container: &Handle, wanted: &[NewRoute], link: &Link) -> Result<(), Error> {
    if wanted.is_empty() {
        return Ok(());
    }
    let present = container.routes()?;
    for route in wanted {
        let is_there = present.iter().any(|p| provides(p, route, link.index));
        if !is_there && !is_moved(container, &present, route, link)? {
            let via = route
                .gateway
                .map(|gw| format!(" via {gw}"))
                .unwrap_or_default();
            return Err(Error::Check(format!(
                "route {}{via} dev {} was not found in table {}",
                route.dst,
                link.name,
                route.table.unwrap_or(TABLE_MAIN)
            )));
        }
    }
    Ok(())
}

/// Whether a later plugin has put a route of the main table where packets of the link look for it: into the table of its
/// VRF (`vrf`), or into one of its address (`sbr`). Which router a default route there leads through is for `sbr` to say.
fn is_moved(
    container: &Handle,
    present: &[Route],
    wanted: &NewRoute,
    link: &Link,
) -> Result<bool, Error> {
    if wanted.table.is_some_and(|table| table != TABLE_MAIN) {
        return Ok(false);
    }
    let mut moved = wanted.clone();
    if let Some(master) = link.master
        && let Some(table) = container.link_by_index(master)?.vrf_table()
    {
        moved.table = Some(table);
        return Ok(present.iter().any(|p| provides(p, &moved, link.index)));
    }
    let addresses = container.addresses(link)?;
    let rules = container.rules(wanted.dst.is_ipv6())?;
    let mut of_link = rules
        .iter()
        .filter(|rule| rule.plain && addresses.iter().any(|a| rule.is_from(a.ip.ip())));
    Ok(of_link.any(|rule| {
        moved.table = Some(rule.table);
        if wanted.dst.prefix() == 0 {
            moved.gateway = None;
        }
        present.iter().any(|p| provides(p, &moved, link.index))
    }))
}

/// Whether a route of the kernel, perhaps one of several ways to its destination, is the wanted one.
fn provides(present: &Route, wanted: &NewRoute, oif: u32) -> bool {
    let same_network =
        |a: IpNetwork, b: IpNetwork| (a.network(), a.prefix()) == (b.network(), b.prefix());
    present.is_unicast()
        && same_network(present.dst, wanted.dst)
        && present.table == wanted.table.unwrap_or(TABLE_MAIN)
        && wanted.metric.is_none_or(|metric| metric == present.metric)
        && present.next_hops.iter().any(|hop| {
            hop.oif == oif && (wanted.gateway.is_none() || hop.gateway == wanted.gateway)
        })
}
