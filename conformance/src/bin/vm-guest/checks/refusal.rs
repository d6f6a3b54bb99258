//! What is refused, and what a refusal leaves.

use conformance::Result;
use serde_json::json;

use super::world::{World, equal, fails, holds, network};

/// A bridge that does not filter would let everything pass whatever VLAN was asked for.
pub fn plain_bridge() -> Result<()> {
    let world = World::new()?;
    world.host.rtnl().add_bridge("br0")?;
    for keys in [json!({"vlan": 100}), json!({"vlanTrunk": [{"id": 101}]})] {
        let network = network("v100", Some("10.100.0.0/24"), &keys)?;
        let before = world.host.rtnl().links()?;
        let error = fails("ADD", world.attach(&network, "c1"))?.to_string();
        holds(
            &format!("an error that names br0 and VLANs, not: {error}"),
            error.contains("br0") && error.to_lowercase().contains("vlan"),
        )?;
        equal("links", &world.host.rtnl().links()?, &before)?;
    }
    Ok(())
}

/// The gateway's name is taken by something else, which comes out when bridge and port are there already.
pub fn leaves_nothing() -> Result<()> {
    let world = World::new()?;
    world.host.rtnl().add_bridge("br0.100")?;
    let network = network(
        "v100",
        Some("10.100.0.0/24"),
        &json!({"vlan": 100, "isGateway": true}),
    )?;
    let before = world.host.rtnl().links()?;
    let error = fails("ADD", world.attach(&network, "c1"))?.to_string();
    holds(
        &format!("an error that names br0.100, not: {error}"),
        error.contains("br0.100"),
    )?;
    equal("links", &world.host.rtnl().links()?, &before)
}
