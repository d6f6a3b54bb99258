//! The bridge itself: found or made.

use netlink::{Link, LinkChange, MacAddr, NewBridge, sysctl};
use skel::{Transaction, log};

use crate::config::{Config, PortVlans};
use crate::error::Error;
use crate::gateway;
use crate::world::World;

/// How often a bridge is looked for again when somebody makes or removes it under our hands.
pub const ATTEMPTS: u32 = 5;

/// Finds the bridge, or makes it.
///
/// A bridge that another ADD makes at the same moment is taken as found. One that is made here is removed
/// again on failure, unless it has got a port in the meantime.
pub fn ensure(
    transaction: &mut Transaction<World>,
    config: &Config,
    vlans: &PortVlans,
) -> Result<Link, Error> {
    let name = config.bridge_name()?;
    let mut attempt = 1;
    let link = loop {
        if let Some(link) = transaction.host.find_link(name)? {
            break adopt(&transaction.host, link, config, vlans)?;
        }
        let mac = MacAddr::random()?;
        // Before it is made: the kernel may have made it though its answer is lost.
        undo_creation(transaction, name, mac);
        match create(&transaction.host, name, mac, config, vlans) {
            Ok(link) => {
                transaction.own.bridge_is_new = true;
                break link;
            }
            Err(Error::Netlink(error)) if error.is_exists() && attempt < ATTEMPTS => attempt += 1,
            Err(error) => return Err(error),
        }
    };
    if config.promisc_mode && !link.promisc {
        transaction
            .host
            .change_link(&link, &LinkChange::new().promisc(true))?;
        undo_promiscuity(transaction, &link);
    }
    Ok(link)
}

fn create(
    host: &netlink::Handle,
    name: &str,
    mac: MacAddr,
    config: &Config,
    vlans: &PortVlans,
) -> Result<Link, Error> {
    let bridge = NewBridge {
        name: name.to_owned(),
        mac,
        mtu: config.mtu(),
        vlan_filtering: vlans.filtering,
        up: false,
    };
    let link = host.create_bridge(&bridge)?;
    // What a router says on the containers' network is not meant for the host. Its own link-local address
    // is nobody else's, and while it is being checked the kernel looks for no IPv6 neighbour on the bridge.
    for key in ["accept_ra", "accept_dad"] {
        // A kernel without IPv6 has no such settings and needs none.
        if let Err(error) =
            sysctl::conf("ipv6", name, key).and_then(|path| host.write_sysctl(&path, "0"))
        {
            log::debug(format_args!("{error}"));
        }
    }
    if let Err(error) = host.set_up(&link) {
        host.delete_link(&link)?;
        return Err(error.into());
    }
    Ok(link)
}

fn adopt(
    host: &netlink::Handle,
    link: Link,
    config: &Config,
    vlans: &PortVlans,
) -> Result<Link, Error> {
    require_fitting(&link, vlans)?;
    if let Some(mtu) = config.mtu().filter(|mtu| *mtu > link.mtu) {
        log::warn(format_args!(
            "bridge: {} has MTU {}, less than the {mtu} of the configuration; larger packets are lost there",
            link.name, link.mtu
        ));
    }
    if !link.up {
        host.set_up(&link)?;
    }
    with_mac(host, link)
}

/// The kernel takes the MAC address from a bridge that has lost its last port, unless somebody had given it
/// one. Such a bridge gets one of its own.
fn with_mac(host: &netlink::Handle, mut link: Link) -> Result<Link, Error> {
    if link.mac.is_none_or(|mac| mac == MacAddr::default()) {
        let mac = MacAddr::random()?;
        host.change_link(&link, &LinkChange::new().mac(mac))?;
        link.mac = Some(mac);
    }
    Ok(link)
}

/// Refuses an interface that cannot be the bridge of this configuration.
fn require_fitting(link: &Link, vlans: &PortVlans) -> Result<(), Error> {
    let name = link.name.clone();
    if !link.is_bridge() {
        let kind = link.kind.clone();
        return Err(Error::NotABridge {
            name,
            kind: kind.unwrap_or_else(|| "a hardware or loopback interface".to_owned()),
        });
    }
    match link.vlan_filtering {
        _ if !vlans.filtering => Ok(()),
        Some(true) => Ok(()),
        Some(false) => Err(Error::NotFiltering(name)),
        None => Err(netlink::Error::NoVlanFiltering { link: name }.into()),
    }
}

/// Fails if an ADD could not use the bridge: it is something else, or carries an address that is in the way.
pub fn status(network: &str, config: &Config, has_ipam: bool) -> Result<(), Error> {
    let name = config.bridge_name()?;
    let vlans = config.vlans()?;
    let host = netlink::Handle::host()?;
    let link = host.find_link(name)?;
    if let Some(link) = &link {
        require_fitting(link, &vlans)?;
    }
    if !has_ipam || !config.gateway() {
        return Ok(());
    }
    gateway::require_ipv6_for(network, name, &config.subnets())?;
    match link.filter(|_| vlans.access.is_none()) {
        Some(link) => gateway::status(&host, config, &link),
        None => Ok(()),
    }
}

/// The MAC address tells whether it is the bridge that was made here.
fn undo_creation(transaction: &mut Transaction<World>, name: &str, mac: MacAddr) {
    let name = name.to_owned();
    transaction.on_failure(format!("remove bridge {name}"), move |world: &mut World| {
        let found = world.host.find_link(&name)?;
        let Some(made) = found.filter(|link| link.is_bridge() && link.mac == Some(mac)) else {
            return Ok(());
        };
        if has_ports(&world.host, made.index)? {
            return Ok(());
        }
        match world.host.delete_link(&made) {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    });
}

fn undo_promiscuity(transaction: &mut Transaction<World>, link: &Link) {
    let made = link.clone();
    transaction.on_failure(
        format!("set {} not promiscuous", link.name),
        move |world: &mut World| {
            if has_ports(&world.host, made.index)? {
                return Ok(());
            }
            world
                .host
                .change_link(&made, &LinkChange::new().promisc(false))
        },
    );
}

/// Whether the bridge has a port besides the pair that this link belongs to.
pub fn has_other_ports(host: &netlink::Handle, bridge: u32, link: u32) -> netlink::Result<bool> {
    let mut links = host.links()?.into_iter();
    Ok(links.any(|port| port.master == Some(bridge) && port.peer != Some(link)))
}

/// Whether the bridge serves anybody: then what we changed about it is theirs too by now.
pub fn has_ports(host: &netlink::Handle, bridge: u32) -> netlink::Result<bool> {
    Ok(host.links()?.iter().any(|link| link.master == Some(bridge)))
}
