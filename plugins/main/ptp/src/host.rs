//! The host's end of the pair: settings, gateway addresses, routes to the container.

use std::net::IpAddr;

use cni_types::result::CniResult;
use interface::{World, forwarding};
use ipnetwork::IpNetwork;
use netfilter::{Holder, Owner};
use netlink::sysctl::Conf;
use netlink::{
    Handle, LinkChange, LinkRef, NewAddress, NewRoute, Route, RouteConflict, TABLE_MAIN, VethEnd,
    scope,
};
use skel::{Transaction, log};

use crate::error::Error;
use crate::gateway;

/// Refuses IPv6 addresses on a host whose links get no IPv6.
pub fn require_ipv6(
    network: &str,
    addresses: impl IntoIterator<Item = IpNetwork>,
) -> Result<(), Error> {
    let Some(address) = addresses.into_iter().find(IpNetwork::is_ipv6) else {
        return Ok(());
    };
    match forwarding::ipv6_obstacle(&["default"])? {
        None => Ok(()),
        Some(setting) => Err(Error::Ipv6Disabled {
            network: network.to_owned(),
            address,
            setting,
        }),
    }
}

/// Gives the host's end its settings and its owner's name, and sets it up. The result is that of an IPAM that could be
/// asked before.
pub fn set_up(
    world: &World,
    end: &VethEnd,
    owner: &Owner,
    known: Option<&CniResult>,
) -> Result<(), Error> {
    let ipv4_only = known.is_some_and(|result| {
        !result.ips.is_empty() && result.ips.iter().all(|ip| ip.address.is_ipv4())
    });
    write_settings(&end.name);
    let mut requests = Vec::new();
    if ipv4_only {
        // With IPv6 the host needs a link-local address to ask for the container on behalf of others.
        requests.push(LinkChange::new().no_link_local().request(end)?);
    }
    let up = LinkChange::new().alias(owner.comment()).up(true);
    requests.push(up.request(end)?);
    let mut verdicts = world.host.execute_each(&requests)?;
    let last = verdicts.pop().unwrap_or(Ok(()));
    // A kernel without IPv6 refuses the first; it has nothing to leave out.
    for error in verdicts.into_iter().filter_map(Result::err) {
        log::debug(format_args!("{error}"));
    }
    Ok(last?)
}

/// The container must not tell the host its way, and there is nobody who could hold an address of the host's end.
fn write_settings(name: &str) {
    let written = Conf::open("ipv6", name).and_then(|conf| {
        conf.write("accept_ra", "0")?;
        conf.write("accept_dad", "0")
    });
    if let Err(error) = written {
        log::debug(format_args!("{error}"));
    }
}

/// Makes the host the gateway that the container's routes lead to, and leads the host to the container's addresses.
pub fn connect(
    transaction: &mut Transaction<World>,
    end: &VethEnd,
    owner: &Owner,
    result: &CniResult,
) -> Result<(), Error> {
    let gateways = gateway::gateways(result).into_iter();
    let requests: Vec<_> = gateways
        .map(|ip| NewAddress::new(IpNetwork::from(ip)).nodad().request(end))
        .collect();
    transaction.host.execute_all(&requests)?;
    for ip in &result.ips {
        let route = to_container(ip.address.ip(), end);
        match transaction.host.add_route(&route) {
            Err(error) if error.is_exists() => replace(transaction, owner, &route)?,
            other => other?,
        }
    }
    Ok(())
}

fn to_container(ip: IpAddr, end: &VethEnd) -> NewRoute {
    NewRoute {
        scope: ip.is_ipv4().then_some(scope::HOST),
        conflict: RouteConflict::Refuse,
        ..NewRoute::new(IpNetwork::from(ip), end.index())
    }
}

/// Takes the place of a route that leads to a container which is no more: IPAM has given its address to ours.
fn replace(
    transaction: &mut Transaction<World>,
    owner: &Owner,
    route: &NewRoute,
) -> Result<(), Error> {
    let present = transaction
        .host
        .routes_in(TABLE_MAIN, route.dst.is_ipv6())?;
    let obstacles: Vec<Route> = present
        .into_iter()
        .filter(|r| r.dst == route.dst && r.next_hops.iter().all(|hop| Some(hop.oif) != route.oif))
        .collect();
    for obstacle in &obstacles {
        require_stale(&transaction.host, owner, obstacle)?;
    }
    let ours = NewRoute {
        conflict: RouteConflict::Replace,
        ..route.clone()
    };
    transaction.host.add_route(&ours)?;
    for obstacle in obstacles {
        log::info(format_args!("replaced a route to {}", obstacle.dst));
        transaction.on_failure(
            format!("put the route to {} back", obstacle.dst),
            move |world: &mut World| {
                let old = NewRoute {
                    conflict: RouteConflict::Replace,
                    ..obstacle.to_new()
                };
                world.host.add_route(&old)
            },
        );
    }
    Ok(())
}

/// Refuses to take the address of something that may be alive: IPAM can speak for its own network only.
fn require_stale(host: &Handle, owner: &Owner, route: &Route) -> Result<(), Error> {
    for hop in &route.next_hops {
        let link = match host.link_by_index(hop.oif) {
            Ok(link) => link,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error.into()),
        };
        let holder = link.alias.as_deref().and_then(Holder::parse);
        let other = holder.filter(|holder| !holder.of_network(&owner.network));
        let whose = match other {
            _ if !link.is_veth() => String::new(),
            Some(other) if link.up && link.carrier => format!(
                "it belongs to container {} ({}) of network {}; ",
                other.container_id, other.ifname, other.network
            ),
            _ => continue,
        };
        return Err(Error::Routed {
            address: route.dst.ip(),
            link: link.name,
            whose,
        });
    }
    Ok(())
}
