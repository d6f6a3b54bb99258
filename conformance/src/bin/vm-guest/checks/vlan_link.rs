//! What only vlan and dummy have.

use conformance::chain::Attachment;
use conformance::error::{Error, Result};
use conformance::net::{Netns, Rtnl, UPLINK};
use conformance::plugin::Answer;
use serde_json::{Value, json};

use super::world::{World, equal, holds};

fn call(world: &World, verb: &str, config: &Value, attachment: &Attachment) -> Result<Answer> {
    let plugin = config.get("type").and_then(Value::as_str);
    let call = world
        .runtime
        .call(plugin.unwrap_or_default(), verb, attachment)?;
    call.stdin(config.to_string()).run()
}

fn good(world: &World, verb: &str, config: &Value, attachment: &Attachment) -> Result<Answer> {
    let answer = call(world, verb, config, attachment)?;
    if answer.ok() {
        Ok(answer)
    } else {
        Err(Error::unexpected(format!("{verb} to work"), answer.text()))
    }
}

fn attach(world: &World, name: &str) -> Result<(Netns, Attachment)> {
    let netns = world.host.container(name)?;
    let attachment = Attachment::new(name, netns.path());
    Ok((netns, attachment))
}

fn vlan(id: u16, mtu: u32) -> Value {
    json!({"cniVersion": "1.0.0", "name": "net", "type": "vlan", "master": UPLINK, "vlanId": id, "mtu": mtu})
}

/// A VLAN of a master can be in one container only; the error says so, and another VLAN is free.
pub fn taken() -> Result<()> {
    let world = World::new()?;
    let (_one, first) = attach(&world, "c1")?;
    let (two, second) = attach(&world, "c2")?;
    good(&world, "ADD", &vlan(5, 0), &first)?;
    let answer = call(&world, "ADD", &vlan(5, 0), &second)?;
    let error = answer
        .error()
        .ok_or_else(|| Error::unexpected("ADD to fail", answer.text()))?;
    equal("code", &error.code, &11)?;
    holds(
        "the error names the VLAN and its master",
        error.details.contains("VLAN 5 of up0 is taken"),
    )?;
    holds("no link stays", Rtnl::open(&two)?.link("eth0").is_err())?;
    good(&world, "ADD", &vlan(6, 0), &second)?;
    good(&world, "DEL", &vlan(5, 0), &first)?;
    good(&world, "DEL", &vlan(6, 0), &second)?;
    good(&world, "ADD", &vlan(5, 0), &second).map(drop)
}

/// The MTU is as configured, else the master's; VLAN 0 is allowed.
pub fn settings() -> Result<()> {
    let world = World::new()?;
    let master = world.host.rtnl().link(UPLINK)?.facts;
    for (id, mtu, expected) in [(5, 0, master.mtu), (6, 1400, 1400), (0, 0, master.mtu)] {
        let (netns, attachment) = attach(&world, &format!("c{id}"))?;
        good(&world, "ADD", &vlan(id, mtu), &attachment)?;
        let link = Rtnl::open(&netns)?.link("eth0")?.facts;
        equal("MTU", &link.mtu, &expected)?;
        equal("MAC", &link.mac, &master.mac)?;
        good(&world, "DEL", &vlan(id, mtu), &attachment)?;
    }
    Ok(())
}

/// A link of the same name on the host is no matter.
pub fn dummy_of_the_host() -> Result<()> {
    let world = World::new()?;
    let spare = world.host.container("spare")?;
    world.host.rtnl().add_veth("eth0", &spare, "far")?;
    let (netns, attachment) = attach(&world, "c1")?;
    let config = json!({"cniVersion": "1.0.0", "name": "net", "type": "dummy"});
    good(&world, "ADD", &config, &attachment)?;
    equal(
        "kind",
        &Rtnl::open(&netns)?.link("eth0")?.facts.kind.as_str(),
        &"dummy",
    )?;
    good(&world, "DEL", &config, &attachment)?;
    holds("the host's stays", world.host.rtnl().link("eth0").is_ok())
}
