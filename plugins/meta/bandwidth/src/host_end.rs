//! The host's end of the container's interface.

use cni_types::result::CniResult;
use interface::World;
use netlink::Link;

use crate::error::Error;

/// The host's end, which an earlier plugin of the list must know of.
pub fn find(world: &World, ifname: &str, result: &CniResult) -> Result<Link, Error> {
    if result.interfaces.is_empty() {
        return Err(Error::NoInterfaces);
    }
    let inside = world.container.find_link(ifname)?;
    let inside = inside.ok_or_else(|| Error::NotFound(ifname.to_owned()))?;
    if !inside.is_veth() {
        return Err(Error::NotVeth {
            ifname: ifname.to_owned(),
            kind: inside.kind.unwrap_or_else(|| "no virtual link".to_owned()),
        });
    }
    let elsewhere = || Error::PeerElsewhere(ifname.to_owned());
    let outside = match world.host.link_by_index(inside.peer.ok_or_else(elsewhere)?) {
        Ok(link) if link.is_peer_of(&inside) => link,
        Ok(_) => return Err(elsewhere()),
        Err(error) if error.is_not_found() => return Err(elsewhere()),
        Err(error) => return Err(error.into()),
    };
    let mut on_host = result.interfaces.iter().filter(|i| i.sandbox.is_empty());
    if !on_host.any(|i| i.name == outside.name) {
        return Err(Error::NotListed(outside.name));
    }
    Ok(outside)
}
