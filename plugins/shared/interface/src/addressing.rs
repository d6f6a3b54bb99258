//! The container's interface: settings, addresses, routes, announcements.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Instant;

use cni_types::result::{CniResult, Ip, Route};
use ipnetwork::{IpNetwork, Ipv6Network};
use netlink::sysctl::Conf;
use netlink::{Handle, LinkChange, LinkRef, MacAddr, NewAddress, NewRoute, Request, scope};
use serde::Deserialize;
use skel::log;

use crate::error::Error;

/// The smallest MTU with which the kernel does IPv6 on a link, in bytes (RFC 8200, section 5).
const IPV6_MTU_MIN: u32 = 1280;

/// The prefix length of link-local addresses.
const LINK_LOCAL_PREFIX: u8 = 64;

/// Whether the neighbours are asked if somebody holds an IPv6 address already (duplicate address detection, RFC 4862).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dad {
    /// Nobody is asked: nobody else can hold an address from our leases on this link.
    #[default]
    Off,
    /// They are asked, and the address is used in the meantime (RFC 4429). One that turns out to be taken is given up.
    Optimistic,
    /// They are asked, and nothing goes on before the time for an answer is over.
    Wait,
}

/// When the neighbours are told who holds the addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Announcing {
    /// By [`announce`], when traffic can flow.
    #[default]
    WhenReady,
    /// When the link goes up: its MAC address cannot be set, so there is no later occasion for the kernel.
    OnUp,
    /// There are no neighbours.
    Never,
}

/// How an interface takes its addresses up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// Duplicate address detection.
    pub dad: Dad,
    /// Accept router advertisements although the addresses come from IPAM.
    pub accept_ra: bool,
    /// The interface is up already, so it is not set up once more.
    pub is_up: bool,
    /// When the neighbours are told.
    pub announcing: Announcing,
    /// For [`Dad::Optimistic`]: a link-local address that nobody else has, such as the one made of the link's MAC
    /// address. The kernel asks for neighbours from no address that it is still asking about itself, so without this one
    /// nobody would be reached in the first second.
    pub link_local: Option<Ipv6Addr>,
    /// An interface with IPv4 addresses only gets no IPv6 link-local address either, unless it is to hear routers. The
    /// kernel would report the multicast groups of that address to everybody on the segment, four times over.
    pub only_what_is_given: bool,
    /// The addresses do not bring the routes to their networks with them: nobody of these is on the link.
    pub no_prefix_route: bool,
}

/// What [`announce`] will tell the neighbours.
#[derive(Debug, Clone, Default)]
pub struct Announcement {
    ipv4: bool,
    ipv6: Vec<Ipv6Addr>,
}

