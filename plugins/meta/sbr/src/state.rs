//! What is in the container's namespace.

use std::collections::BTreeSet;
use std::net::IpAddr;

use netlink::{ExactRoute, Handle, Link, NewRule, Rule, TABLE_LOCAL, TABLE_MAIN};

use crate::address::Address;
use crate::config::Mode;
use crate::error::Error;

/// Marks our rules (`FRA_PROTOCOL`) whose table is ours, too, and the routes in it that nobody else has made. No routing
/// daemon has this number.
pub const OWN_TABLE: u8 = 203;
/// Marks our rules whose table is somebody else's.
pub const GIVEN_TABLE: u8 = 204;
/// What the reference set's rules have.
const NOBODY: u8 = 0;
/// `RTPROT_KERNEL`.
const BY_KERNEL: u8 = 2;
/// The first table that is chosen, as in the reference set.
const FIRST_TABLE: u32 = 100;
/// `RT_TABLE_DEFAULT`, the first of the three that every namespace has.
const TABLE_DEFAULT: u32 = 253;
/// Everything that is looked at.
#[derive(Debug)]
pub struct State {
    /// The interface, if it is there.
    pub link: Option<Link>,
    /// The addresses of all interfaces.
    pub addresses: Vec<netlink::Address>,
    /// The rules of both families.
    pub rules: Vec<Rule>,
    /// The routes of both families in all tables.
    pub routes: Vec<ExactRoute>,
}

impl State {
    /// Looks at a namespace.
    ///
    /// # Errors
    /// If a listing fails.
    pub fn read(container: &Handle, ifname: &str) -> Result<Self, Error> {
        let mut rules = container.rules(false)?;
        rules.extend(container.rules(true)?);
        let mut routes = container.exact_routes(false)?;
        routes.extend(container.exact_routes(true)?);
        Ok(Self {
            link: container.find_link(ifname)?,
            addresses: container.all_addresses()?,
            rules,
            routes,
        })
    }

    /// Our rules for this interface: those that are marked, and those that the reference set has made for it.
    ///
    /// A rule does not say which interface it is for, and its address may be gone by now. So a marked rule is also
    /// ours if nobody has its address and its table is this interface's alone, or empty.
    pub fn ours(&self, addresses: &[Address], mode: Option<Mode>) -> Vec<&Rule> {
        let ours = |rule: &&Rule| match rule.protocol {
            OWN_TABLE | GIVEN_TABLE => self.is_ours(rule, addresses),
            NOBODY => self.is_of_reference_set(rule, addresses, mode),
            _ => false,
        };
        self.rules.iter().filter(ours).collect()
    }

    fn is_ours(&self, rule: &Rule, addresses: &[Address]) -> bool {
        let Some(src) = source(rule) else {
            return false;
        };
        if self.has(src) {
            return true;
        }
        let users = self.users(rule.table);
        if addresses.iter().any(|one| one.net.ip() == src) {
            return users.is_empty() || users.iter().any(|index| self.is_link(*index));
        }
        let somebody_has_it = self.addresses.iter().any(|one| one.ip.ip() == src);
        !somebody_has_it && users.iter().all(|index| self.is_link(*index))
    }

    /// The reference set marks nothing. Its rule is for an address of the interface that has none of ours, and its
    /// table is the one of the configuration or one that is filled with the interface's routes and no others, some of
    /// them copies of those that the kernel makes, which no administrator writes by hand.
    fn is_of_reference_set(&self, rule: &Rule, addresses: &[Address], mode: Option<Mode>) -> bool {
        let Some(src) = source(rule) else {
            return false;
        };
        let known = self.has(src) || addresses.iter().any(|one| one.net.ip() == src);
        let marked =
            |one: &Rule| matches!(one.protocol, OWN_TABLE | GIVEN_TABLE) && one.src == rule.src;
        if !known || self.rules.iter().any(marked) {
            return false;
        }
        match mode {
            Some(Mode::Given(table)) => table == rule.table,
            _ => {
                let users = self.users(rule.table);
                let mut routes = self.routes_of_link(rule.table);
                rule.table >= FIRST_TABLE
                    && users.iter().all(|index| self.is_link(*index))
                    && routes.any(|one| one.route().protocol == BY_KERNEL)
            }
        }
    }

    /// Whether the interface has that address.
    fn has(&self, ip: IpAddr) -> bool {
        let mut all = self.addresses.iter();
        all.any(|one| one.ip.ip() == ip && self.is_link(one.index))
    }

    fn is_link(&self, index: u32) -> bool {
        self.link.as_ref().is_some_and(|link| link.index == index)
    }

    /// The links that the routes of a table lead over. Nobody's for the tables that every namespace has.
    fn users(&self, table: u32) -> BTreeSet<u32> {
        if (TABLE_DEFAULT..=TABLE_LOCAL).contains(&table) {
            return BTreeSet::new();
        }
        let routes = self.routes.iter().map(ExactRoute::route);
        routes
            .filter(|route| route.table == table)
            .flat_map(|route| route.next_hops.iter().map(|hop| hop.oif))
            .collect()
    }

    /// The interface's routes in a table: those that lead over it and nothing else.
    pub fn routes_of_link(&self, table: u32) -> impl Iterator<Item = &ExactRoute> {
        self.routes.iter().filter(move |one| {
            let route = one.route();
            route.table == table
                && route.is_unicast()
                && !route.next_hops.is_empty()
                && route.next_hops.iter().all(|hop| self.is_link(hop.oif))
        })
    }

    /// Tables that nobody uses, in either family, be it with a rule or with a route.
    pub fn free_tables(&self) -> impl Iterator<Item = u32> {
        let mut used: BTreeSet<u32> = self.rules.iter().map(|rule| rule.table).collect();
        used.extend(self.routes.iter().map(|one| one.route().table));
        used.extend(TABLE_DEFAULT..=TABLE_MAIN);
        used.insert(TABLE_LOCAL);
        (FIRST_TABLE..).filter(move |table| !used.contains(table))
    }
}

/// The one address that a rule is for.
fn source(rule: &Rule) -> Option<IpAddr> {
    let src = rule.to_new()?.src;
    rule.is_from(src.ip()).then_some(src.ip())
}

/// Whether the table of one of our rules is ours.
pub fn owns_table(rule: &NewRule, mode: Option<Mode>) -> bool {
    match rule.protocol {
        OWN_TABLE => true,
        NOBODY => !matches!(mode, Some(Mode::Given(_))),
        _ => false,
    }
}
