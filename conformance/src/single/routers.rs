//! Router advertisements on the segment.

use std::io;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::time::Instant;

use serde_json::json;
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{Context, Result};
use crate::net::{Netns, Rtnl};
use crate::probe::PATIENCE;

use super::site::{Container, Site, equal, holds, ip, setting};

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// The prefix that is advertised, and how addresses in it begin.
const PREFIX: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0x77, 0, 0, 0, 0, 0);
const BEGINNING: &str = "2001:db8:77:";

/// A container whose addresses come from IPAM takes no others and no routes from routers, unless it is told to; one
/// without IPAM does.
///
/// # Errors
/// What is not so.
pub fn router_advertisements(site: &Site) -> Result<()> {
    let Some(gateway) = site.kind.segment.gateway else {
        return Ok(());
    };
    let v4_only = json!({"ipam": {"type": "host-local", "ranges": [[{"subnet": site.kind.segment.v4,
        "rangeStart": site.kind.segment.first_v4}]]}});
    let mut willing = v4_only.clone();
    super::site::merge(&mut willing, &json!({"acceptRA": true}));
    for (name, config, taken) in [
        ("deaf", site.config(&v4_only), false),
        ("willing", site.config(&willing), true),
        ("flat", site.flat(&json!({})), true),
    ] {
        let Container { netns, attachment } = site.container(name)?;
        site.add(&config, &attachment)?;
        let expected = if taken { "1" } else { "0" };
        for key in ["accept_ra", "autoconf"] {
            let value = setting(&netns, &format!("ipv6/conf/eth0/{key}"))?;
            equal(key, &value.as_str(), &expected)?;
        }
        if taken {
            until_taken(site, gateway.link, &netns)?;
        } else {
            until_heard(site, gateway.link, &netns)?;
            let addresses = ip(&netns, "-6 addr show dev eth0")?;
            holds("no address from a router", !addresses.contains(BEGINNING))?;
            equal(
                "routes from a router",
                &ip(&netns, "-6 route show proto ra")?,
                &String::new(),
            )?;
        }
        site.good("DEL", &config, &attachment)?;
    }
    Ok(())
}

/// An advertisement is ignored while the link has no link-local address yet, so it is repeated as routers do.
fn until_taken(site: &Site, link: &str, netns: &Netns) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        advertise(site.host.outside(), link)?;
        if ip(netns, "-6 addr show dev eth0")?.contains(BEGINNING) {
            return Ok(());
        }
        holds("an address from a router", Instant::now() < end)?;
    }
}

/// Returns when the container's kernel has had an advertisement in its hands.
fn until_heard(site: &Site, link: &str, netns: &Netns) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    loop {
        advertise(site.host.outside(), link)?;
        let counters = netns.run(|| {
            std::fs::read_to_string("/proc/thread-self/net/snmp6").doing(|| "read the counters")
        })?;
        let heard = counters
            .lines()
            .filter_map(|line| line.strip_prefix("Icmp6InRouterAdvertisements"))
            .any(|count| count.trim() != "0");
        if heard {
            return Ok(());
        }
        holds("an advertisement arrives", Instant::now() < end)?;
    }
}

/// Sends one router advertisement (RFC 4861, 4.2) with a prefix to make addresses of.
fn advertise(from: &Netns, link: &str) -> Result<()> {
    let index = Rtnl::open(from)?.link(link)?.index;
    from.run(|| send(index).doing(|| "send a router advertisement"))
}

fn send(index: u32) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    socket.set_multicast_hops_v6(255)?;
    // Type, code, checksum (the kernel's), hop limit, flags, lifetime in seconds; two timers that are left open.
    let mut message = vec![134, 0, 0, 0, 64, 0, 0x07, 0x08];
    message.extend([0; 8]);
    // Option "prefix information" of four units; on-link and autonomous; lifetimes in seconds.
    message.extend([3, 4, 64, 0xc0]);
    message.extend(86400_u32.to_be_bytes());
    message.extend(14400_u32.to_be_bytes());
    message.extend([0; 4]);
    message.extend(PREFIX.octets());
    let to = SocketAddrV6::new(ALL_NODES, 0, 0, index);
    socket.send_to(&message, &to.into()).map(drop)
}
