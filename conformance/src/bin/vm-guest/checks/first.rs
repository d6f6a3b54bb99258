//! When ADD returns, traffic flows: the very first packet arrives.

use std::net::IpAddr;
use std::time::Duration;

use conformance::chain::Network;
use conformance::error::{Error, Result};
use conformance::facts;
use conformance::net::Netns;
use conformance::probe::ping;
use serde_json::json;

use super::world::World;

/// Less than the second after which a lost question for a neighbour is asked again.
const AT_ONCE: Duration = Duration::from_millis(700);

const ROUNDS: u32 = 8;

/// Each time a new container on a new bridge: the first packet between it and the host, both ways and families.
pub fn packet() -> Result<()> {
    let world = World::new()?;
    for round in 0..ROUNDS {
        for toward_container in [true, false] {
            for ipv6 in [true, false] {
                let bridge = format!("b{round}{}{}", u8::from(toward_container), u8::from(ipv6));
                one(&world, &bridge, toward_container, ipv6)?;
            }
        }
    }
    Ok(())
}

fn one(world: &World, bridge: &str, toward_container: bool, ipv6: bool) -> Result<()> {
    let list = json!({"cniVersion": "1.0.0", "name": bridge, "plugins": [
        {"type": "bridge", "bridge": bridge, "isDefaultGateway": true, "ipam": {"type": "host-local",
         "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]]}}]});
    let network = Network::parse(&list.to_string())?;
    let container = world.attach(&network, "c1")?;
    let assigned = facts::addresses(&container.result)
        .into_iter()
        .find(|one| one.address.is_ipv6() == ipv6);
    let assigned = assigned.ok_or_else(|| Error::Missing {
        what: "an address of that family".into(),
    })?;
    let (from, to): (&Netns, Option<IpAddr>) = if toward_container {
        (world.host.netns(), Some(assigned.address.ip()))
    } else {
        (&container.netns, assigned.gateway)
    };
    let to = to.ok_or_else(|| Error::Missing {
        what: "a gateway of that family".into(),
    })?;
    ping(from, to, AT_ONCE)?;
    world.runtime.del(&network, &container.attachment)?;
    world.host.rtnl().delete_link(bridge)
}
