//! Moving the interface into the container, and taking that back.

use interface::World;
use netlink::{
    Address, AddressFlags, Handle, Link, LinkChange, Netns, NewAddress, NewRoute, RouteConflict,
};
use skel::{Transaction, log};

use crate::device::Device;
use crate::error::Error;

/// The kernel made the route for an address, or of a router advertisement (`RTPROT_KERNEL`, `RTPROT_RA`).
const MADE_BY_KERNEL: [u8; 2] = [2, 9];

/// What an interface was on the host, all of which a move takes from it.
#[derive(Debug, Clone)]
struct Before {
    link: Link,
    addresses: Vec<NewAddress>,
    routes: Vec<NewRoute>,
}

/// Moves the interface into the container under its name there, with its name on the host as alias, in one request.
pub fn hand_over(
    transaction: &mut Transaction<World>,
    device: &Device,
    ifname: &str,
) -> Result<Link, Error> {
    let before = remember(&transaction.host, &device.link)?;
    let Some(netns) = transaction.container.netns().cloned() else {
        return Err(Error::NotFound(ifname.to_owned()));
    };
    // Before it is done: the kernel may have done it though its answer is lost.
    let name = ifname.to_owned();
    transaction.on_failure(
        format!("give {} back to the host", device.link.name),
        move |world: &mut World| before.restore(world, &name),
    );
    let change = LinkChange::new()
        .netns(&netns)
        .name(ifname)
        .alias(&device.home);
    let moved = transaction.host.change_link(&device.link, &change);
    moved.map_err(|source| Error::NotMoved {
        device: device.link.name.clone(),
        ifname: ifname.to_owned(),
        source: Box::new(source),
    })?;
    let link = transaction.container.link(ifname)?;
    log::info(format_args!(
        "{} is {ifname} in the container",
        device.link.name
    ));
    Ok(link)
}

fn remember(host: &Handle, link: &Link) -> Result<Before, Error> {
    let addresses = host.addresses(link)?;
    let kept = addresses.iter().filter(|address| is_lasting(address));
    // A link that is down has none, and a host may have very many.
    let all = match link.up {
        true => host.routes()?,
        false => Vec::new(),
    };
    let mut routes: Vec<NewRoute> = all
        .iter()
        .filter(|route| route.is_unicast() && !MADE_BY_KERNEL.contains(&route.protocol))
        .filter(|route| matches!(route.next_hops.as_slice(), [hop] if hop.oif == link.index))
        .map(|route| NewRoute {
            conflict: RouteConflict::Append,
            ..route.to_new()
        })
        .collect();
    // Those on the link first: the others may lead through what they reach.
    routes.sort_by_key(|route| route.gateway.is_some());
    Ok(Before {
        link: link.clone(),
        addresses: kept.map(again).collect(),
        routes,
    })
}

/// Not an address that the kernel makes up itself.
fn is_lasting(address: &Address) -> bool {
    let given = address.flags.contains(AddressFlags::Permanent) || address.ip.is_ipv4();
    let link_local =
        matches!(address.ip, ipnetwork::IpNetwork::V6(v6) if v6.ip().is_unicast_link_local());
    given && !link_local
}

fn again(address: &Address) -> NewAddress {
    NewAddress {
        no_prefix_route: address.flags.contains(AddressFlags::Noprefixroute),
        ..NewAddress::new(address.ip).nodad()
    }
}

impl Before {
    /// Makes the interface what it was, wherever it is now.
    fn restore(self, world: &World, ifname: &str) -> Result<(), Error> {
        if self.is_at_home(&world.host)? {
            return Ok(());
        }
        let inside = self.find_inside(&world.container, ifname)?;
        let change = LinkChange::new()
            .netns(&Netns::current()?)
            .name(&self.link.name)
            .alias(self.link.alias.as_deref().unwrap_or_default());
        world.container.change_link(&inside, &change)?;
        self.set_up(&world.host)
    }

    fn is_at_home(&self, host: &Handle) -> Result<bool, Error> {
        let there = host.find_link(&self.link.name)?;
        Ok(there.is_some_and(|link| link.mac == self.link.mac && link.index == self.link.index))
    }

    /// The interface in the container: under its name there, or under its old one if it came no further.
    fn find_inside(&self, container: &Handle, ifname: &str) -> Result<Link, Error> {
        for name in [ifname, &self.link.name] {
            if let Some(link) = container.find_link(name)?
                && link.mac == self.link.mac
            {
                return Ok(link);
            }
        }
        Err(Error::NotFound(self.link.name.clone()))
    }

    /// Gives it back on the host what the move has taken. One thing that cannot be had keeps none of the others.
    fn set_up(&self, host: &Handle) -> Result<(), Error> {
        let link = host.link(&self.link.name)?;
        let mut failures = Vec::new();
        if let Some(master) = self.link.master {
            failures.extend(
                host.change_link(&link, &LinkChange::new().master(master))
                    .err(),
            );
        }
        for address in &self.addresses {
            failures.extend(host.add_address(&link, address).err());
        }
        if self.link.up {
            failures.extend(host.set_up(&link).err());
        }
        for route in &self.routes {
            let route = NewRoute {
                oif: Some(link.index),
                ..route.clone()
            };
            failures.extend(host.add_route(&route).err());
        }
        failures.retain(|error| !error.is_exists());
        Error::join(failures.into_iter().map(Error::from).collect())
    }
}
