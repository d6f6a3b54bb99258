//! DEL and GC.

use cni_types::NetnsPath;
use cni_types::conf::ValidAttachments;
use interface::masquerade::log_warnings;
use interface::{owner, pair};
use netfilter::{Hints, Kinds, Netfilter, Owner};
use netlink::{Handle, Link, Netns};
use skel::{DelRequest, NetworkRequest, log};

use crate::config::Config;
use crate::error::Error;
use crate::vlan;

/// What this plugin is responsible for in the packet filter.
const KINDS: Kinds = Kinds::MASQUERADE.with(Kinds::GUARD_MAC);

/// Removes everything of the attachment. Each step is taken whatever became of the one before.
///
/// The rules go first: the kernel frees them after an RCU grace period and makes whoever closes the packet
/// filter's socket wait for that, which costs nothing while the pair is being removed. The addresses are
/// released last, when nobody uses them any more.
pub fn del(request: &DelRequest<Config>) -> Result<(), Error> {
    let owner = owner(request);
    let mut errors = Vec::new();
    let filter = match remove_rules(request, &owner) {
        Ok(filter) => Some(filter),
        Err(error) => {
            errors.push(error);
            None
        }
    };
    errors.extend(remove_link(request, &owner).err());
    errors.extend(remove_vlan_gateway(&request.config).err());
    if let Some(ipam) = &request.ipam {
        errors.extend(
            ipam.del()
                .err()
                .map(interface::Error::from)
                .map(Error::from),
        );
    }
    drop(filter);
    Error::join(errors)
}

fn remove_rules(request: &DelRequest<Config>, owner: &Owner) -> Result<Netfilter, Error> {
    let leased = request.prev_result.iter().flat_map(|result| &result.ips);
    let hints = Hints {
        addresses: leased.map(|ip| ip.address.ip()).collect(),
        ..Hints::default()
    };
    let mut filter = Netfilter::open()?;
    let removed = filter.remove(owner, KINDS, &hints);
    log_warnings(&mut filter);
    removed?;
    Ok(filter)
}

/// Removes the pair, by its end in the container or by its end on the host.
fn remove_link(request: &DelRequest<Config>, owner: &Owner) -> Result<(), Error> {
    if let Some(netns) = &request.netns {
        match open_container(netns) {
            Ok(container) if remove_from_container(&container, request.ifname.as_str())? => {
                return Ok(());
            }
            Ok(_) => {}
            Err(error) if error.is_netns_gone() => log::info(format_args!("{error}")),
            Err(error) => log::warn(format_args!(
                "bridge: {error}; looking for the host's end instead"
            )),
        }
    }
    // The namespace may live on without its path. Then the host's end is still here, with its owner's name.
    let host = Handle::host()?;
    for link in host.links()?.iter().filter(|link| pair::is_of(link, owner)) {
        delete(&host, link)?;
    }
    Ok(())
}

fn open_container(netns: &NetnsPath) -> netlink::Result<Handle> {
    Handle::open(&Netns::open(netns.as_path())?)
}

/// Removes the interface in the container; false if there is no pair of that name there.
fn remove_from_container(container: &Handle, ifname: &str) -> Result<bool, Error> {
    let Some(link) = container.find_link(ifname)? else {
        return Ok(false);
    };
    // A workload may have put something else in its place, which is not ours to remove.
    if !link.is_veth() {
        log::warn(format_args!(
            "bridge: {ifname} is not a veth any more; left alone"
        ));
        return Ok(false);
    }
    delete(container, &link)?;
    Ok(true)
}

fn delete(handle: &Handle, link: &Link) -> Result<(), Error> {
    match handle.delete_link(link) {
        // It went with its namespace, or by another DEL, in between.
        Err(error) if error.is_not_found() => Ok(()),
        other => Ok(other?),
    }
}

/// Removes the gateway interface of a VLAN with its last user.
fn remove_vlan_gateway(config: &Config) -> Result<(), Error> {
    let Some(vid) = config.vlans().ok().and_then(|vlans| vlans.access) else {
        return Ok(());
    };
    let Ok(name) = config.bridge_name() else {
        return Ok(());
    };
    let host = Handle::host()?;
    let Some(bridge) = host.find_link(name)? else {
        return Ok(());
    };
    let Some(gateway) = host.find_link(&vlan::gateway_name(&bridge.name, vid))? else {
        return Ok(());
    };
    if !gateway.is_veth() {
        return Ok(());
    }
    for link in host.links()? {
        let other_port = link.master == Some(bridge.index) && link.peer != Some(gateway.index);
        if other_port && host.vlans(&link)?.iter().any(|range| range.contains(vid)) {
            return Ok(());
        }
    }
    delete(&host, &gateway)
}

/// Removes what belongs to the network and to none of the valid attachments.
pub fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
    let mut errors = Vec::new();
    if let Some(ipam) = &request.ipam {
        errors.extend(ipam.gc().err().map(interface::Error::from).map(Error::from));
    }
    if let ValidAttachments::List(list) = &request.valid {
        let valid: Vec<Owner> = list
            .iter()
            .map(|a| Owner::new(request.network.as_str(), &a.container_id, &a.ifname))
            .collect();
        errors.extend(collect_links(request.network.as_str(), &valid).err());
        errors.extend(collect_rules(request.network.as_str(), &valid).err());
    }
    Error::join(errors)
}

fn collect_rules(network: &str, valid: &[Owner]) -> Result<(), Error> {
    let mut filter = Netfilter::open()?;
    let collected = filter.collect(network, valid, KINDS);
    log_warnings(&mut filter);
    Ok(collected?)
}

/// Removes the pairs of attachments of the network that are not valid any more.
fn collect_links(network: &str, valid: &[Owner]) -> Result<(), Error> {
    let host = Handle::host()?;
    let mut errors = Vec::new();
    for link in host.links()? {
        if pair::is_stale(&link, network, valid) {
            errors.extend(delete(&host, &link).err());
        }
    }
    Error::join(errors)
}
