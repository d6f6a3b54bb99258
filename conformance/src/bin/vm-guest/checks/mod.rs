//! What is checked in the machine.

mod first;
mod hairpin;
mod hardware;
mod ipvlan;
mod isolation;
mod links;
mod membership;
mod refusal;
mod vlan_link;
mod vrf;
mod world;

use conformance::Result;

/// A check: it runs in a sandbox of its own and fails by its error.
pub struct Check {
    /// What a selection is compared with.
    pub name: &'static str,
    /// The check itself.
    pub run: fn() -> Result<()>,
}

/// Those that are not in a sandbox: the machine itself is the host.
pub const OF_THE_MACHINE: &[Check] = &[
    Check {
        name: "hardware_goes_in_and_comes_back",
        run: hardware::goes_in_and_comes_back,
    },
    Check {
        name: "hardware_outlives_its_container",
        run: hardware::outlives_its_container,
    },
    Check {
        name: "hardware_failed_add_gives_it_back",
        run: hardware::failed_add_gives_it_back,
    },
];

/// All of them.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [BRIDGE, links::LINKS, links::OWN, OF_THE_MACHINE, VRF]
        .into_iter()
        .flatten()
}

/// Those of bridges and what hangs on them.
const BRIDGE: &[Check] = &[
    Check {
        name: "bridge_vlan_access_port",
        run: membership::access_port,
    },
    Check {
        name: "bridge_vlan_keeps_default_if_asked",
        run: membership::keeps_default,
    },
    Check {
        name: "bridge_vlan_trunk",
        run: membership::trunk,
    },
    Check {
        name: "bridge_vlan_trunk_lists_native",
        run: membership::trunk_lists_native,
    },
    Check {
        name: "bridge_vlan_trunk_of_all",
        run: membership::trunk_of_all,
    },
    Check {
        name: "bridge_vlan_empty_trunk",
        run: membership::empty_trunk,
    },
    Check {
        name: "bridge_vlan_check_notices",
        run: membership::check_notices,
    },
    Check {
        name: "bridge_vlan_gateway",
        run: isolation::gateway,
    },
    Check {
        name: "bridge_vlan_gateway_leaves_with_last_user",
        run: isolation::gateway_leaves,
    },
    Check {
        name: "bridge_vlan_isolation",
        run: isolation::apart,
    },
    Check {
        name: "bridge_vlan_native_broadcast_stays_out",
        run: isolation::native_broadcast,
    },
    Check {
        name: "bridge_vlan_tags_reach_trunk",
        run: isolation::tags,
    },
    Check {
        name: "bridge_vlan_plain_bridge_refused",
        run: refusal::plain_bridge,
    },
    Check {
        name: "bridge_vlan_failed_add_leaves_nothing",
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

/// Those of VRFs.
const VRF: &[Check] = &[
    Check {
        name: "vrf_keeps_networks_apart",
        run: vrf::apart::apart,
    },
    Check {
        name: "vrf_flows_at_once",
        run: vrf::apart::at_once,
    },
    Check {
        name: "vrf_addresses_and_routes_move",
        run: vrf::moves::belongings,
    },
    Check {
        name: "vrf_next_hop_objects",
        run: vrf::moves::next_hops,
    },
    Check {
        name: "vrf_of_several_interfaces",
        run: vrf::moves::several,
    },
    Check {
        name: "vrf_tables",
        run: vrf::moves::tables,
    },
    Check {
        name: "vrf_two_at_once",
        run: vrf::moves::parallel,
    },
    Check {
        name: "vrf_of_the_administrator",
        run: vrf::life::of_the_administrator,
    },
    Check {
        name: "vrf_refused_before_any_change",
        run: vrf::life::refusals,
    },
    Check {
        name: "vrf_failed_add_leaves_nothing",
        run: vrf::life::failure,
    },
    Check {
        name: "vrf_killed_add",
        run: vrf::life::killed,
    },
    Check {
        name: "vrf_del_is_patient",
        run: vrf::life::patience,
    },
    Check {
        name: "vrf_check_notices",
        run: vrf::life::check,
    },
    Check {
        name: "vrf_every_version",
        run: vrf::life::versions,
    },
    Check {
        name: "vrf_of_the_reference_set",
        run: vrf::life::reference,
    },
    Check {
        name: "vrf_status",
        run: vrf::life::status,
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    #[test]
    fn no_check_hides_another_of_its_name() {
        let mut names = BTreeSet::new();
        for check in super::all() {
            assert!(names.insert(check.name), "{} is there twice", check.name);
        }
    }
}
