//! DEL, and what an ADD that fails takes back.

use cni_types::NetnsPath;
use netlink::{Handle, Netns};
use skel::{DelRequest, log};

use super::Single;
use crate::error::Error;

/// Releases the addresses and removes the link; what went wrong is in the list. IPAM comes first: a DHCP client says
/// goodbye over the link.
pub fn del<S: Single>(request: &DelRequest<S::Config>) -> Vec<S::Error> {
    let mut errors = Vec::new();
    if let Some(ipam) = &request.ipam {
        errors.extend(ipam.del().err().map(Error::from));
    }
    if let Some(netns) = &request.netns {
        errors.extend(from_container::<S>(netns, request.ifname.as_str()).err());
    }
    errors.into_iter().map(S::Error::from).collect()
}

fn from_container<S: Single>(netns: &NetnsPath, ifname: &str) -> Result<(), Error> {
    match Netns::open(netns.as_path()) {
        Ok(netns) => link::<S>(&Handle::open(&netns)?, ifname),
        // The link went with its namespace. An empty file is what remains of a name after its unmounting.
        Err(error @ (netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. })) => {
            log::info(format_args!("{error}"));
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes the link of that name in the container, if it is there and ours.
pub fn link<S: Single>(container: &Handle, ifname: &str) -> Result<(), Error> {
    let Some(link) = container.find_link(ifname)? else {
        return Ok(());
    };
    // A workload may have put something else in its place, which is not ours to remove.
    if !S::is_ours(&link) {
        log::warn(format_args!(
            "{ifname} is no {} any more; left alone",
            S::KIND
        ));
        return Ok(());
    }
    match container.delete_link(&link) {
        // It went with its namespace, or by another DEL, in between.
        Err(error) if error.is_not_found() => Ok(()),
        other => Ok(other?),
    }
}
