//! CHECK: what ADD promised, and nothing else.

use cni_types::result::CniResult;
use interface::{forwarding, masquerade, owner, verify};
use netfilter::{ApplyOptions, Backend, Intent};
use netlink::Link;
use skel::{Request, log};

use crate::config::Config;
use crate::error::Error;
use crate::world::World;
use crate::{gateway, vlan};

pub fn check(request: &Request<Config>) -> Result<(), Error> {
    request.config.validate(request.ipam.is_some())?;
    if let Some(ipam) = &request.ipam {
        ipam.check().map_err(interface::Error::from)?;
    }
    let result = prev_result(request)?;
    let mut world = World::open(&request.netns)?;
    let bridge = check_bridge(&world, &request.config, result)?;
    log::info(format_args!("the bridge {} is as it was", bridge.name));
    let end = check_container(&world, request, result)?;
    let port = check_port(&world, &request.config, result, &bridge, &end)?;
    log::info(format_args!(
        "the pair {} {} is as it was",
        port.name, end.name
    ));
    verify::addresses(&world.container, result, &end)?;
    verify::routes(&world.container, result, &end)?;
    log::info(format_args!("addresses and routes are as they were"));
    check_gateway(&world, &request.config, result, &bridge)?;
    check_filter(&mut world, request, result, &port, &end)?;
    log::info(format_args!("gateway and packet filter are as they were"));
    Ok(())
}

/// Puts the masquerade and the MAC guard back.
pub fn reapply(request: &Request<Config>) -> Result<(), Error> {
    let result = prev_result(request)?;
    let mut world = World::open(&request.netns)?;
    let bridge = check_bridge(&world, &request.config, result)?;
    let end = check_container(&world, request, result)?;
    let port = check_port(&world, &request.config, result, &bridge, &end)?;
    let owner = owner(request);
    if request.config.ip_masq {
        let backend = request.config.masquerade_backend()?;
        masquerade::reapply(&mut world, backend, &owner, result)?;
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

fn prev_result(request: &Request<Config>) -> Result<&CniResult, Error> {
    let missing = interface::Error::NoPrevResult;
    Ok(request.prev_result.as_ref().ok_or(missing)?)
}

fn fail(text: String) -> Error {
    interface::Error::Check(text).into()
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
        verify::same_mac(promised, &link)?;
    }
    if config.promisc_mode && !link.promisc {
        return Err(fail(format!("bridge interface {name} is not promiscuous")));
    }
    Ok(link)
}

fn check_container(
    world: &World,
    request: &Request<Config>,
    result: &CniResult,
) -> Result<Link, Error> {
    let name = request.ifname.as_str();
    let link = verify::link(&world.container, &request.netns, name, "veth", result)?;
    if !request.config.disable_container_interface {
        verify::is_up(&link)?;
    }
    verify::has_mtu(&link, request.config.mtu())?;
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
        verify::same_mac(promised, &port)?;
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
    Ok(forwarding::verify(&world.host, &wanted)?)
}

fn check_filter(
    world: &mut World,
    request: &Request<Config>,
    result: &CniResult,
    port: &Link,
    end: &Link,
) -> Result<(), Error> {
    let owner = owner(request);
    if request.config.ip_masq {
        let backend = request.config.masquerade_backend()?;
        masquerade::verify(world, backend, &owner, result)?;
    }
    if let Some(guard) = guard(request, port, end) {
        world
            .filter()?
            .verify(Backend::Nftables, &owner, &[guard])?;
    }
    Ok(())
}
