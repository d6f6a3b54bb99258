//! The link that an interface sits on.

use netlink::{Handle, Link, TABLE_MAIN};

use crate::error::Error;
use crate::world::World;

/// The link of the name that the configuration gives, or else the one that the default route leads to.
///
/// # Errors
/// [`Error::NoMaster`] if there is no link of that name, [`Error::NoDefaultRoute`] if none is named and no default
/// route names one.
pub fn find(handle: &Handle, configured: &str) -> Result<Link, Error> {
    if configured.is_empty() {
        return of_default_route(handle);
    }
    match handle.find_link(configured)? {
        Some(link) => Ok(link),
        None => Err(Error::NoMaster(configured.to_owned())),
    }
}

/// The link of the default route: IPv4 before IPv6, the best metric first. Of a multipath route the first way counts;
/// `unreachable` and its like lead nowhere and do not count.
fn of_default_route(handle: &Handle) -> Result<Link, Error> {
    let mut candidates: Vec<_> = handle
        .routes()?
        .into_iter()
        .filter(|route| route.table == TABLE_MAIN && route.is_unicast() && route.is_default())
        .collect();
    candidates.sort_by_key(|route| (route.dst.is_ipv6(), route.metric));
    let index = candidates
        .iter()
        .flat_map(|route| &route.next_hops)
        .map(|hop| hop.oif)
        .find(|oif| *oif != 0)
        .ok_or(Error::NoDefaultRoute)?;
    Ok(handle.link_by_index(index)?)
}

/// The namespace that the link to sit on is in: the host's, or the container's with `linkInContainer`.
pub fn place<X>(world: &World<X>, in_container: bool) -> &Handle {
    if in_container {
        &world.container
    } else {
        &world.host
    }
}

/// Refuses a link that cannot have others on top.
///
/// # Errors
/// [`Error::UnfitMaster`].
pub fn require_ethernet(link: &Link) -> Result<(), Error> {
    let why = match link {
        Link { loopback: true, .. } => "is the loopback interface",
        Link { mac: None, .. } => "is not an Ethernet interface",
        _ => return Ok(()),
    };
    Err(unfit(link, why))
}

/// Refuses a link that hands all it receives to a bridge.
///
/// # Errors
/// [`Error::UnfitMaster`].
pub fn require_no_port(link: &Link) -> Result<(), Error> {
    match link.port {
        Some(_) => Err(unfit(
            link,
            "is a port of a bridge, which takes all its frames",
        )),
        None => Ok(()),
    }
}

/// Refuses a link that is down.
///
/// # Errors
/// [`Error::UnfitMaster`].
pub fn require_up(link: &Link) -> Result<(), Error> {
    if link.up {
        Ok(())
    } else {
        Err(unfit(link, "is down"))
    }
}

fn unfit(link: &Link, why: &'static str) -> Error {
    Error::UnfitMaster {
        master: link.name.clone(),
        why,
    }
}

/// The MTU to set, in bytes, of the key `mtu`; 0 leaves it to the kernel, which takes the master's.
///
/// # Errors
/// [`Error::MtuOfMaster`] beyond the master's or below 0, [`Error::Mtu`] if no interface can be that small.
pub fn mtu(configured: i64, master: &Link) -> Result<Option<u32>, Error> {
    if !(0..=i64::from(master.mtu)).contains(&configured) {
        return Err(Error::MtuOfMaster {
            mtu: configured,
            limit: master.mtu,
        });
    }
    crate::config::mtu(configured)
}

/// CHECK: the link sits on the link that the configuration names. Without a name nothing was promised: the default
/// route may lead elsewhere by now.
///
/// # Errors
/// [`Error::NoMaster`] if there is no link of that name, [`Error::Check`] if the link sits on another.
pub fn verify(place: &Handle, configured: &str, link: &Link) -> Result<(), Error> {
    if configured.is_empty() {
        return Ok(());
    }
    let master = find(place, configured)?;
    if link.peer == Some(master.index) {
        return Ok(());
    }
    Err(Error::Check(format!(
        "container interface {} does not sit on {configured}",
        link.name
    )))
}