impl Announcement {
    fn of(result: &CniResult) -> Self {
        let ipv6 = result.ips.iter().filter_map(|ip| match ip.address {
            IpNetwork::V6(network) => Some(network.ip()),
            IpNetwork::V4(_) => None,
        });
        Self {
            ipv4: result.ips.iter().any(|ip| ip.address.is_ipv4()),
            ipv6: ipv6.collect(),
        }
    }
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

/// Refuses what no interface can be given, so that the configuration is blamed and not the kernel.
///
/// # Errors
/// [`Error::AddressOfNobody`], [`Error::AddressTwice`], [`Error::GatewayOfAddress`]; [`Error::GatewayFamily`] for a route whose
/// gateway is of another family than its destination; [`Error::RouteNumber`].
pub fn require_possible(result: &CniResult) -> Result<(), Error> {
    for (place, ip) in result.ips.iter().enumerate() {
        require_address(ip)?;
        let same = |other: &Ip| other.address.ip() == ip.address.ip();
        if result.ips.iter().take(place).any(same) {
            return Err(Error::AddressTwice(ip.address));
        }
    }
    result.routes.iter().try_for_each(require_route)
}

fn require_address(ip: &Ip) -> Result<(), Error> {
    let own = ip.address.ip();
    if own.is_unspecified() || own.is_multicast() {
        return Err(Error::AddressOfNobody(ip.address));
    }
    match ip.gateway {
        Some(gateway) if gateway.is_ipv4() != own.is_ipv4() => Err(Error::GatewayOfAddress {
            address: ip.address,
            gateway,
        }),
        _ => Ok(()),
    }
}

fn require_route(route: &Route) -> Result<(), Error> {
    if let Some(gateway) = route.gw.filter(|gw| gw.is_ipv4() != route.dst.is_ipv4()) {
        return Err(Error::GatewayFamily {
            dst: route.dst,
            gateway,
        });
    }
    let numbers = [
        ("mtu", route.mtu, u32::MAX),
        ("advmss", route.advmss, u32::MAX),
        ("priority", route.priority, u32::MAX),
        ("table", route.table.unwrap_or_default(), u32::MAX),
        ("scope", route.scope.unwrap_or_default(), u32::from(u8::MAX)),
    ];
    let bad = |&(_, number, max): &(_, i64, u32)| !(0..=i64::from(max)).contains(&number);
    match numbers.into_iter().find(bad) {
        None => Ok(()),
        Some((key, number, max)) => Err(Error::RouteNumber {
            dst: route.dst,
            key,
            number,
            max,
        }),
    }
}

/// Gives the interface everything that IPAM said, and sets it up. Returns what is to be announced when traffic can
/// flow.
///
/// # Errors
/// What the kernel refuses.
pub fn configure(
    container: &Handle,
    settings: Settings,
    link: &impl LinkRef,
    result: &CniResult,
) -> Result<Announcement, Error> {
    // Without IPAM the interface belongs to whoever gives it an address, settings included.
    if !result.ips.is_empty() {
        prepare(container, settings, link, has_ipv6(result))?;
    }
    add_link_local(container, settings, link, result)?;
    // The kernel takes packets to an optimistic address in at once only if the link was up when the address came.
    let (later, first): (Vec<_>, Vec<_>) = result
        .ips
        .iter()
        .map(|ip| address(settings, ip))
        .partition(|address| address.optimistic && address.ip.is_ipv6());
    let mut requests: Vec<Request> = first.iter().map(|one| one.request(link)).collect();
    if !settings.is_up {
        requests.push(LinkChange::new().up(true).request(link)?);
    }
    requests.extend(later.iter().map(|one| one.request(link)));
    let confirmations: Vec<Request> = first
        .iter()
        .filter(|one| one.ip.is_ipv6() && !one.no_prefix_route)
        .map(|one| one.confirm(link))
        .collect();
    // The route to the network of an IPv6 address that was there before the link went up is put in as it goes up, from
    // memory that may be short at that moment, and without a word where it is.
    requests.extend(confirmations.iter().cloned());
    container.execute_all(&requests)?;
    for route in routes(result, link.index()) {
        match container.add_route(&route) {
            // The kernel says so only of a route that is the same in every part.
            Err(error) if error.is_exists() => log::info(format_args!("{error}")),
            // The kernel looks for the gateway while it may be busy with the routes of the link that just went up. It
            // is through with those when it has answered about the addresses.
            Err(error) if error.is_unreachable() => {
                log::info(format_args!("{error}"));
                container.execute_all(&confirmations)?;
                container.add_route(&route)?;
            }
            other => other?,
        }
    }
    Ok(match settings.announcing {
        Announcing::WhenReady => Announcement::of(result),
        // The kernel sees to IPv4 itself.
        Announcing::OnUp => Announcement {
            ipv4: false,
            ..Announcement::of(result)
        },
        Announcing::Never => Announcement::default(),
    })
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
    if !has_ipv6(result) {
        return Ok(());
    }
    let ours = |address: &netlink::Address| result.ips.iter().any(|ip| ip.address == address.ip);
    Ok(container.wait_settled(link, ours, deadline)?)
}

/// Tells the neighbours who holds the addresses now. Each announcement goes to all of them, which takes the kernel 6 to
/// 9 ms on a bridge with 1,000 ports, so there is one for each address and no other.
///
/// IPv4: with `arp_notify` on, the kernel announces the addresses of a link whose MAC address is set, be it to the same
/// value. It stays off until now, because the kernel would do it when the link goes up, too, when the other end may
/// not forward yet. Sending the frame ourselves would cost an RCU grace period (10 ms and more) when the packet socket
/// is closed. IPv6: [`Handle::advertise`]; the kernel, with `ndisc_notify`, would announce the link-local address as
/// well, and optimistic addresses not well enough. A failure there is logged and no more: the neighbours find out
/// themselves, some seconds later.
///
/// # Errors
/// When the kernel refuses to set the MAC address.
pub fn announce(
    container: &Handle,
    link: &impl LinkRef,
    mac: MacAddr,
    announcement: &Announcement,
) -> Result<(), Error> {
    if announcement.ipv4 {
        // In two requests: the kernel sets the MAC address first, whatever the order within one.
        let requests = [
            LinkChange::new().arp_notify(true).request(link)?,
            LinkChange::new().mac(mac).request(link)?,
        ];
        container.execute_all(&requests)?;
    }
    if let Err(error) = container.advertise(link, mac, &announcement.ipv6) {
        log::warn(format_args!("{error}"));
    }
    Ok(())
}

fn has_ipv6(result: &CniResult) -> bool {
    result.ips.iter().any(|ip| ip.address.is_ipv6())
}

fn address(settings: Settings, ip: &Ip) -> NewAddress {
    let mut address = NewAddress::new(ip.address);
    address.no_prefix_route = settings.no_prefix_route;
    match settings.dad {
        Dad::Off => address.nodad(),
        Dad::Optimistic => address.optimistic(),
        Dad::Wait => address,
    }
}

fn add_link_local(
    container: &Handle,
    settings: Settings,
    link: &impl LinkRef,
    result: &CniResult,
) -> Result<(), Error> {
    let wanted = settings.dad == Dad::Optimistic && has_ipv6(result);
    let network = settings
        .link_local
        .filter(|_| wanted)
        .and_then(|address| Ipv6Network::new(address, LINK_LOCAL_PREFIX).ok());
    let Some(network) = network else {
        return Ok(());
    };
    match container.add_address(link, &NewAddress::new(network.into()).nodad()) {
        // A link that was up has it already.
        Err(error) if error.is_exists() => Ok(()),
        other => Ok(other?),
    }
}

/// The interface's settings, before it goes up.
fn prepare(
    container: &Handle,
    settings: Settings,
    link: &impl LinkRef,
    ipv6: bool,
) -> Result<(), Error> {
    if settings.announcing == Announcing::OnUp {
        container.change_link(link, &LinkChange::new().arp_notify(true))?;
    }
    if settings.only_what_is_given && !ipv6 && !settings.accept_ra {
        // A kernel without IPv6 refuses; it has nothing to leave out.
        if let Err(error) = container.change_link(link, &LinkChange::new().no_link_local()) {
            log::debug(format_args!("{error}"));
        }
    }
    Ok(container.inside(|| write_ipv6_settings(settings, &link.label(), ipv6))??)
}

/// IPv6 settings have no other door than `/proc`. The thread stands in the container.
fn write_ipv6_settings(settings: Settings, ifname: &str, ipv6: bool) -> netlink::Result<()> {
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
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let routers = if settings.accept_ra { "1" } else { "0" };
    switch(&conf, "accept_ra", routers);
    switch(&conf, "autoconf", routers);
    let (accept_dad, more): (_, &[&str]) = match settings.dad {
        Dad::Off => ("0", &[]),
        Dad::Wait => ("1", &["enhanced_dad", "ndisc_notify"]),
        // Without the last one an address of another interface would be preferred as a source in the meantime.
        Dad::Optimistic => (
            "1",
            &[
                "enhanced_dad",
                "ndisc_notify",
                "optimistic_dad",
                "use_optimistic",
            ],
        ),
    };
    switch(&conf, "accept_dad", accept_dad);
    for key in more {
        switch(&conf, key, "1");
    }
    if ipv6 {
        Conf::open("ipv6", "lo")?.ensure("disable_ipv6", "0")?;
        conf.ensure("disable_ipv6", "0")?;
        // The address outlives a workload that takes its interface down and up again.
        conf.write("keep_addr_on_down", "1")?;
    }
    Ok(())
}

/// Keeps router advertisements out, before IPAM has the link to itself: the DHCP client sets it up.
///
/// # Errors
/// When the container cannot be entered.
pub fn refuse_routers(container: &Handle, link: &impl LinkRef) -> Result<(), Error> {
    let written = container.inside(|| {
        let conf = Conf::open("ipv6", &link.label())?;
        conf.write("accept_ra", "0")?;
        conf.write("autoconf", "0")
    })?;
    // A kernel without IPv6 has no such settings and needs none.
    if let Err(error) = written {
        log::debug(format_args!("{error}"));
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
    let gateway = match route.gw {
        // How DHCP says that there is none (RFC 3442), and what the kernel takes it for.
        Some(gateway) if gateway.is_unspecified() => None,
        Some(gateway) => Some(gateway),
        None => gateway_of(result, route.dst).filter(|_| !on_link),
    };
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
