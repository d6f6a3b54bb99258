//! Which VLANs a port is in.

use std::collections::BTreeSet;

use conformance::Result;
use serde_json::{Value, json};

use super::world::{World, equal, fails, holds, network};
use crate::vlans::{self, Vlan, native, tagged};

/// What the port of a container without addresses is in, with these keys.
fn vlans_with(keys: &Value) -> Result<BTreeSet<Vlan>> {
    let world = World::new()?;
    let container = world.attach(&network("l2", None, keys)?, "c1")?;
    holds("the new bridge to filter", vlans::filters("br0")?)?;
    vlans::of_port(&container.port()?)
}

fn set(vlans: &[Vlan]) -> BTreeSet<Vlan> {
    vlans.iter().copied().collect()
}

/// Nothing but its VLAN, and no VLAN 1.
pub fn access_port() -> Result<()> {
    equal(
        "VLANs",
        &vlans_with(&json!({"vlan": 100}))?,
        &set(&[native(100)]),
    )
}

pub fn keeps_default() -> Result<()> {
    let found = vlans_with(&json!({"vlan": 100, "preserveDefaultVlan": true}))?;
    let default = Vlan {
        vid: 1,
        pvid: false,
        untagged: true,
    };
    equal("VLANs", &found, &set(&[default, native(100)]))
}

pub fn trunk() -> Result<()> {
    let found = vlans_with(&json!({"vlanTrunk": [{"id": 101}, {"minID": 200, "maxID": 202}]}))?;
    equal(
        "VLANs",
        &found,
        &set(&[
            native(1),
            tagged(101),
            tagged(200),
            tagged(201),
            tagged(202),
        ]),
    )
}

/// A trunk that lists the untagged VLAN too does not take its untagged frames away.
pub fn trunk_lists_native() -> Result<()> {
    let found = vlans_with(&json!({"vlan": 100, "vlanTrunk": [{"minID": 99, "maxID": 101}]}))?;
    equal(
        "VLANs",
        &found,
        &set(&[tagged(99), native(100), tagged(101)]),
    )
}

pub fn trunk_of_all() -> Result<()> {
    let found = vlans_with(&json!({"vlan": 7, "vlanTrunk": [{"minID": 1, "maxID": 4094}]}))?;
    equal("number of VLANs", &found.len(), &4094)?;
    holds("VLAN 7 to be the untagged one", found.contains(&native(7)))
}

/// A trunk with nothing in it makes the bridge filter and leaves the port as the kernel made it.
pub fn empty_trunk() -> Result<()> {
    equal(
        "VLANs",
        &vlans_with(&json!({"vlanTrunk": []}))?,
        &set(&[native(1)]),
    )
}

/// CHECK compares the VLANs of the port.
pub fn check_notices() -> Result<()> {
    let world = World::new()?;
    let network = network(
        "l2",
        None,
        &json!({"vlan": 100, "vlanTrunk": [{"id": 101}]}),
    )?;
    let container = world.attach(&network, "c1")?;
    world.runtime.check(&network, &container.attachment)?;
    vlans::remove(&container.port()?, 101)?;
    let error = fails(
        "CHECK",
        world.runtime.check(&network, &container.attachment),
    )?
    .to_string();
    holds(
        &format!("an error that names VLAN 101, not: {error}"),
        error.contains("101"),
    )
}
