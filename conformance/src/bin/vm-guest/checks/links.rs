//! Plugins that make one link: what they must all do, on a kernel that has each kind.

use conformance::Result;
use conformance::single::{self, Kind, Site};

use super::world::World;
use super::{Check, ipvlan};

fn play(kind: fn(&World) -> Result<Kind>, scenario: fn(&Site) -> Result<()>) -> Result<()> {
    let world = World::new()?;
    let kind = kind(&world)?;
    scenario(&Site {
        host: &world.host,
        runtime: &world.runtime,
        kind,
    })
}

fn macvlan(_: &World) -> Result<Kind> {
    Ok(Kind::macvlan())
}

fn ipvlan(_: &World) -> Result<Kind> {
    Ok(Kind::ipvlan())
}

fn vlan(world: &World) -> Result<Kind> {
    Kind::join_vlan(&world.host)?;
    Ok(Kind::vlan())
}

fn dummy(_: &World) -> Result<Kind> {
    Ok(Kind::dummy())
}

macro_rules! checks {
    ($($kind:ident: $($scenario:ident)+;)+) => {&[$($(
        Check {
            name: concat!(stringify!($kind), "_", stringify!($scenario)),
            run: || play($kind, single::$scenario),
        },
    )+)+]};
}

/// The scenarios that make sense for each kind.
pub const LINKS: &[Check] = checks! {
    macvlan: every_version without_ipam del_is_patient foreign_links_stay failed_add_leaves_nothing
        refused_before_any_change status_says_what_add_meets check_notices of_default_route in_container no_waiting
        duplicates stale_neighbours siblings many_at_once router_advertisements;
    ipvlan: every_version without_ipam dns del_is_patient foreign_links_stay failed_add_leaves_nothing
        refused_before_any_change status_says_what_add_meets check_notices of_default_route in_container no_waiting
        duplicates stale_neighbours siblings many_at_once router_advertisements;
    vlan: every_version without_ipam dns del_is_patient foreign_links_stay failed_add_leaves_nothing
        refused_before_any_change status_says_what_add_meets check_notices in_container no_waiting duplicates
        stale_neighbours router_advertisements;
    dummy: every_version without_ipam dns del_is_patient foreign_links_stay failed_add_leaves_nothing
        refused_before_any_change status_says_what_add_meets check_notices many_at_once;
};

/// What only one kind has.
pub const OWN: &[Check] = &[
    Check {
        name: "ipvlan_mesos",
        run: ipvlan::mesos,
    },
    Check {
        name: "ipvlan_chained",
        run: ipvlan::chained,
    },
    Check {
        name: "ipvlan_at_the_network_layer",
        run: ipvlan::network_layer,
    },
    Check {
        name: "ipvlan_address_taken",
        run: ipvlan::address_taken,
    },
    Check {
        name: "vlan_taken",
        run: super::vlan_link::taken,
    },
    Check {
        name: "vlan_settings",
        run: super::vlan_link::settings,
    },
    Check {
        name: "dummy_beside_one_of_the_host",
        run: super::vlan_link::dummy_of_the_host,
    },
    Check {
        name: "dummy_is_reached",
        run: super::vlan_link::dummy_is_reached,
    },
];
