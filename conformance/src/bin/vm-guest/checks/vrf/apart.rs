//! Which packets pass between VRFs, and when.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use conformance::chain::{Attachment, Network};
use conformance::error::Result;
use conformance::net::Rtnl;
use conformance::probe::{BRIEFLY, PATIENCE, Server, Transport, ask, ask_over};
use serde_json::{Value, json};

use super::{has_link, parse};
use crate::checks::world::{Container, World, equal, fails, holds};

/// Shorter than the second after which a neighbour is asked for a second time.
const AT_ONCE: Duration = Duration::from_millis(900);

/// A network on a bridge of its own with the same addresses as all others of these, in a VRF.
fn network_in(name: &str, vrf: &str) -> Result<Network> {
    let list = json!({"cniVersion": "1.0.0", "name": name, "plugins": [
        {"type": "bridge", "bridge": format!("br-{name}"), "ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.5.0.0/24"}], [{"subnet": "fd00:5::/64"}]],
            "routes": [{"dst": "10.9.0.0/16", "gw": "10.5.0.3"}, {"dst": "fd00:9::/64", "gw": "fd00:5::3"}]}},
        {"type": "vrf", "vrfname": vrf},
    ]});
    Network::parse(&list.to_string())
}

/// Two networks with the same addresses, and a router with the same address in each: every packet goes to, and comes
/// from, the one whose VRF it is in.
pub fn apart() -> Result<()> {
    let world = World::new()?;
    let colours = ["red", "blue"];
    let netns = world.host.container("c1")?;
    let mut ours: Vec<(Network, Attachment)> = Vec::new();
    let mut others: Vec<Container> = Vec::new();
    let mut servers = Vec::new();
    for (colour, ifname) in colours.iter().zip(["eth0", "eth1"]) {
        let network = network_in(colour, colour)?;
        let mut attachment = Attachment::new("c1", netns.path()).ifname(ifname);
        world.runtime.add(&network, &mut attachment)?;
        let mut plain = network.clone();
        plain.plugins.truncate(1);
        let bridge = plain.plugins.first_mut();
        let ipam = bridge.and_then(|bridge| bridge.get_mut("ipam"));
        if let Some(ipam) = ipam.and_then(Value::as_object_mut) {
            ipam.remove("routes");
        }
        let other = world.attach(&plain, &format!("c-{colour}"))?;
        let beyond = Rtnl::open(&other.netns)?;
        beyond.set_up("lo")?;
        for address in ["10.9.0.1/32", "fd00:9::1/128"] {
            beyond.add_address("lo", parse(address)?)?;
        }
        for address in ["10.5.0.3", "fd00:5::3", "10.9.0.1", "fd00:9::1"] {
            for transport in [Transport::Tcp, Transport::Udp] {
                let at = SocketAddr::new(parse(address)?, 90);
                servers.push(Server::start(&other.netns, transport, at, colour)?);
            }
        }
        for address in ["10.5.0.2", "fd00:5::2"] {
            let at = SocketAddr::new(parse(address)?, 80);
            let server = Server::start_over(&netns, Transport::Tcp, Some(colour), at, colour)?;
            servers.push(server);
        }
        ours.push((network, attachment));
        others.push(other);
    }
    for (colour, other) in colours.iter().zip(&others) {
        for address in ["10.5.0.3", "fd00:5::3", "10.9.0.1", "fd00:9::1"] {
            for transport in [Transport::Tcp, Transport::Udp] {
                let to = SocketAddr::new(parse(address)?, 90);
                let seen = ask_over(&netns, transport, colour, to, PATIENCE)?;
                equal("who answers", &seen.server.as_str(), colour)?;
                let source: IpAddr = parse(if to.is_ipv4() {
                    "10.5.0.2"
                } else {
                    "fd00:5::2"
                })?;
                equal("source", &seen.peer, &source)?;
            }
        }
        for address in ["10.5.0.2", "fd00:5::2"] {
            let to = SocketAddr::new(parse(address)?, 80);
            let seen = ask(&other.netns, Transport::Tcp, to, PATIENCE)?;
            equal("who is asked", &seen.server.as_str(), colour)?;
        }
    }
    // Outside of the VRFs none of it is known.
    let to = SocketAddr::new(parse("10.5.0.3")?, 90);
    fails(
        "a packet in no VRF",
        ask(&netns, Transport::Tcp, to, BRIEFLY),
    )?;
    for (network, attachment) in &ours {
        world.runtime.check(network, attachment)?;
    }
    for ((network, attachment), colour) in ours.iter().zip(colours) {
        world.runtime.del(network, attachment)?;
        world.runtime.del(network, attachment)?;
        holds("the VRF is gone", !has_link(&netns, colour)?)?;
    }
    drop(servers);
    Ok(())
}

/// A packet that is sent as soon as ADD has returned arrives, in both directions and families, also from the host, whose
/// end of the pair was down for a moment.
pub fn at_once() -> Result<()> {
    let world = World::new()?;
    for round in 0..3 {
        let netns = world.host.container(&format!("c{round}"))?;
        let list = json!({"cniVersion": "1.0.0", "name": "net", "plugins": [
            {"type": "bridge", "bridge": "br0", "isDefaultGateway": true, "ipam": {"type": "host-local",
                "ranges": [[{"subnet": "10.6.0.0/24"}], [{"subnet": "fd00:6::/64"}]]}},
            {"type": "vrf", "vrfname": "blue"},
        ]});
        let network = Network::parse(&list.to_string())?;
        let mut attachment = Attachment::new(&format!("c{round}"), netns.path());
        let result = world.runtime.add(&network, &mut attachment)?;
        let addresses: Vec<IpAddr> = conformance::facts::addresses(&result)
            .into_iter()
            .map(|one| one.address.ip())
            .collect();
        equal("addresses", &addresses.len(), &2)?;
        for address in addresses {
            let at = SocketAddr::new(address, 80);
            let server = Server::start_over(&netns, Transport::Udp, Some("blue"), at, "blue")?;
            ask(world.host.netns(), Transport::Udp, at, AT_ONCE)?;
            drop(server);
            let gateway = parse(if at.is_ipv4() {
                "10.6.0.1"
            } else {
                "fd00:6::1"
            })?;
            let at = SocketAddr::new(gateway, 81);
            let server = Server::start(world.host.netns(), Transport::Udp, at, "host")?;
            ask_over(&netns, Transport::Udp, "blue", at, AT_ONCE)?;
            drop(server);
        }
        world.runtime.check(&network, &attachment)?;
        world.runtime.del(&network, &attachment)?;
    }
    Ok(())
}
