//! What an interface loses when it changes its routing domain, and how it gets it back.
//!
//! The kernel sets it down and up again then. IPv4 addresses and the routes to their networks come back by themselves,
//! in the new table; every other route is gone, and so are IPv6 addresses unless `keep_addr_on_down` is set.

use netlink::{ExactAddress, ExactRoute, Handle, Link, LinkChange, TABLE_LOCAL, TABLE_MAIN};
use skel::log;

use crate::error::Error;

/// The addresses and routes of an interface.
#[derive(Debug, Clone)]
pub struct Belongings {
    /// The interface.
    pub link: Link,
    /// IPv6 addresses.
    addresses: Vec<ExactAddress>,
    /// Its routes of both families, but for those that the kernel keeps for addresses. Those through routers come last:
    /// a router can only be used once the way to it is known.
    routes: Vec<ExactRoute>,
}

/// A change of the routing domain: routes of one table come to be in another. Those of any third one stay there.
#[derive(Debug, Clone, Copy)]
pub struct Move {
    /// The index of the new VRF; 0 for none.
    pub master: u32,
    /// The table of the old domain.
    pub from: u32,
    /// The table of the new one.
    pub to: u32,
}

impl Move {
    /// Out of every VRF, with each route in the table that it is known to be of.
    pub fn home() -> Self {
        Self {
            master: 0,
            from: TABLE_MAIN,
            to: TABLE_MAIN,
        }
    }
}

impl Belongings {
    /// Those of a link.
    ///
    /// # Errors
    /// If a listing fails.
    pub fn of(container: &Handle, link: Link) -> Result<Self, Error> {
        let mut addresses = container.exact_addresses(&link)?;
        addresses.retain(|one| one.address().ip.is_ipv6());
        let mut routes = container.exact_routes(false)?;
        routes.extend(container.exact_routes(true)?);
        routes.retain(|one| is_of(one, &link));
        routes.sort_by_key(has_gateway);
        Ok(Self {
            link,
            addresses,
            routes,
        })
    }

    /// Moves the interface and gives it back what it lost.
    ///
    /// # Errors
    /// The kernel's refusals; all the rest is given back all the same.
    pub fn go(&self, container: &Handle, way: Move) -> Result<(), Error> {
        let change = LinkChange::new().master(way.master);
        container.change_link(&self.link, &change)?;
        let mut errors = Vec::new();
        let mut note = |outcome: Result<(), Error>| errors.extend(outcome.err());
        match container.exact_addresses(&self.link) {
            Ok(present) => {
                for address in &self.addresses {
                    note(self.give_address(container, address, &present));
                }
            }
            Err(error) => note(Err(error.into())),
        }
        for route in &self.routes {
            note(give_route(container, route, way));
        }
        Error::join(errors)
    }

    /// An address that could be used before can be used at once: a link-local one that the kernel has made anew and is
    /// asking the neighbours about is put in its place.
    fn give_address(
        &self,
        container: &Handle,
        lost: &ExactAddress,
        present: &[ExactAddress],
    ) -> Result<(), Error> {
        let known = |one: &&ExactAddress| one.address().ip == lost.address().ip;
        if let Some(again) = present.iter().find(known) {
            if !again.address().is_tentative() || lost.address().is_tentative() {
                return Ok(());
            }
            let gone = container.delete_address(&self.link, lost.address().ip);
            absent_or(gone)?;
        }
        present_or(container.execute(&lost.request(&self.link)))
    }

    /// Whether an address was in use before.
    pub fn had(&self, address: &netlink::Address) -> bool {
        let mut usable = self.addresses.iter().map(ExactAddress::address);
        usable.any(|one| one.ip == address.ip && !one.is_tentative() && !one.is_duplicate())
    }
}

fn give_route(container: &Handle, route: &ExactRoute, way: Move) -> Result<(), Error> {
    let table = match route.route().table {
        table if table == way.from => way.to,
        other => other,
    };
    present_or(container.execute(&route.in_table(table).spelled_out().request()))
}

fn is_of(one: &ExactRoute, link: &Link) -> bool {
    let route = one.route();
    let is_multicast = route.dst.ip().is_multicast();
    route.is_unicast()
        && !is_multicast
        && route.table != TABLE_LOCAL
        && !route.next_hops.is_empty()
        && route.next_hops.iter().all(|hop| hop.oif == link.index)
}

fn has_gateway(one: &ExactRoute) -> bool {
    let mut hops = one.route().next_hops.iter();
    hops.any(|hop| hop.gateway.is_some())
}

/// What is there need not be made: the kernel was faster.
fn present_or(outcome: netlink::Result<()>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.is_exists() => {
            log::debug(format_args!("{error}"));
            Ok(())
        }
        other => Ok(other?),
    }
}

fn absent_or(outcome: netlink::Result<()>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.is_not_found() => {
            log::debug(format_args!("{error}"));
            Ok(())
        }
        other => Ok(other?),
    }
}
