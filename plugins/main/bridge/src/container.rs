//! The container's end: settings, addresses, routes.

use std::net::IpAddr;

use cni_types::result::{CniResult, Ip, Route};
use ipnetwork::IpNetwork;
use netlink::{Handle, LinkChange, NewAddress, NewRoute, Request, VethEnd, scope, sysctl};
use skel::log;

use crate::config::Config;
use crate::error::Error;

/// The smallest MTU with which the kernel does IPv6 on a link, in bytes (RFC 8200, section 5).
const IPV6_MTU_MIN: u32 = 1280;

/// Refuses an IPv6 address on a link that is too small for IPv6.
pub fn require_mtu(config: &Config, result: &CniResult) -> Result<(), Error> {
    let ipv6 = result
        .ips
        .iter()
        .map(|ip| ip.address)
        .find(IpNetwork::is_ipv6);
    match (config.mtu().filter(|mtu| *mtu < IPV6_MTU_MIN), ipv6) {
        (Some(mtu), Some(address)) => Err(Error::MtuTooSmall { mtu, address }),
        _ => Ok(()),
    }
}

/// Refuses a route whose gateway is of another family than its destination.
pub fn require_gateways(result: &CniResult) -> Result<(), Error> {
    for route in &result.routes {
        if let Some(gateway) = route.gw.filter(|gw| gw.is_ipv4() != route.dst.is_ipv4()) {
            return Err(Error::GatewayFamily {
                dst: route.dst,
                gateway,
            });
        }
    }
    Ok(())
}

/// Gives the container's end everything that IPAM said, and sets it up.
pub fn configure(
    container: &Handle,
    config: &Config,
    end: &VethEnd,
    result: &CniResult,
) -> Result<(), Error> {
    // Without IPAM the interface belongs to whoever gives it an address, settings included.
    if !result.ips.is_empty() {
        let ipv6 = result.ips.iter().any(|ip| ip.address.is_ipv6());
        container.inside(|| settings(config, &end.name, ipv6))??;
    }
    let mut requests: Vec<Request> = result
        .ips
        .iter()
        .map(|ip| address(config, ip).request(end))
        .collect();
    requests.push(LinkChange::new().up(true).request(end)?);
    container.execute_all(&requests)?;
    for route in routes(result, end.index) {
        match container.add_route(&route) {
            // The kernel says so only of a route that is the same in every part.
            Err(error) if error.is_exists() => log::info(format_args!("{error}")),
            other => other?,
        }
    }
    Ok(())
}

fn address(config: &Config, ip: &Ip) -> NewAddress {
    let address = NewAddress::new(ip.address);
    // Nobody else can hold an address from our own leases on this link, so nobody needs to be asked.
    if config.enabledad {
        address
    } else {
        address.nodad()
    }
}

/// The interface's settings, written before it goes up. The thread stands in the container.
fn settings(config: &Config, ifname: &str, ipv6: bool) -> netlink::Result<()> {
    let wanted = [
        (
            "ipv6",
            "accept_ra",
            if config.accept_ra { "1" } else { "0" },
        ),
        ("ipv6", "autoconf", if config.accept_ra { "1" } else { "0" }),
        (
            "ipv6",
            "enhanced_dad",
            if config.enabledad { "1" } else { "" },
        ),
        (
            "ipv6",
            "accept_dad",
            if config.enabledad { "1" } else { "0" },
        ),
        ("ipv4", "arp_notify", "1"),
        ("ipv6", "ndisc_notify", "1"),
    ];
    for (family, key, value) in wanted.into_iter().filter(|(_, _, value)| !value.is_empty()) {
        // A kernel without IPv6 has no such settings; there is nothing to switch then.
        if let Err(error) =
            sysctl::conf(family, ifname, key).and_then(|path| sysctl::write(&path, value))
        {
            log::debug(format_args!("{error}"));
        }
    }
    if ipv6 {
        for link in ["lo", ifname] {
            sysctl::ensure(&sysctl::conf("ipv6", link, "disable_ipv6")?, "0")?;
        }
        // The address outlives a workload that takes its interface down and up again.
        sysctl::write(&sysctl::conf("ipv6", ifname, "keep_addr_on_down")?, "1")?;
    }
    Ok(())
}

/// The result's routes as the kernel wants them. A route without a gateway goes through the gateway of its
/// family, if there is one and the route's scope reaches that far.
pub fn routes(result: &CniResult, oif: u32) -> Vec<NewRoute> {
    let mut routes: Vec<NewRoute> = Vec::new();
    for route in &result.routes {
        let new = to_kernel(route, result, oif);
        let same = |other: &NewRoute| {
            (other.dst, other.gateway, other.metric, other.table)
                == (new.dst, new.gateway, new.metric, new.table)
        };
        if !routes.iter().any(same) {
            routes.push(new);
        }
    }
    routes
}

fn to_kernel(route: &Route, result: &CniResult, oif: u32) -> NewRoute {
    let reach = route.scope.and_then(|s| u8::try_from(s).ok());
    let on_link = reach.is_some_and(|s| s >= scope::LINK);
    let gateway = route
        .gw
        .or_else(|| gateway_of(result, route.dst).filter(|_| !on_link));
    let mut new = NewRoute {
        metric: positive(route.priority),
        table: route.table.and_then(positive),
        scope: reach,
        mtu: positive(route.mtu),
        advmss: positive(route.advmss),
        ..NewRoute::new(route.dst, oif)
    };
    if let Some(gateway) = gateway {
        new.onlink = !result.ips.iter().any(|ip| ip.address.contains(gateway));
        new = new.via(gateway);
    }
    new
}

fn positive(number: i64) -> Option<u32> {
    u32::try_from(number).ok().filter(|n| *n > 0)
}

/// The first gateway of the destination's family.
fn gateway_of(result: &CniResult, dst: IpNetwork) -> Option<IpAddr> {
    result
        .ips
        .iter()
        .filter_map(|ip| ip.gateway)
        .find(|gw| gw.is_ipv4() == dst.is_ipv4())
}
