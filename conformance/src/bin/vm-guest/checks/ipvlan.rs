//! What only ipvlan has.

use conformance::chain::Attachment;
use conformance::error::{Error, Result};
use conformance::net::{Netns, OUTSIDE_V4, OUTSIDE_V6, Rtnl};
use conformance::plugin::{Answer, Call, find};
use conformance::probe::{PATIENCE, ping};
use serde_json::{Value, json};

use super::world::{World, equal, holds, parse};

const PLUGINS: &str = "/opt/cni/bin";

/// A single configuration as Mesos runs it, letter by letter.
const MESOS: &str = r#"{"cniVersion":"0.2.0","name":"mesos-net","type":"ipvlan","bridge":"cni0","isGateway":true,"ipMasq":true,"vlanId":5,"ipam":{"type":"host-local","ranges":[[{"subnet":"10.10.0.0/16","rangeStart":"10.10.0.10","rangeEnd":"10.10.0.250"}]],"routes":[{"dst":"0.0.0.0/0"}]}}"#;

/// With nothing in the environment but what Mesos puts there.
fn as_mesos(verb: &str, netns: &str) -> Result<Answer> {
    let program = find("ipvlan", &[PLUGINS.into()])?;
    let answer = Call::new(program)
        .env("CNI_COMMAND", verb)
        .env("CNI_CONTAINERID", "3a7bd3e2-8a9b-4a6f-9d3c-0b1f6f9f2f11")
        .env("CNI_NETNS", netns)
        .env("CNI_IFNAME", "eth0")
        .env("CNI_PATH", PLUGINS)
        .stdin(MESOS)
        .run()?;
    if answer.ok() {
        Ok(answer)
    } else {
        Err(Error::unexpected(format!("{verb} to work"), answer.text()))
    }
}

/// The whole life of a Mesos container, whose DEL comes when the namespace is gone.
pub fn mesos() -> Result<()> {
    let world = World::new()?;
    // The agent's network: a gateway for the containers, and the agent's default route by the interface to share.
    let rtnl = Rtnl::open(world.host.outside())?;
    rtnl.add_address("eth0", parse("10.10.0.1/16")?)?;
    world
        .host
        .rtnl()
        .add_route(parse("0.0.0.0/0")?, OUTSIDE_V4)?;
    for round in 0..2 {
        let netns = world.host.container(&format!("c{round}"))?;
        let path = netns.path().display().to_string();
        let answer = as_mesos("ADD", &path)?;
        let address = format!("10.10.0.1{round}/16");
        let expected = json!({
            "cniVersion": "0.2.0",
            "ip4": {"ip": address, "gateway": "10.10.0.1", "routes": [{"dst": "0.0.0.0/0"}]},
            "dns": {},
        });
        equal("result", &answer.json(), &Some(expected))?;
        // What the keys of other plugins ask for is not made.
        holds("no bridge", world.host.rtnl().link("cni0").is_err())?;
        // The gateway, and somewhere behind it.
        ping(&netns, parse("10.10.0.1")?, PATIENCE)?;
        ping(&netns, OUTSIDE_V4, PATIENCE)?;
        drop(netns);
        if round > 0 {
            // The agent may have lost the route that named the interface.
            world.host.rtnl().delete_routes_to(parse("0.0.0.0/0")?)?;
        }
        as_mesos("DEL", &path)?;
        as_mesos("DEL", &path)?;
        as_mesos("DEL", "")?;
        let lease = format!("/var/lib/cni/networks/mesos-net/10.10.0.1{round}");
        holds("the lease is gone", !std::path::Path::new(&lease).exists())?;
    }
    Ok(())
}

fn config(extra: &Value) -> Value {
    let mut config = json!({"cniVersion": "1.0.0", "name": "net", "type": "ipvlan"});
    if let (Some(into), Some(more)) = (config.as_object_mut(), extra.as_object()) {
        into.extend(more.clone());
    }
    config
}

