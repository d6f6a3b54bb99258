//! The bridge as the container's gateway.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use cni_types::result::{CniResult, Ip, Route};
use interface::forwarding;
use interface::gateway::first_address;
use ipnetwork::IpNetwork;
use netlink::{Address, Link, LinkChange, LinkRef, NewAddress};
use skel::Transaction;

use crate::bridging::has_ports;
use crate::config::Config;
use crate::error::Error;
use crate::world::World;

/// Fills in what the configuration promises about gateways: the gateway of each address (the first address
/// of its network unless IPAM says otherwise), and with `isDefaultGateway` a default route per family.
pub fn complete(config: &Config, result: &mut CniResult) {
    if !config.gateway() {
        return;
    }
    for ip in &mut result.ips {
        ip.gateway = ip.gateway.or_else(|| Some(first_address(ip.address)));
    }
    if !config.is_default_gateway {
        return;
    }
    for gateway in result
        .ips
        .iter()
        .filter_map(|ip| ip.gateway)
        .collect::<Vec<_>>()
    {
        let default = default_network(gateway.is_ipv6());
        match result.routes.iter_mut().find(|route| route.dst == default) {
            // A default route that names no gateway means this one.
            Some(route) => route.gw = route.gw.or(Some(gateway)),
            None => result.routes.push(Route::new(default, Some(gateway))),
        }
    }
}

/// `0.0.0.0/0` or `::/0`.
fn default_network(ipv6: bool) -> IpNetwork {
    let unspecified: IpAddr = if ipv6 {
        Ipv6Addr::UNSPECIFIED.into()
    } else {
        Ipv4Addr::UNSPECIFIED.into()
    };
    // A prefix length of 0 fits every family, so the fallback is never taken.
    IpNetwork::new(unspecified, 0).unwrap_or_else(|_| IpNetwork::from(unspecified))
}

/// The gateway addresses that the interface must carry, each once, IPv4 first.
pub fn addresses(result: &CniResult) -> Vec<IpNetwork> {
    let mut wanted: Vec<IpNetwork> = Vec::new();
    for ip in &result.ips {
        wanted.extend(gateway_address(ip).filter(|address| !wanted.contains(address)));
    }
    wanted.sort_by_key(IpNetwork::is_ipv6);
    wanted
}

fn gateway_address(ip: &Ip) -> Option<IpNetwork> {
    IpNetwork::new(ip.gateway?, ip.address.prefix()).ok()
}

/// Puts the gateway addresses on an interface of the host. Tells whether any was missing.
pub fn put_addresses(
    transaction: &mut Transaction<World>,
    config: &Config,
    link: &impl LinkRef,
    bridge: u32,
    wanted: &[IpNetwork],
) -> Result<bool, Error> {
    let mut changed = false;
    let present = transaction.host.addresses(link)?;
    let mut siblings = config.subnets();
    siblings.extend(wanted);
    for address in wanted {
        if present.iter().any(|a| a.ip == *address) {
            continue;
        }
        for obstacle in present.iter().filter(|a| conflicts(a, *address, &siblings)) {
            replace(transaction, config, link, bridge, obstacle, *address)?;
        }
        add(transaction, link, bridge, *address)?;
        changed = true;
    }
    Ok(changed)
}

/// Whether an address of the interface keeps the network from using it. The gateways of the network's other
/// subnets do not; an IPv6 address does only if the subnets overlap.
fn conflicts(present: &Address, wanted: IpNetwork, siblings: &[IpNetwork]) -> bool {
    if present.ip.is_ipv4() != wanted.is_ipv4() {
        return false;
    }
    let overlap = present.ip.contains(wanted.ip()) || wanted.contains(present.ip.ip());
    let sibling = siblings
        .iter()
        .any(|s| s.contains(present.ip.ip()) && s.prefix() == present.ip.prefix());
    overlap || (wanted.is_ipv4() && !sibling)
}

fn replace(
    transaction: &mut Transaction<World>,
    config: &Config,
    link: &impl LinkRef,
    bridge: u32,
    obstacle: &Address,
    wanted: IpNetwork,
) -> Result<(), Error> {
    if !config.force_address {
        return Err(Error::AddressConflict {
            bridge: link.label().into_owned(),
            wanted,
            found: obstacle.ip,
        });
    }
    let (index, ip) = (link.index(), obstacle.ip);
    match transaction.host.delete_address(link, ip) {
        // Another ADD was faster.
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    }
    transaction.on_failure(
        format!("put {ip} back on {}", link.label()),
        move |world: &mut World| {
            if has_ports(&world.host, bridge)? {
                return Ok(());
            }
            world.host.add_address(&index, &NewAddress::new(ip).nodad())
        },
    );
    Ok(())
}

fn add(
    transaction: &mut Transaction<World>,
    link: &impl LinkRef,
    bridge: u32,
    address: IpNetwork,
) -> Result<(), Error> {
    match transaction
        .host
        .add_address(link, &NewAddress::new(address).nodad())
    {
        // Another ADD on the same bridge was faster, and wants the same.
        Err(error) if error.is_exists() => return Ok(()),
        other => other?,
    }
    let index = link.index();
    transaction.on_failure(
        format!("remove {address} from {}", link.label()),
        move |world: &mut World| {
            if has_ports(&world.host, bridge)? {
                return Ok(());
            }
            world.host.delete_address(&index, address)
        },
    );
    Ok(())
}

/// Pins the MAC address of a bridge that somebody else made, so that it does not follow its ports: the
/// kernel keeps an address that was set, even to the same value.
pub fn pin_mac(host: &netlink::Handle, bridge: &Link) -> Result<(), Error> {
    let Some(mac) = bridge.mac else {
        return Ok(());
    };
    Ok(host.change_link(bridge, &LinkChange::new().mac(mac))?)
}

/// Fails if the bridge carries an address that keeps the gateways of the configured subnets away.
pub fn status(host: &netlink::Handle, config: &Config, bridge: &Link) -> Result<(), Error> {
    let siblings = config.subnets();
    let Some(subnet) = siblings.iter().find(|s| s.is_ipv4()) else {
        return Ok(());
    };
    let stranger = host.addresses(bridge)?.into_iter().find(|present| {
        let sibling = siblings.iter().any(|s| s.contains(present.ip.ip()));
        present.ip.is_ipv4() && !sibling
    });
    match stranger.filter(|_| !config.force_address) {
        None => Ok(()),
        Some(found) => Err(Error::AddressConflict {
            bridge: bridge.name.clone(),
            wanted: *subnet,
            found: found.ip,
        }),
    }
}

/// Refuses an IPv6 gateway on a host where IPv6 is off, before anything is made.
pub fn require_ipv6(network: &str, bridge: &str, result: &CniResult) -> Result<(), Error> {
    let addresses: Vec<IpNetwork> = result.ips.iter().map(|ip| ip.address).collect();
    require_ipv6_for(network, bridge, &addresses)
}

/// Fails if one of the networks is IPv6 and the bridge could not have an address in it.
pub fn require_ipv6_for(network: &str, bridge: &str, addresses: &[IpNetwork]) -> Result<(), Error> {
    let Some(address) = addresses.iter().copied().find(IpNetwork::is_ipv6) else {
        return Ok(());
    };
    // The bridge's own switch counts; a bridge still to be made takes over the default.
    match forwarding::ipv6_obstacle(&[bridge, "default"])? {
        None => Ok(()),
        Some(setting) => Err(Error::Ipv6Disabled {
            network: network.to_owned(),
            address,
            setting,
        }),
    }
}
