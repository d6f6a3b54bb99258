//! What only vlan and dummy have.

use conformance::chain::Attachment;
use conformance::error::{Error, Result};
use conformance::facts::addresses;
use conformance::net::{Netns, Rtnl, UPLINK};
use conformance::plugin::Answer;
use conformance::probe::{BRIEFLY, PATIENCE, ping};
use serde_json::{Value, json};

use super::world::{World, equal, fails, holds, parse};

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

/// Who has a way into the container reaches the addresses that a dummy holds there, which is what it is for.
pub fn dummy_is_reached() -> Result<()> {
    let world = World::new()?;
    let (netns, attachment) = attach(&world, "c1")?;
    let (near, far) = (world.host.rtnl(), Rtnl::open(&netns)?);
    near.add_veth("way0", &netns, "way1")?;
    far.set_up("way1")?;
    near.set_up("way0")?;
    for (v4, v6, end, link) in [
        ("10.30.0.1/24", "fd00:30::1/64", near, "way0"),
        ("10.30.0.2/24", "fd00:30::2/64", &far, "way1"),
    ] {
        end.add_address(link, parse(v4)?)?;
        end.add_address(link, parse(v6)?)?;
    }
    near.add_route(parse("10.9.0.0/24")?, parse("10.30.0.2")?)?;
    near.add_route(parse("fd00:9::/64")?, parse("fd00:30::2")?)?;
    let config = json!({"cniVersion": "1.0.0", "name": "net", "type": "dummy", "ipam": {"type": "host-local",
        "ranges": [[{"subnet": "10.9.0.0/24"}], [{"subnet": "fd00:9::/64"}]]}});
    let attachment = attachment.ifname("dum0");
    let answer = good(&world, "ADD", &config, &attachment)?;
    let held = addresses(&answer.json().unwrap_or_default());
    equal("addresses", &held.len(), &2)?;
    for one in &held {
        ping(world.host.netns(), one.address.ip(), PATIENCE)?;
    }
    good(&world, "DEL", &config, &attachment)?;
    for one in &held {
        fails(
            "a ping after DEL",
            ping(world.host.netns(), one.address.ip(), BRIEFLY),
        )?;
    }
    Ok(())
}
