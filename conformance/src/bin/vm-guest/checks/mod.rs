//! What is checked in the machine.

mod first;
mod hairpin;
mod ipvlan;
mod isolation;
mod links;
mod membership;
mod refusal;
mod vlan_link;
mod world;

use conformance::Result;

/// A check: it runs in a sandbox of its own and fails by its error.
pub struct Check {
    /// What a selection is compared with.
    pub name: &'static str,
    /// The check itself.
    pub run: fn() -> Result<()>,
}

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [BRIDGE, links::LINKS, links::OWN].into_iter().flatten()
}

/// Those of bridges and what hangs on them.
const BRIDGE: &[Check] = &[
    Check {
        name: "vlan_access_port",
        run: membership::access_port,
    },
    Check {
        name: "vlan_keeps_default_if_asked",
        run: membership::keeps_default,
    },
    Check {
        name: "vlan_trunk",
        run: membership::trunk,
    },
    Check {
        name: "vlan_trunk_lists_native",
        run: membership::trunk_lists_native,
    },
    Check {
        name: "vlan_trunk_of_all",
        run: membership::trunk_of_all,
    },
    Check {
        name: "vlan_empty_trunk",
        run: membership::empty_trunk,
    },
    Check {
        name: "vlan_check_notices",
        run: membership::check_notices,
    },
    Check {
        name: "vlan_gateway",
        run: isolation::gateway,
    },
    Check {
        name: "vlan_gateway_leaves_with_last_user",
        run: isolation::gateway_leaves,
    },
    Check {
        name: "vlan_isolation",
        run: isolation::apart,
    },
    Check {
        name: "vlan_native_broadcast_stays_out",
        run: isolation::native_broadcast,
    },
    Check {
        name: "vlan_tags_reach_trunk",
        run: isolation::tags,
    },
    Check {
        name: "vlan_plain_bridge_refused",
        run: refusal::plain_bridge,
    },
    Check {
        name: "vlan_failed_add_leaves_nothing",
        run: refusal::leaves_nothing,
    },
    Check {
        name: "hairpin_with_br_netfilter",
        run: hairpin::own_published_port,
    },
    Check {
        name: "first_packet_arrives",
        run: first::packet,
    },
];
