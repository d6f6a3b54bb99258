//! DEL and GC.

use cni_types::conf::ValidAttachments;
use interface::owner;
use netfilter::Owner;
use netlink::{Handle, Link};
use skel::{DelRequest, NetworkRequest};

use crate::config::Config;
use crate::error::Error;
use crate::ifb;

/// Removes the block. What is on the host's end of the pair goes with the pair, which the plugin that made it removes next.
pub fn del(request: &DelRequest<Config>) -> Result<(), Error> {
    let owner = owner(request);
    let host = Handle::host()?;
    let mut found = Vec::new();
    for name in ifb::names(&owner) {
        let link = host.find_link(&name)?;
        found.extend(
            link.filter(|link| ifb::is_of(link, &owner) || is_of_reference(link, &owner, request)),
        );
    }
    // There must have been one, so it may have another name by now. To look for it takes longer the more links there are.
    let limits = request.config.limits().unwrap_or_default();
    if found.is_empty() && limits.egress.is_some() {
        found = host.links()?;
        found.retain(|link| ifb::is_of(link, &owner));
    }
    for link in &found {
        host.remove_link(link)?;
    }
    Ok(())
}

/// The name that the reference set chose may be that of another interface of this container. A result that does not list it
/// is the result of an ADD that did not make it.
fn is_of_reference(link: &Link, owner: &Owner, request: &DelRequest<Config>) -> bool {
    let listed = request
        .prev_result
        .as_ref()
        .is_none_or(|result| result.interfaces.iter().any(|i| i.name == link.name));
    listed && ifb::is_of_reference(link, owner)
}

/// Removes the blocks of attachments of the network that are not valid any more.
pub fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
    let ValidAttachments::List(list) = &request.valid else {
        return Ok(());
    };
    let network = request.network.as_str();
    let valid: Vec<Owner> = list
        .iter()
        .map(|a| Owner::new(network, &a.container_id, &a.ifname))
        .collect();
    let host = Handle::host()?;
    let mut errors = Vec::new();
    for link in host.links()? {
        if ifb::is_stale(&link, network, &valid) {
            errors.extend(host.remove_link(&link).err().map(Error::from));
        }
    }
    Error::join(errors)
}
