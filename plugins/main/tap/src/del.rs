//! DEL.

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

fn remove_link(request: &DelRequest<Config>) -> Result<(), Error> {
    let Some(netns) = &request.netns else {
        return Ok(());
    };
    let container = match Netns::open(netns.as_path()).and_then(|netns| Handle::open(&netns)) {
        Ok(container) => container,
        Err(error) if error.is_netns_gone() => return Ok(()),
        // The tap is in there or nowhere.
        Err(error) => {
            log::warn(format_args!("tap: {error}"));
            return Ok(());
        }
    };
    let Some(link) = container.find_link(request.ifname.as_str())? else {
        return Ok(());
    };
    // A workload may have put something else in its place, which is not ours to remove.
    if !link.is_tun() {
        log::warn(format_args!("tap: {} is not a tap; left alone", link.name));
        return Ok(());
    }
    match container.delete_link(&link) {
        Err(error) if error.is_not_found() => Ok(()),
        other => Ok(other?),
    }
}
