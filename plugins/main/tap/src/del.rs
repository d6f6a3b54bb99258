//! DEL.

use interface::owner;
use netlink::{Handle, Netns};
use skel::{DelRequest, log};

use crate::config::Config;
use crate::error::Error;

/// Removes the tap and releases its addresses, whatever became of the step before.
pub fn del(request: &DelRequest<Config>) -> Result<(), Error> {
    let mut errors = Vec::new();
    errors.extend(remove_link(request).err());
    if let Some(ipam) = &request.ipam {
        errors.extend(
            ipam.del()
                .err()
                .map(interface::Error::from)
                .map(Error::from),
        );
    }
    Error::join(errors)
}

/// Removes the tap by its name, and by its owner's name in case the workload has given it another.
fn remove_link(request: &DelRequest<Config>) -> Result<(), Error> {
    let Some(netns) = &request.netns else {
        return Ok(());
    };
    let container = match Netns::open(netns.as_path()).and_then(|netns| Handle::open(&netns)) {
        Ok(container) => container,
        // The tap went with the namespace, also where its path leads to something else by now.
        Err(error @ (netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. })) => {
            log::info(format_args!("{error}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let owner = owner(request).instance_hash();
    for link in container.links()? {
        let alias = link.alias.as_deref().unwrap_or_default();
        let is_named = link.name == request.ifname.as_str();
        // A workload may have put something else in its place, which is not ours to remove.
        if is_named && !link.is_tun() {
            log::warn(format_args!("tap: {} is not a tap; left alone", link.name));
        }
        if link.is_tun() && (is_named || alias.starts_with(&owner)) {
            container.remove_link(&link)?;
        }
    }
    Ok(())
}
