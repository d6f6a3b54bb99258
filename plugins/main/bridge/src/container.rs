//! The container's end: settings, addresses, routes.

use std::net::IpAddr;

use cni_types::result::{CniResult, Ip, Route};
use ipnetwork::IpNetwork;
use netlink::sysctl::{Conf, Writer};
use netlink::{Handle, LinkChange, NewAddress, NewRoute, Request, VethEnd, scope};
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

/// Gives the container's end everything that IPAM said, and sets it up. Returns the switches that make the kernel
/// announce the link's addresses when its MAC address is set.
///
/// They stay off until then: the kernel would announce the addresses when the link goes up, too, when the port does
/// not forward yet or, if it does, to every container on the bridge once more.
pub fn configure(
    container: &Handle,
    config: &Config,
    end: &VethEnd,
    result: &CniResult,
) -> Result<Vec<Writer>, Error> {
    // Without IPAM the interface belongs to whoever gives it an address, settings included.
    let announcing = if result.ips.is_empty() {
        Vec::new()
    } else {
        let ipv6 = result.ips.iter().any(|ip| ip.address.is_ipv6());
        container.inside(|| settings(config, &end.name, ipv6))??
    };
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
    Ok(announcing)
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

/// The interface's settings, written before it goes up, and the switches for later. The thread stands in the
/// container.
fn settings(config: &Config, ifname: &str, ipv6: bool) -> netlink::Result<Vec<Writer>> {
    let mut announcing = Vec::new();
    match Conf::open("ipv4", ifname).and_then(|conf| conf.writer("arp_notify")) {
        Ok(switch) => announcing.push(switch),
        Err(error) => log::debug(format_args!("{error}")),
    }
    let switch = |conf: &Conf, key: &str, value: &str| {
        conf.write(key, value).unwrap_or_else(|error| {
            log::debug(format_args!("{error}"));
        });
    };
    let conf = match Conf::open("ipv6", ifname) {
        Ok(conf) => conf,
        // A kernel without IPv6 has no such settings; there is nothing to switch then.
        Err(error) if !ipv6 => {
            log::debug(format_args!("{error}"));
            return Ok(announcing);
        }
        Err(error) => return Err(error),
    };
    let routers = if config.accept_ra { "1" } else { "0" };
    switch(&conf, "accept_ra", routers);
    switch(&conf, "autoconf", routers);
    if config.enabledad {
        switch(&conf, "enhanced_dad", "1");
    }
    switch(
        &conf,
        "accept_dad",
        if config.enabledad { "1" } else { "0" },
    );
    announcing.extend(conf.writer("ndisc_notify").ok());
    if ipv6 {
        Conf::open("ipv6", "lo")?.ensure("disable_ipv6", "0")?;
        conf.ensure("disable_ipv6", "0")?;
        // The address outlives a workload that takes its interface down and up again.
        conf.write("keep_addr_on_down", "1")?;
    }
    Ok(announcing)
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
