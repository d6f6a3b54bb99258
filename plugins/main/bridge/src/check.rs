//! CHECK: what ADD promised, and nothing else.

use cni_types::result::{CniResult, Interface};
use ipnetwork::IpNetwork;
use netfilter::{ApplyOptions, Backend, Intent, Kinds, Owner};
use netlink::{Link, MacAddr, NewRoute, Route, TABLE_MAIN, sysctl};
use skel::Request;

use crate::config::Config;
use crate::error::Error;
use crate::world::{World, owner};
use crate::{container, gateway, masquerade, vlan};

pub fn check(request: &Request<Config>) -> Result<(), Error> {
    request.config.validate(request.ipam.is_some())?;
    if let Some(ipam) = &request.ipam {
        ipam.check()?;
    }
    let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
    let mut world = World::open(&request.netns)?;
    let bridge = check_bridge(&world, &request.config, result)?;
    let end = check_container(&world, request, result)?;
    let port = check_port(&world, &request.config, result, &bridge, &end)?;
    check_addresses(&world, result, &end)?;
    check_routes(&world, result, &end)?;
    check_gateway(&world, &request.config, result, &bridge)?;
    check_filter(&mut world, request, result, &port, &end)
}

/// Puts the masquerade and the MAC guard back.
pub fn reapply(request: &Request<Config>) -> Result<(), Error> {
    let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
    let mut world = World::open(&request.netns)?;
    let bridge = check_bridge(&world, &request.config, result)?;
    let end = check_container(&world, request, result)?;
    let port = check_port(&world, &request.config, result, &bridge, &end)?;
    let owner = owner(request);
    let masquerade = masquerade::intents(&request.config, result);
    if !masquerade.is_empty() {
        let filter = world.filter()?;
        let backend = filter.choose(request.config.masquerade_backend()?, Kinds::MASQUERADE)?;
        filter.apply(backend, &owner, &masquerade, &ApplyOptions::default())?;
        masquerade::log_warnings(filter);
    }
    if let Some(guard) = guard(request, &port, &end) {
        let options = ApplyOptions::default();
        world
            .filter()?
            .apply(Backend::Nftables, &owner, &[guard], &options)?;
    }
    Ok(())
}

/// What `macspoofchk` asks of the packet filter.
fn guard(request: &Request<Config>, port: &Link, end: &Link) -> Option<Intent> {
    let mac = end.mac.filter(|_| request.config.macspoofchk)?;
    Some(Intent::GuardMac {
        port: port.name.clone(),
        mac: mac.octets(),
    })
}

fn fail(text: String) -> Error {
    Error::Check(text)
}

fn check_bridge(world: &World, config: &Config, result: &CniResult) -> Result<Link, Error> {
    let name = config.bridge_name()?;
    let promised = result
        .interfaces
        .iter()
        .find(|i| i.name == name && i.sandbox.is_empty());
    let promised = promised.ok_or_else(|| {
        fail(format!(
            "bridge {name} is not among the interfaces of prevResult"
        ))
    })?;
    let link = world
        .host
        .find_link(name)?
        .ok_or_else(|| fail(format!("bridge interface {name} not found")))?;
    if !link.is_bridge() {
        return Err(fail(format!("interface {name} is not a bridge")));
    }
    if !link.up {
        return Err(fail(format!("bridge interface {name} is down")));
    }
    // A bridge without an address of ours may follow its ports' MAC addresses; nothing was promised then.
    if config.gateway() {
        same_mac(promised, &link)?;
    }
    if config.promisc_mode && !link.promisc {
        return Err(fail(format!("bridge interface {name} is not promiscuous")));
    }
    Ok(link)
}

fn same_mac(promised: &Interface, link: &Link) -> Result<(), Error> {
    if promised.mac.is_empty() {
        return Ok(());
    }
    let wanted: Option<MacAddr> = promised.mac.parse().ok();
    if wanted == link.mac {
        return Ok(());
    }
    let has = link.mac.map(|mac| mac.to_string()).unwrap_or_default();
    Err(fail(format!(
        "interface {} has MAC {has}, but prevResult says {}",
        link.name, promised.mac
    )))
}

fn check_container(
    world: &World,
    request: &Request<Config>,
    result: &CniResult,
) -> Result<Link, Error> {
    let name = request.ifname.as_str();
    let netns = request.netns.as_path().display().to_string();
    let promised = result
        .interfaces
        .iter()
        .rfind(|i| i.name == name && !i.sandbox.is_empty())
        .ok_or_else(|| {
            fail(format!(
                "container interface {name} is not among the interfaces of prevResult"
            ))
        })?;
    let link = world
        .container
        .find_link(name)?
        .ok_or_else(|| fail(format!("container interface {name} not found in {netns}")))?;
    if !link.is_veth() {
        return Err(fail(format!("container interface {name} is not a veth")));
    }
    same_mac(promised, &link)?;
    if !request.config.disable_container_interface && !link.up {
        return Err(fail(format!("container interface {name} is down")));
    }
    if let Some(mtu) = request.config.mtu().filter(|mtu| *mtu != link.mtu) {
        return Err(fail(format!(
            "container interface {name} has MTU {}, not {mtu}",
            link.mtu
        )));
    }
    Ok(link)
}

