//! Access to published ports by 127.0.0.0/8.

use std::net::IpAddr;

use netfilter::{Intent, Netfilter, Snat};
use netlink::{Handle, Link, LinkChange};
use skel::log;

use crate::error::Error;

/// The addresses of the container that 127.0.0.0/8 must reach through the interface towards it.
pub fn targets(intents: &[Intent]) -> Vec<IpAddr> {
    let mut targets = Vec::new();
    for intent in intents {
        let Intent::Publish {
            host_ip, to, snat, ..
        } = intent
        else {
            continue;
        };
        let from_loopback = host_ip.is_none_or(|ip| ip.is_unspecified() || ip.is_loopback());
        let address = to.ip();
        if *snat != Snat::None && to.is_ipv4() && from_loopback && !targets.contains(&address) {
            targets.push(address);
        }
    }
    targets
}

/// Lets packets from 127.0.0.0/8 be forwarded to the container. The switch belongs to the interface, which
/// other containers share, so it stays on; what could come back in through it is dropped from then on.
pub fn open(filter: &mut Netfilter, targets: &[IpAddr]) -> Result<(), Error> {
    let host = Handle::host()?;
    for target in targets {
        let Some(interface) = towards(&host, *target)? else {
            log::warn(format_args!(
                "portmap: no route to {target}; 127.0.0.0/8 cannot reach it"
            ));
            continue;
        };
        filter.guard_localnet()?;
        if interface.route_localnet != Some(true) {
            host.change_link(&interface, &LinkChange::new().route_localnet(true))?;
            log::info(format_args!("route_localnet of {} = 1", interface.name));
        }
    }
    Ok(())
}

/// Fails if an interface towards the container is closed again.
pub fn check(targets: &[IpAddr]) -> Result<(), Error> {
    let host = Handle::host()?;
    for target in targets {
        let Some(interface) = towards(&host, *target)? else {
            continue;
        };
        if interface.route_localnet == Some(false) {
            return Err(Error::RouteLocalnet(interface.name));
        }
    }
    Ok(())
}

/// How often the way is looked up while the interface that it leads to goes away.
const ATTEMPTS: u32 = 4;

/// The interface by which packets to that address leave. One that goes away in between, as that of a container that had the
/// address before, takes its route with it; then there is another way, or none.
fn towards(host: &Handle, target: IpAddr) -> Result<Option<Link>, Error> {
    for _ in 0..ATTEMPTS {
        let way = match host.way_to(target) {
            Ok(way) if !way.local => way,
            Ok(_) => return Ok(None),
            Err(error) => {
                log::debug(format_args!("{error}"));
                return Ok(None);
            }
        };
        match host.link_by_index(way.oif) {
            Ok(link) => return Ok(Some(link)),
            Err(error) if error.is_not_found() => {
                log::debug(format_args!("{error}, to which the way to {target} led"));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}
