//! Which changes make packets leave by the interface whose address they carry, and which take that back.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use netlink::{ExactRoute, Link, NewRoute, NewRule, Route, TABLE_MAIN, scope};

use crate::address::Address;
use crate::change::Change;
use crate::config::{Gateways, Mode};
use crate::state::{GIVEN_TABLE, OWN_TABLE, State, owns_table};

/// The changes of an ADD.
pub fn add(state: &State, link: &Link, addresses: &[Address], mode: Mode) -> Vec<Change> {
    match mode {
        Mode::Given(table) => addresses
            .iter()
            .map(|address| Change::add_rule(&rule(address, table, GIVEN_TABLE)))
            .collect(),
        Mode::Own { gateways, hints } => {
            let plan = Plan {
                state,
                link,
                addresses,
                gateways,
            };
            let mut changes = plan.fill_tables();
            if hints {
                changes.extend(plan.hints());
            }
            changes.extend(plan.empty_main(hints));
            changes
        }
    }
}

/// What takes back what was done for the interface.
#[derive(Debug)]
pub struct Removal {
    /// Puts routes where they came from; what they need may be gone by now.
    pub back: Vec<Change>,
    /// Takes rules away, and the routes of their tables if those are ours.
    pub gone: Vec<Change>,
}

impl Removal {
    /// That of rules of ours.
    pub fn of(state: &State, rules: &[NewRule], mode: Option<Mode>) -> Self {
        let owned = rules.iter().filter(|rule| owns_table(rule, mode));
        let moved: Vec<&ExactRoute> = owned
            .flat_map(|rule| state.routes_of_link(rule.table))
            .collect();
        let theirs = moved
            .iter()
            .filter(|one| one.route().protocol != OWN_TABLE && !is_link_local(one.route()));
        let mut back: Vec<ExactRoute> = theirs.map(|one| one.in_table(TABLE_MAIN)).collect();
        back.sort_by_key(|one| has_gateway(one.route()));
        let routes = moved.iter().rev();
        let routes = routes.map(|one| Change::remove_exact(one, false));
        let rules = rules.iter().map(|rule| Change::add_rule(rule).reversed());
        Self {
            back: back.iter().map(Change::add_exact).collect(),
            gone: routes.chain(rules).collect(),
        }
    }

    /// Whether there is nothing to take back.
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }
}

fn rule(address: &Address, table: u32, protocol: u8) -> NewRule {
    NewRule {
        src: IpNetwork::from(address.net.ip()),
        table,
        protocol,
        priority: None,
    }
}

struct Plan<'a> {
    state: &'a State,
    link: &'a Link,
    addresses: &'a [Address],
    gateways: Gateways,
}

