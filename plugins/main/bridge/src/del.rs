//! DEL and GC.

use cni_types::conf::ValidAttachments;
use interface::masquerade::{log_warnings, remove_rules};
use interface::{owner, pair};
use netfilter::{Kinds, Netfilter, Owner};
use netlink::{Handle, Link};
use skel::{DelRequest, Delegate, NetworkRequest};

use crate::config::Config;
use crate::error::Error;
use crate::vlan;

/// What this plugin is responsible for in the packet filter.
const KINDS: Kinds = Kinds::MASQUERADE.with(Kinds::GUARD_MAC);

/// Removes everything of the attachment. Each step is taken whatever became of the one before.
///
/// The rules go first: the kernel frees them after an RCU grace period and makes whoever closes the packet
/// filter's socket wait for that, which costs nothing while the pair is being removed. The addresses are
/// released last, when nobody uses them any more, but by an IPAM that says goodbye over the link.
pub fn del(request: &DelRequest<Config>) -> Result<(), Error> {
    let owner = owner(request);
    let mut errors = Vec::new();
    let (first, last): (Vec<_>, Vec<_>) = request
        .ipam
        .iter()
        .partition(|ipam| interface::speaks_over_the_link(ipam));
    errors.extend(first.into_iter().filter_map(release));
    let filter = match remove_rules(&owner, KINDS, request.prev_result.as_ref()) {
        Ok(filter) => Some(filter),
        Err(error) => {
            errors.push(error.into());
            None
        }
    };
    errors.extend(
        pair::remove(request.netns.as_ref(), &owner)
            .err()
            .map(Error::from),
    );
    errors.extend(remove_vlan_gateway(&request.config).err());
    errors.extend(last.into_iter().filter_map(release));
    drop(filter);
    Error::join(errors)
}

fn release(ipam: &Delegate) -> Option<Error> {
    let error = ipam.del().err()?;
    Some(interface::Error::from(error).into())
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
        let pairs = pair::collect(request.network.as_str(), &valid);
        errors.extend(pairs.into_iter().map(Error::from));
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
