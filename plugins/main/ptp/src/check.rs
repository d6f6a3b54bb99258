//! CHECK: what ADD promised, and nothing else. REAPPLY.

use cni_types::result::CniResult;
use interface::{World, forwarding, masquerade, owner, verify};
use ipnetwork::IpNetwork;
use netlink::Link;
use skel::Request;

use crate::config::Config;
use crate::error::Error;
use crate::gateway;

pub fn check(request: &Request<Config>) -> Result<(), Error> {
    let config = &request.config;
    config.validate()?;
    if let Some(ipam) = &request.ipam {
        ipam.check().map_err(interface::Error::from)?;
    }
    let result = prev_result(request)?;
    let mut world = World::open(&request.netns)?;
    let end = container_end(&world, request, result)?;
    let host = host_end(&world, result, &end)?;
    verify::is_up(&end)?;
    verify::has_mtu(&end, config.mtu()?)?;
    verify::addresses(&world.container, result, &end)?;
    let routes = gateway::routes(result, end.index);
    verify::require_routes(&world.container, &routes, &end)?;
    check_host(&world, result, &host)?;
    if config.ip_masq {
        let backend = config.masquerade_backend()?;
        masquerade::verify(&mut world, backend, &owner(request), result)?;
    }
    Ok(())
}

/// Puts the masquerade back.
pub fn reapply(request: &Request<Config>) -> Result<(), Error> {
    let config = &request.config;
    let result = prev_result(request)?;
    let mut world = World::open(&request.netns)?;
    // Of an attachment that is no more, nothing must be put back.
    let end = container_end(&world, request, result)?;
    host_end(&world, result, &end)?;
    if config.ip_masq {
        let backend = config.masquerade_backend()?;
        masquerade::reapply(&mut world, backend, &owner(request), result)?;
    }
    Ok(())
}

fn prev_result(request: &Request<Config>) -> Result<&CniResult, Error> {
    let missing = interface::Error::NoPrevResult;
    Ok(request.prev_result.as_ref().ok_or(missing)?)
}

fn fail(text: String) -> Error {
    interface::Error::Check(text).into()
}

fn container_end(
    world: &World,
    request: &Request<Config>,
    result: &CniResult,
) -> Result<Link, Error> {
    let name = request.ifname.as_str();
    Ok(verify::link(
        &world.container,
        &request.netns,
        name,
        "veth",
        result,
    )?)
}

fn host_end(world: &World, result: &CniResult, end: &Link) -> Result<Link, Error> {
    let missing = || fail(format!("the host's end of {} was not found", end.name));
    let link = match world.host.link_by_index(end.peer.ok_or_else(missing)?) {
        Err(error) if error.is_not_found() => return Err(missing()),
        other => other?,
    };
    if !link.is_peer_of(end) {
        return Err(missing());
    }
    let mut listed = result.interfaces.iter();
    if let Some(promised) = listed.find(|i| i.name == link.name && i.sandbox.is_empty()) {
        verify::same_mac(promised, &link)?;
    }
    if !link.up {
        return Err(fail(format!("interface {} is down", link.name)));
    }
    Ok(link)
}

/// The host is the gateway, knows the way to the container, and passes packets on.
fn check_host(world: &World, result: &CniResult, link: &Link) -> Result<(), Error> {
    let present = world.host.addresses(link)?;
    for gateway in gateway::gateways(result) {
        if !present.iter().any(|address| address.ip.ip() == gateway) {
            return Err(fail(format!(
                "gateway address {gateway} is not on interface {}",
                link.name
            )));
        }
    }
    for ip in &result.ips {
        let address = ip.address.ip();
        let leads = match world.host.way_to(address) {
            Ok(way) if way.oif == link.index => continue,
            Ok(_) => "over another interface",
            Err(_) => "nowhere",
        };
        return Err(fail(format!(
            "the host's route to {address} leads {leads}, not over {}",
            link.name
        )));
    }
    let addresses: Vec<IpNetwork> = result.ips.iter().map(|ip| ip.address).collect();
    Ok(forwarding::verify(&world.host, &addresses)?)
}