impl Plan<'_> {
    /// A rule and a table for each address. The rule comes first: it marks the table as ours, should we be killed.
    fn fill_tables(&self) -> Vec<Change> {
        let mut changes = Vec::new();
        for (address, table) in self.addresses.iter().zip(self.state.free_tables()) {
            changes.push(Change::add_rule(&rule(address, table, OWN_TABLE)));
            let mut copies: Vec<ExactRoute> = self
                .routes_for(address)
                .filter(|one| !self.has_static_gateway(address) || !one.route().is_default())
                .map(|one| one.in_table(table))
                .collect();
            // A router can only be used once the way to it is known.
            copies.sort_by_key(|one| has_gateway(one.route()));
            changes.extend(copies.iter().map(Change::add_exact));
            changes.extend(
                self.default_route(address, table, &copies)
                    .map(|route| Change::add_route(&route)),
            );
        }
        changes
    }

    /// The default route of an address, unless the interface's own one is as good.
    fn default_route(
        &self,
        address: &Address,
        table: u32,
        copies: &[ExactRoute],
    ) -> Option<NewRoute> {
        let ipv6 = address.net.is_ipv6();
        let gateway = self.gateways.of(ipv6).or(address.gateway)?;
        let usual_metric = if ipv6 { 1024 } else { 0 };
        let same =
            |one: &ExactRoute| one.route().is_default() && one.route().metric == usual_metric;
        if gateway.is_ipv6() != ipv6 || copies.iter().any(same) {
            return None;
        }
        let everywhere: IpNetwork = match gateway {
            IpAddr::V4(_) => IpNetwork::new(IpAddr::from([0; 4]), 0).ok()?,
            IpAddr::V6(_) => IpNetwork::new(IpAddr::from([0; 16]), 0).ok()?,
        };
        Some(NewRoute {
            table: Some(table),
            protocol: Some(OWN_TABLE),
            onlink: !address.net.contains(gateway) && !is_link_local_address(gateway),
            ..NewRoute::new(everywhere, self.link.index).via(gateway)
        })
    }

    fn has_static_gateway(&self, address: &Address) -> bool {
        self.gateways.of(address.net.is_ipv6()).is_some()
    }

    /// The interface's routes in the main table that packets from this address may take.
    fn routes_for(&self, address: &Address) -> impl Iterator<Item = &ExactRoute> {
        let others = self.other_networks(address);
        self.state
            .routes_of_link(TABLE_MAIN)
            .filter(move |one| belongs(one.route(), address, &others))
    }

    /// The networks of the interface's other addresses of the family, but for link-local ones, which all share.
    fn other_networks(&self, address: &Address) -> Vec<IpNetwork> {
        let of_link = self.state.addresses.iter();
        of_link
            .filter(|one| one.index == self.link.index && one.ip.ip() != address.net.ip())
            .map(|one| one.ip)
            .chain(self.addresses.iter().map(|one| one.net))
            .filter(|net| net.is_ipv6() == address.net.is_ipv6() && net.ip() != address.net.ip())
            .filter(|net| !is_link_local_address(net.ip()))
            .collect()
    }

    /// The routes to the interface's own networks, each with the address as its source.
    fn hints(&self) -> Vec<Change> {
        self.addresses
            .iter()
            .filter_map(|address| self.hint(address))
            .collect()
    }

    fn hint(&self, address: &Address) -> Option<Change> {
        let (network, prefix) = (address.net.network(), address.net.prefix());
        if usize::from(prefix) == if address.net.is_ipv6() { 128 } else { 32 } {
            return None;
        }
        let to_network = |one: &&ExactRoute| {
            let dst = one.route().dst;
            (dst.network(), dst.prefix()) == (network, prefix) && !has_gateway(one.route())
        };
        let ip = address.net.ip();
        match self.state.routes_of_link(TABLE_MAIN).find(to_network) {
            Some(known) if known.route().src.is_some() => None,
            Some(known) => Some(Change::replace_exact(known, &known.with_src(ip))),
            None => {
                let net = IpNetwork::new(network, prefix).ok()?;
                let v4_scope = Some(scope::LINK).filter(|_| net.is_ipv4());
                Some(Change::add_route(&NewRoute {
                    src: Some(ip),
                    scope: v4_scope,
                    ..NewRoute::new(net, self.link.index)
                }))
            }
        }
    }

    /// Takes the routes out of the main table that the addresses have in theirs; with hints those through routers
    /// only. Link-local addresses need no source to be told apart, and are no use without their route.
    fn empty_main(&self, hints: bool) -> Vec<Change> {
        let is_moved = |one: &&ExactRoute| {
            let mut all = self.addresses.iter();
            all.any(|address| belongs(one.route(), address, &self.other_networks(address)))
        };
        let mut moved: Vec<&ExactRoute> = self
            .state
            .routes_of_link(TABLE_MAIN)
            .filter(|one| !is_link_local(one.route()))
            .filter(|one| !hints || has_gateway(one.route()))
            .filter(is_moved)
            .collect();
        // The other way round they come back, should that be needed: the way to a router before what goes through it.
        moved.sort_by_key(|one| !has_gateway(one.route()));
        let removed = moved.into_iter();
        removed
            .map(|one| Change::remove_exact(one, self.is_first(one)))
            .collect()
    }

    /// Whether a route of the main table is tried before all others of other links to its destination.
    fn is_first(&self, one: &ExactRoute) -> bool {
        let place = |route: &Route| (route.dst, route.metric);
        let all = self.state.routes.iter().map(ExactRoute::route);
        let mut same =
            all.filter(|route| route.table == TABLE_MAIN && place(route) == place(one.route()));
        let first = same.next();
        first.is_some_and(|route| route.next_hops.iter().all(|hop| hop.oif == self.link.index))
    }
}

/// Whether packets from an address may take a route: it has the address' family, and no router or source in another
/// network of the interface.
fn belongs(route: &Route, address: &Address, others: &[IpNetwork]) -> bool {
    if route.dst.is_ipv6() != address.net.is_ipv6() {
        return false;
    }
    let gateways = route.next_hops.iter().filter_map(|hop| hop.gateway);
    let mut points = gateways.chain(route.src);
    points.all(|point| address.net.contains(point) || !others.iter().any(|net| net.contains(point)))
}

fn has_gateway(route: &Route) -> bool {
    route.next_hops.iter().any(|hop| hop.gateway.is_some())
}

fn is_link_local(route: &Route) -> bool {
    is_link_local_address(route.dst.ip())
}

fn is_link_local_address(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}
