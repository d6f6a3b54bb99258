//! DEL.

use interface::{owner, redirect};
use netfilter::Owner;
use netlink::{Handle, Link, Netns};
use skel::{DelRequest, log};

use crate::config::Config;
use crate::error::Error;
use crate::machine;

/// Removes the tap, and gives the interface back to the container.
pub fn del(request: &DelRequest<Config>) -> Result<(), Error> {
    let Some(netns) = &request.netns else {
        return Ok(());
    };
    let container = match Netns::open(netns.as_path()).and_then(|netns| Handle::open(&netns)) {
        Ok(container) => container,
        // Everything went with the namespace, also where its path leads to something else by now.
        Err(error @ (netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. })) => {
            log::info(format_args!("{error}"));
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let link = container.find_link(request.ifname.as_str())?;
    let mut errors = Vec::new();
    let leads_to = match &link {
        Some(link) => redirect::targets(&container, link)?,
        None => Vec::new(),
    };
    let taps = taps(&container, request, &leads_to)?;
    if let Some(link) = &link {
        let doomed: Vec<u32> = taps.iter().map(|tap| tap.index).collect();
        errors.extend(
            redirect::remove(&container, link, &doomed)
                .err()
                .map(Error::from),
        );
    }
    for tap in &taps {
        errors.extend(container.remove_link(tap).err().map(Error::from));
    }
    Error::join(errors)
}

/// The taps of the attachment: those that carry its name, and those of the original plugin, which the result or a filter of
/// the container's interface tells.
fn taps(
    container: &Handle,
    request: &DelRequest<Config>,
    leads_to: &[u32],
) -> Result<Vec<Link>, Error> {
    let owner = owner(request);
    let result = request.prev_result.as_ref();
    let machine = result.and_then(|result| machine::find(result, &request.container_id));
    let nobodys = |link: &Link| link.is_tun() && link.alias.is_none();
    let of_original = |link: &Link| {
        let listed = machine
            .as_ref()
            .is_some_and(|machine| machine.interface.name == link.name);
        nobodys(link) && (listed || leads_to.contains(&link.index))
    };
    let mut links = container.links()?;
    links.retain(|link| is_of(link, &owner) || of_original(link));
    Ok(links)
}

/// Whether it is the tap of this attachment.
pub fn is_of(link: &Link, owner: &Owner) -> bool {
    let alias = link.alias.as_deref();
    link.is_tun() && alias.is_some_and(|alias| alias.starts_with(&owner.instance_hash()))
}
