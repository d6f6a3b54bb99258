//! Which packets pass between VLANs.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use conformance::error::{Context, Error, Result};
use conformance::facts;
use conformance::net::{Netns, Rtnl};
use conformance::probe::{BRIEFLY, PATIENCE, ping};
use serde_json::json;
use socket2::{Domain, Protocol, Socket, Type};

use super::world::{World, equal, fails, holds, network};
use crate::vlans::{self, native};

/// `ETH_P_ALL` in network byte order: every frame.
const EVERY_FRAME: i32 = 0x0300;
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];

fn parse<T: std::str::FromStr>(text: &str) -> Result<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| Error::Malformed {
        what: format!("{text}: {error}"),
    })
}

/// The gateway of a VLAN has an interface of its own, which the container reaches.
pub fn gateway() -> Result<()> {
    let world = World::new()?;
    let keys = json!({"vlan": 100, "isDefaultGateway": true});
    let network = network("v100", Some("10.100.0.0/24"), &keys)?;
    let one = world.attach(&network, "c1")?;
    let names: Vec<_> = facts::interfaces(&one.result)
        .into_iter()
        .map(|one| one.name)
        .collect();
    equal("interfaces in the result", &names.len(), &4)?;
    equal(
        "the fourth interface",
        &names.last().map(String::as_str),
        &Some("br0.100"),
    )?;
    equal(
        "gateway's addresses",
        &world
            .host
            .rtnl()
            .addresses_of("br0.100")?
            .into_iter()
            .filter(|a| a.is_ipv4())
            .collect(),
        &vec![parse("10.100.0.1/24")?],
    )?;
    holds(
        "no address on the bridge",
        world
            .host
            .rtnl()
            .addresses_of("br0")?
            .iter()
            .all(|a| a.is_ipv6()),
    )?;
    ping(&one.netns, parse("10.100.0.1")?, PATIENCE)?;

    let two = world.attach(&network, "c2")?;
    ping(&two.netns, one.address()?, PATIENCE)?;
    ping(world.host.netns(), two.address()?, PATIENCE)?;
    world.runtime.check(&network, &one.attachment)?;
    let ports = world
        .host
        .rtnl()
        .links()?
        .into_iter()
        .filter(|link| link.facts.port.iter().any(|_| true));
    for port in ports {
        equal(
            &format!("VLANs of {}", port.name),
            &vlans::of_port(&port.name)?,
            &[native(100)].into(),
        )?;
    }
    Ok(())
}

/// The gateway's interface and its port go with the last container of the VLAN.
pub fn gateway_leaves() -> Result<()> {
    let world = World::new()?;
    let keys = json!({"vlan": 100, "isGateway": true});
    let network = network("v100", Some("10.100.0.0/24"), &keys)?;
    let (one, two) = (world.attach(&network, "c1")?, world.attach(&network, "c2")?);
    world.runtime.del(&network, &one.attachment)?;
    ping(&two.netns, parse("10.100.0.1")?, PATIENCE)?;
    world.runtime.del(&network, &two.attachment)?;
    let names: Vec<_> = world
        .host
        .rtnl()
        .links()?
        .into_iter()
        .map(|link| link.name)
        .collect();
    equal("links that are left", &names.len(), &3)?;
    holds("the bridge to stay", names.iter().any(|name| name == "br0"))?;
    world.runtime.del(&network, &two.attachment)
}

/// Containers of one bridge in different VLANs do not reach one another, those of the same VLAN do.
pub fn apart() -> Result<()> {
    let world = World::new()?;
    // The same subnet, so that only the VLAN is between them.
    let of = |vid: u16, range: &str| {
        let ipam = json!({"type": "host-local", "subnet": "10.9.0.0/16", "rangeStart": range});
        network(
            &format!("v{vid}"),
            None,
            &json!({"vlan": vid, "ipam": ipam}),
        )
    };
    let (red, blue) = (of(100, "10.9.1.1")?, of(200, "10.9.2.1")?);
    let (one, two) = (world.attach(&red, "c1")?, world.attach(&red, "c2")?);
    let other = world.attach(&blue, "c3")?;
    ping(&one.netns, two.address()?, PATIENCE)?;
    fails(
        "a ping into another VLAN",
        ping(&one.netns, other.address()?, BRIEFLY),
    )?;
    fails(
        "a ping into another VLAN",
        ping(&other.netns, one.address()?, BRIEFLY),
    )
    .map(drop)
}

/// A broadcast of the bridge's native VLAN reaches a container there and none in another VLAN.
pub fn native_broadcast() -> Result<()> {
    let world = World::new()?;
    let in_vlan = world.attach(&network("v100", None, &json!({"vlan": 100}))?, "c1")?;
    let plain = world.attach(&network("plain", None, &json!({}))?, "c2")?;
    world
        .host
        .rtnl()
        .add_address("br0", parse("10.5.0.1/24")?)?;
    let (near, far) = (listen(&plain.netns)?, listen(&in_vlan.netns)?);
    // Nobody has that address, so the host asks everybody for it.
    fails(
        "a ping to nobody",
        ping(world.host.netns(), parse("10.5.0.77")?, BRIEFLY),
    )?;
    holds(
        "the question in the native VLAN",
        hears_arp(&near, PATIENCE)?,
    )?;
    holds("no question in VLAN 100", !hears_arp(&far, BRIEFLY)?)
}

/// A trunk port carries tagged frames to and from an access port of the same VLAN.
pub fn tags() -> Result<()> {
    let world = World::new()?;
    let trunk = world.attach(
        &network("trunk", None, &json!({"vlanTrunk": [{"id": 101}]}))?,
        "c1",
    )?;
    let access = world.attach(&network("v101", None, &json!({"vlan": 101}))?, "c2")?;
    for (netns, vid, address) in [
        (&trunk.netns, Some(101), "10.7.0.1/24"),
        (&trunk.netns, Some(102), "10.8.0.1/24"),
        (&access.netns, None, "10.7.0.2/24"),
    ] {
        let name = match vid {
            Some(vid) => vlans::add_tagged(netns, "eth0", vid)?,
            None => "eth0".to_owned(),
        };
        Rtnl::open(netns)?.add_address(&name, parse(address)?)?;
    }
    ping(&trunk.netns, parse("10.7.0.2")?, PATIENCE)?;
    ping(&access.netns, parse("10.7.0.1")?, PATIENCE)?;
    // 102 is not in the trunk.
    Rtnl::open(&access.netns)?.add_address("eth0", parse("10.8.0.2/24")?)?;
    fails(
        "a ping with a tag the port is not in",
        ping(&trunk.netns, parse("10.8.0.2")?, BRIEFLY),
    )
    .map(drop)
}

/// A socket that sees every frame that comes into a namespace.
fn listen(netns: &Netns) -> Result<Socket> {
    netns.run(|| {
        Socket::new(Domain::PACKET, Type::RAW, Some(Protocol::from(EVERY_FRAME)))
            .doing(|| "listen for frames")
    })
}

/// Whether an ARP frame comes in within that time.
fn hears_arp(mut socket: &Socket, limit: Duration) -> Result<bool> {
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        socket
            .set_read_timeout(Some(left))
            .doing(|| format!("wait on socket {}", socket.as_raw_fd()))?;
        let mut frame = [0_u8; 128];
        match socket.read(&mut frame) {
            Ok(_) if frame.get(12..14) == Some(&ETHERTYPE_ARP) => return Ok(true),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error).doing(|| "listen for frames"),
        }
    }
}
