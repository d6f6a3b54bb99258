//! Removing pairs.

use cni_types::NetnsPath;
use netfilter::Owner;
use netlink::{Handle, Netns};
use skel::log;

use super::{is_of, is_stale};
use crate::error::Error;

/// Removes the pair of an attachment: by its end in the container or, where that cannot be reached, by its end on the
/// host.
///
/// # Errors
/// When the kernel refuses; not if there is nothing to remove.
pub fn remove(netns: Option<&NetnsPath>, owner: &Owner) -> Result<(), Error> {
    if let Some(netns) = netns {
        match open(netns) {
            Ok(container) if remove_from_container(&container, &owner.ifname)? => return Ok(()),
            Ok(_) => {}
            Err(error) if error.is_netns_gone() => log::info(format_args!("{error}")),
            Err(error) => {
                log::warn(format_args!("{error}; looking for the host's end instead"));
            }
        }
    }
    // The namespace may live on without its path. Then the host's end is still here, with its owner's name.
    let host = Handle::host()?;
    for link in host.links()?.iter().filter(|link| is_of(link, owner)) {
        host.remove_link(link)?;
    }
    Ok(())
}

/// Removes the pairs of attachments of the network that are not valid any more; what went wrong is in the list.
pub fn collect(network: &str, valid: &[Owner]) -> Vec<Error> {
    let listed = Handle::host().and_then(|host| Ok((host.links()?, host)));
    let (links, host) = match listed {
        Ok(listed) => listed,
        Err(error) => return vec![error.into()],
    };
    let stale = links.iter().filter(|link| is_stale(link, network, valid));
    stale
        .filter_map(|link| host.remove_link(link).err())
        .map(Error::from)
        .collect()
}

fn open(netns: &NetnsPath) -> netlink::Result<Handle> {
    Handle::open(&Netns::open(netns.as_path())?)
}

/// Removes the interface in the container; false if there is no pair of that name there.
fn remove_from_container(container: &Handle, ifname: &str) -> Result<bool, Error> {
    let Some(link) = container.find_link(ifname)? else {
        return Ok(false);
    };
    // A workload may have put something else in its place, which is not ours to remove.
    if !link.is_veth() {
        log::warn(format_args!("{ifname} is not a veth any more; left alone"));
        return Ok(false);
    }
    container.remove_link(&link)?;
    Ok(true)
}
