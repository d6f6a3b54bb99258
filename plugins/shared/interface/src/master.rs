//! The link that an interface sits on.

use netlink::{Handle, Link, TABLE_MAIN};

use crate::error::Error;

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