fn check_port(
    world: &World,
    config: &Config,
    result: &CniResult,
    bridge: &Link,
    end: &Link,
) -> Result<Link, Error> {
    let missing = || {
        fail(format!(
            "CNI veth created for bridge {} was not found",
            bridge.name
        ))
    };
    let port = match world.host.link_by_index(end.peer.ok_or_else(missing)?) {
        Err(error) if error.is_not_found() => return Err(missing()),
        other => other?,
    };
    if !port.is_peer_of(end) {
        return Err(missing());
    }
    if port.master != Some(bridge.index) {
        return Err(fail(format!(
            "interface {} is not a port of bridge {}",
            port.name, bridge.name
        )));
    }
    if let Some(promised) = result
        .interfaces
        .iter()
        .find(|i| i.name == port.name && i.sandbox.is_empty())
    {
        same_mac(promised, &port)?;
    }
    if !port.up {
        return Err(fail(format!("interface {} is down", port.name)));
    }
    check_port_settings(config, &port)?;
    check_vlans(world, config, &port)?;
    Ok(port)
}

fn check_port_settings(config: &Config, port: &Link) -> Result<(), Error> {
    let settings = port.port.unwrap_or_default();
    let expected = [
        ("hairpin mode", config.hairpin_mode, settings.hairpin),
        (
            "port isolation",
            config.port_isolation.then_some(true),
            settings.isolated,
        ),
    ];
    for (what, wanted, is) in expected {
        if wanted.is_some_and(|wanted| wanted != is) {
            let state = if is { "on" } else { "off" };
            return Err(fail(format!(
                "{what} of interface {} is {state}",
                port.name
            )));
        }
    }
    Ok(())
}

fn check_vlans(world: &World, config: &Config, port: &Link) -> Result<(), Error> {
    let wanted = vlan::wanted(&config.vlans()?);
    if wanted.is_empty() {
        return Ok(());
    }
    let present = world.host.vlans(port)?;
    for range in wanted {
        for vid in range.first..=range.last {
            let found = present.iter().find(|p| p.contains(vid));
            if !found.is_some_and(|p| p.pvid == range.pvid && p.untagged == range.untagged) {
                return Err(fail(format!(
                    "interface {} is not in VLAN {vid} as configured",
                    port.name
                )));
            }
        }
    }
    Ok(())
}

fn check_addresses(world: &World, result: &CniResult, end: &Link) -> Result<(), Error> {
    let present = world.container.addresses(end)?;
    for ip in &result.ips {
        let elsewhere = result.interface_of(ip).is_some_and(|i| i.name != end.name);
        if !elsewhere && !present.iter().any(|a| a.ip == ip.address) {
            return Err(fail(format!(
                "address {} is not on interface {}",
                ip.address, end.name
            )));
        }
    }
    Ok(())
}

fn check_routes(world: &World, result: &CniResult, end: &Link) -> Result<(), Error> {
    let wanted = container::routes(result, end.index);
    if wanted.is_empty() {
        return Ok(());
    }
    let present = world.container.routes()?;
    for route in &wanted {
        if !present.iter().any(|p| provides(p, route, end.index)) {
            let via = route
                .gateway
                .map(|gw| format!(" via {gw}"))
                .unwrap_or_default();
            return Err(fail(format!(
                "route {}{via} dev {} was not found in table {}",
                route.dst,
                end.name,
                route.table.unwrap_or(TABLE_MAIN)
            )));
        }
    }
    Ok(())
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

fn check_gateway(
    world: &World,
    config: &Config,
    result: &CniResult,
    bridge: &Link,
) -> Result<(), Error> {
    let wanted = gateway::addresses(result);
    if !config.gateway() || wanted.is_empty() {
        return Ok(());
    }
    let carrier = match config.vlans()?.access {
        None => bridge.clone(),
        Some(vid) => {
            let name = vlan::gateway_name(&bridge.name, vid);
            let link = world.host.find_link(&name)?;
            link.ok_or_else(|| fail(format!("gateway interface {name} not found")))?
        }
    };
    let present = world.host.addresses(&carrier)?;
    for address in &wanted {
        if !present.iter().any(|a| a.ip == *address) {
            return Err(fail(format!(
                "gateway address {address} is not on interface {}",
                carrier.name
            )));
        }
    }
    check_forwarding(&wanted)
}

fn check_forwarding(wanted: &[IpNetwork]) -> Result<(), Error> {
    let switches = [
        (
            wanted.iter().any(IpNetwork::is_ipv4),
            sysctl::path(&["net", "ipv4", "ip_forward"])?,
        ),
        (
            wanted.iter().any(IpNetwork::is_ipv6),
            sysctl::conf("ipv6", "all", "forwarding")?,
        ),
    ];
    for (needed, path) in switches {
        if needed && sysctl::read(&path)? != "1" {
            return Err(fail(format!("forwarding is off ({})", path.display())));
        }
    }
    Ok(())
}

fn check_filter(
    world: &mut World,
    request: &Request<Config>,
    result: &CniResult,
    port: &Link,
    end: &Link,
) -> Result<(), Error> {
    let owner: Owner = owner(request);
    let masquerade = masquerade::intents(&request.config, result);
    if !masquerade.is_empty() {
        let asked = request.config.masquerade_backend()?;
        world
            .filter()?
            .verify_any(asked, Kinds::MASQUERADE, &owner, &masquerade)?;
    }
    if let Some(guard) = guard(request, port, end) {
        world
            .filter()?
            .verify(Backend::Nftables, &owner, &[guard])?;
    }
    Ok(())
}