fn call(world: &World, verb: &str, config: &Value, attachment: &Attachment) -> Result<Answer> {
    let call = world.runtime.call("ipvlan", verb, attachment)?;
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

fn refused(world: &World, config: &Value, attachment: &Attachment, words: &str) -> Result<()> {
    let answer = call(world, "ADD", config, attachment)?;
    let error = answer
        .error()
        .ok_or_else(|| Error::unexpected("ADD to fail", answer.text()))?;
    let text = format!("{}; {}", error.msg, error.details);
    if text.contains(words) {
        Ok(())
    } else {
        Err(Error::unexpected(words, text))
    }
}

fn attach(world: &World, name: &str) -> Result<(Netns, Attachment)> {
    let netns = world.host.container(name)?;
    let attachment = Attachment::new(name, netns.path());
    Ok((netns, attachment))
}

/// In a chain without IPAM the plugin before gives the addresses and, unless one is named, the master.
pub fn chained() -> Result<()> {
    let world = World::new()?;
    let (netns, attachment) = attach(&world, "c1")?;
    let previous = json!({"cniVersion": "1.0.0", "interfaces": [{"name": "up0"}],
        "ips": [{"address": "192.0.2.50/24", "gateway": "192.0.2.9", "interface": 0},
                {"address": "2001:db8::50/64", "interface": 0}],
        "routes": [{"dst": "0.0.0.0/0"}], "dns": {"nameservers": ["192.0.2.53"]}});
    let alone = config(&json!({"prevResult": previous}));
    let answer = good(&world, "ADD", &alone, &attachment)?;
    let result = answer.json().unwrap_or_default();
    let names: Vec<_> = conformance::facts::interfaces(&result)
        .into_iter()
        .map(|one| (one.name, one.sandbox.is_empty()))
        .collect();
    equal("interfaces", &names, &vec![("eth0".to_owned(), false)])?;
    equal("dns", &result.get("dns"), &previous.get("dns"))?;
    equal("routes", &result.get("routes"), &previous.get("routes"))?;
    for to in [OUTSIDE_V4, OUTSIDE_V6] {
        ping(&netns, to, PATIENCE)?;
    }
    good(
        &world,
        "CHECK",
        &config(&json!({"prevResult": result})),
        &attachment,
    )?;
    good(&world, "DEL", &alone, &attachment)?;
    holds(
        "the link is gone",
        Rtnl::open(&netns)?.link("eth0").is_err(),
    )?;

    let mut two = previous.clone();
    if let Some(list) = two.get_mut("interfaces").and_then(Value::as_array_mut) {
        list.push(json!({"name": "other"}));
    }
    let words = "PrevResult lacks a single named interface";
    let unnamed = config(&json!({"prevResult": two}));
    refused(&world, &unnamed, &attachment, words)?;
    let named = config(&json!({"prevResult": two, "master": "up0"}));
    good(&world, "ADD", &named, &attachment)?;
    ping(&netns, OUTSIDE_V4, PATIENCE)?;
    // The interfaces that the previous result lists are of no interest to DEL.
    good(&world, "DEL", &unnamed, &attachment)?;
    holds(
        "the link is gone",
        Rtnl::open(&netns)?.link("eth0").is_err(),
    )
}

/// In the modes of the network layer the host's routes are used, and there are no neighbours to wait for.
pub fn network_layer() -> Result<()> {
    let world = World::new()?;
    world
        .host
        .rtnl()
        .add_route(parse("0.0.0.0/0")?, OUTSIDE_V4)?;
    let far = Rtnl::open(world.host.outside())?;
    far.add_route(parse("10.8.0.0/24")?, conformance::net::HOST_V4)?;
    far.add_route(parse("fd00:8::/64")?, conformance::net::HOST_V6)?;
    for mode in ["l3", "l3s"] {
        let (netns, attachment) = attach(&world, mode)?;
        let config = config(
            &json!({"master": "up0", "mode": mode, "name": mode, "ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.8.0.0/24"}], [{"subnet": "fd00:8::/64"}]],
            "routes": [{"dst": "192.0.2.0/24", "scope": 253}, {"dst": "2001:db8::/64", "scope": 253}]}}),
        );
        let answer = good(&world, "ADD", &config, &attachment)?;
        holds("no wait", answer.took < std::time::Duration::from_secs(1))?;
        for to in [OUTSIDE_V4, OUTSIDE_V6] {
            ping(&netns, to, PATIENCE)?;
        }
        let mut with = config.clone();
        if let Some(object) = with.as_object_mut() {
            object.insert("prevResult".into(), answer.json().unwrap_or_default());
        }
        good(&world, "CHECK", &with, &attachment)?;
        good(&world, "DEL", &with, &attachment)?;
    }
    Ok(())
}

/// Two links on one master cannot have one address; the error says where to look.
pub fn address_taken() -> Result<()> {
    let world = World::new()?;
    let previous = json!({"cniVersion": "1.0.0", "ips": [{"address": "192.0.2.50/24"}]});
    let config = config(&json!({"master": "up0", "prevResult": previous}));
    let (_one, first) = attach(&world, "c1")?;
    let (two, second) = attach(&world, "c2")?;
    good(&world, "ADD", &config, &first)?;
    refused(&world, &config, &second, "has that address")?;
    holds("no link stays", Rtnl::open(&two)?.link("eth0").is_err())?;
    good(&world, "DEL", &config, &first)?;
    good(&world, "ADD", &config, &second)?;
    good(&world, "DEL", &config, &second).map(drop)
}
