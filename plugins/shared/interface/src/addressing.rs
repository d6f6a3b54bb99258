//! The container's interface: settings, addresses, routes, announcements.

use std::net::IpAddr;
use std::time::Instant;

use cni_types::result::{CniResult, Ip, Route};
use ipnetwork::IpNetwork;
use netlink::sysctl::{Conf, Writer};
use netlink::{Handle, LinkChange, LinkRef, MacAddr, NewAddress, NewRoute, Request, scope};
use skel::log;

use crate::error::Error;

/// The smallest MTU with which the kernel does IPv6 on a link, in bytes (RFC 8200, section 5).
const IPV6_MTU_MIN: u32 = 1280;

/// How an interface takes its addresses up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Ask the neighbours first whether somebody holds an IPv6 address already (duplicate address detection, RFC
    /// 4862). On a link where nobody else can hold an address from our leases nobody needs to be asked.
    pub detect_duplicates: bool,
    /// Accept router advertisements although the addresses come from IPAM.
    pub accept_ra: bool,
    /// The interface is up already, so it is not set up once more.
    pub is_up: bool,
}

/// Refuses an IPv6 address on a link that is too small for IPv6.
///
/// # Errors
/// [`Error::MtuTooSmall`].
pub fn require_mtu(mtu: Option<u32>, result: &CniResult) -> Result<(), Error> {
    let ipv6 = result
        .ips
        .iter()
        .map(|ip| ip.address)
        .find(IpNetwork::is_ipv6);
    match (mtu.filter(|mtu| *mtu < IPV6_MTU_MIN), ipv6) {
        (Some(mtu), Some(address)) => Err(Error::MtuTooSmall { mtu, address }),
        _ => Ok(()),
    }
}

/// Refuses a route whose gateway is of another family than its destination.
///
/// # Errors
/// [`Error::GatewayFamily`].
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

/// Gives the interface everything that IPAM said, and sets it up. Returns the switches that make the kernel announce
/// the link's addresses when its MAC address is set, for [`announce`].
///
/// They stay off until then: the kernel would announce the addresses when the link goes up, too, when the other end
/// may not forward yet or, if it does, to every neighbour once more.
///
/// # Errors
/// What the kernel refuses.
pub fn configure(
    container: &Handle,
    settings: Settings,
    link: &impl LinkRef,
    result: &CniResult,
) -> Result<Vec<Writer>, Error> {
    // Without IPAM the interface belongs to whoever gives it an address, settings included.
    let announcing = if result.ips.is_empty() {
        Vec::new()
    } else {
        let ipv6 = result.ips.iter().any(|ip| ip.address.is_ipv6());
        container.inside(|| write_settings(settings, &link.label(), ipv6))??
    };
    let mut requests: Vec<Request> = result
        .ips
        .iter()
        .map(|ip| address(settings, ip).request(link))
        .collect();
    if !settings.is_up {
        requests.push(LinkChange::new().up(true).request(link)?);
    }
    container.execute_all(&requests)?;
    for route in routes(result, link.index()) {
        match container.add_route(&route) {
            // The kernel says so only of a route that is the same in every part.
            Err(error) if error.is_exists() => log::info(format_args!("{error}")),
            other => other?,
        }
    }
    Ok(announcing)
}

/// Waits until packets to the IPv6 addresses of a result are taken in: the kernel begins to a moment after an address
/// was added, also for one that needs no detection.
///
/// # Errors
/// When another station holds one of the addresses, or at the deadline.
pub fn settle(
    container: &Handle,
    link: &impl LinkRef,
    result: &CniResult,
    deadline: Instant,
) -> Result<(), Error> {
    if !result.ips.iter().any(|ip| ip.address.is_ipv6()) {
        return Ok(());
    }
    let ours = |address: &netlink::Address| result.ips.iter().any(|ip| ip.address == address.ip);
    Ok(container.wait_settled(link, ours, deadline)?)
}

/// Tells the neighbours who holds the addresses now.
///
/// With `arp_notify` and `ndisc_notify` on, the kernel announces every address of a link whose MAC address is set,
/// be it to the same value. Sending the frames ourselves would cost an RCU grace period (10 ms and more) when the
/// packet socket is closed.
///
/// # Errors
/// When the kernel refuses to set the MAC address.
pub fn announce(
    container: &Handle,
    link: &impl LinkRef,
    mac: MacAddr,
    switches: Vec<Writer>,
) -> Result<(), Error> {
    for mut switch in switches {
        if let Err(error) = switch.write("1") {
            log::debug(format_args!("{error}"));
        }
    }
    Ok(container.change_link(link, &LinkChange::new().mac(mac))?)
}

fn address(settings: Settings, ip: &Ip) -> NewAddress {
    let address = NewAddress::new(ip.address);
    if settings.detect_duplicates {
        address
    } else {
        address.nodad()
    }
}

/// The interface's settings, written before it goes up, and the switches for later. The thread stands in the
/// container.
fn write_settings(settings: Settings, ifname: &str, ipv6: bool) -> netlink::Result<Vec<Writer>> {
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
    let routers = if settings.accept_ra { "1" } else { "0" };
    switch(&conf, "accept_ra", routers);
    switch(&conf, "autoconf", routers);
    if settings.detect_duplicates {
        switch(&conf, "enhanced_dad", "1");
    }
    switch(
        &conf,
        "accept_dad",
        if settings.detect_duplicates { "1" } else { "0" },
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
