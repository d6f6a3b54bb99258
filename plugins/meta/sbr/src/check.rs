//! CHECK: what ADD promised, and nothing else.

use std::net::IpAddr;

use cni_types::result::CniResult;
use ipnetwork::IpNetwork;
use netlink::{Link, Route, TABLE_MAIN};

use crate::address::Address;
use crate::config::Mode;
use crate::error::Error;
use crate::state::State;

/// Every address has its rule, and its table has what it needs.
///
/// # Errors
/// [`Error::Check`] for the first thing that is not there.
pub fn verify(
    state: &State,
    link: &Link,
    addresses: &[Address],
    mode: Mode,
    result: &CniResult,
) -> Result<(), Error> {
    for address in addresses {
        let table = table_of(state, address, mode)?;
        let Mode::Own { gateways, .. } = mode else {
            continue;
        };
        let own = Table {
            number: table,
            state,
            link,
        };
        let named = gateways.of(address.net.is_ipv6());
        own.has_default(address, named)?;
        own.has_network(address)?;
        own.has_routes(address, named.is_some(), result)?;
    }
    Ok(())
}

/// The table that packets from an address are looked up in.
fn table_of(state: &State, address: &Address, mode: Mode) -> Result<u32, Error> {
    let ip = address.net.ip();
    let rules = state.ours(std::slice::from_ref(address), Some(mode));
    let fits = |table: u32| match mode {
        Mode::Given(given) => table == given,
        Mode::Own { .. } => true,
    };
    let mut of_address = rules.iter().filter(|rule| rule.is_from(ip));
    match of_address.find(|rule| fits(rule.table)) {
        Some(rule) => Ok(rule.table),
        None => Err(Error::Check(match mode {
            Mode::Given(table) => format!("there is no rule from {ip} to table {table}"),
            Mode::Own { .. } => format!("there is no rule from {ip}"),
        })),
    }
}

/// The table of one address.
struct Table<'a> {
    number: u32,
    state: &'a State,
    link: &'a Link,
}

impl Table<'_> {
    fn routes(&self) -> impl Iterator<Item = &Route> {
        let all = self.state.routes_of_link(self.number);
        all.map(|one| one.route())
    }

    fn lacks(&self, what: &str) -> Error {
        Error::Check(format!(
            "table {} has no {what} dev {}",
            self.number, self.link.name
        ))
    }

    /// A default route: through the router that the configuration names, or through any if only the result has one.
    fn has_default(&self, address: &Address, named: Option<IpAddr>) -> Result<(), Error> {
        let Some(gateway) = named.or(address.gateway) else {
            return Ok(());
        };
        let ipv6 = address.net.is_ipv6();
        let fits = |route: &Route| {
            let defaults = route.is_default() && route.dst.is_ipv6() == ipv6;
            defaults && named.is_none_or(|gateway| leads_through(route, gateway))
        };
        if gateway.is_ipv6() != ipv6 || self.routes().any(fits) {
            return Ok(());
        }
        Err(self.lacks(&format!("default route via {gateway}")))
    }

    /// The way to the address' own network.
    fn has_network(&self, address: &Address) -> Result<(), Error> {
        let alone = if address.net.is_ipv6() { 128 } else { 32 };
        let leads = |route: &Route| same_network(route.dst, address.net);
        if address.net.prefix() == alone || self.routes().any(leads) {
            return Ok(());
        }
        let net = format!("{}/{}", address.net.network(), address.net.prefix());
        Err(self.lacks(&format!("route to {net}")))
    }

    /// The result's routes through routers of the address' network.
    fn has_routes(
        &self,
        address: &Address,
        default_is_named: bool,
        result: &CniResult,
    ) -> Result<(), Error> {
        let in_main = |table: Option<i64>| {
            matches!(table, None | Some(0)) || table == Some(i64::from(TABLE_MAIN))
        };
        for route in result.routes.iter().filter(|route| in_main(route.table)) {
            let Some(gateway) = route.gw.filter(|gateway| address.net.contains(*gateway)) else {
                continue;
            };
            if default_is_named && route.dst.prefix() == 0 {
                continue;
            }
            let leads =
                |one: &Route| same_network(one.dst, route.dst) && leads_through(one, gateway);
            if !self.routes().any(leads) {
                return Err(self.lacks(&format!("route to {} via {gateway}", route.dst)));
            }
        }
        Ok(())
    }
}

fn leads_through(route: &Route, gateway: IpAddr) -> bool {
    route
        .next_hops
        .iter()
        .any(|hop| hop.gateway == Some(gateway))
}

fn same_network(one: IpNetwork, other: IpNetwork) -> bool {
    (one.network(), one.prefix()) == (other.network(), other.prefix())
}
