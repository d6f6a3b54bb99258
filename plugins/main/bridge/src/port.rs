//! The veth pair and the bridge port that its host end is.

use netfilter::{ApplyOptions, Backend, Hints, Intent, Kinds, Owner};
use netlink::{Link, LinkChange, MacAddr, NewVeth, Veth};
use skel::Transaction;

use crate::config::{Config, PortVlans};
use crate::error::Error;
use crate::vlan;
use crate::world::{World, alias};

/// Makes the pair. The container's end is born there under its own name; the host's end is born a port of
/// the bridge, and stays down until it is set up as a port.
pub fn create(
    transaction: &mut Transaction<World>,
    config: &Config,
    bridge: &Link,
    ifname: &str,
    mac: Option<MacAddr>,
) -> Result<Veth, Error> {
    let mut pair = NewVeth {
        mtu: config.mtu(),
        master: Some(bridge.index),
        ..NewVeth::new(ifname)?
    };
    if let Some(mac) = mac {
        pair.mac = mac;
    }
    let world: &mut World = transaction;
    let veth = match world.host.create_veth(&pair, &world.container) {
        Err(error) if error.is_exists() => return Err(Error::InterfaceExists(ifname.to_owned())),
        other => other?,
    };
    let made = veth.host.clone();
    transaction.on_failure(format!("delete {}", made.name), move |world: &mut World| {
        match world.host.delete_link(&made) {
            // The pair goes with the container's namespace, too.
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    });
    Ok(veth)
}

/// Makes the host's end the port that the configuration describes, and sets it up. Whatever guards the port
/// is in place before the first frame can pass.
pub fn set_up(
    transaction: &mut Transaction<World>,
    config: &Config,
    vlans: &PortVlans,
    bridge: &Link,
    owner: &Owner,
    veth: &Veth,
) -> Result<(), Error> {
    vlan::set(&transaction.host, bridge, vlans, &veth.host)?;
    if config.macspoofchk {
        guard(transaction, owner, &guard_intents(veth))?;
    }
    let change = LinkChange::new()
        .alias(alias(owner, config))
        .hairpin(config.hairpin_mode == Some(true))
        .isolated(config.port_isolation)
        .up(true);
    Ok(transaction.host.change_link(&veth.host, &change)?)
}

/// What `macspoofchk` asks of the packet filter.
pub fn guard_intents(veth: &Veth) -> [Intent; 1] {
    [Intent::GuardMac {
        port: veth.host.name.clone(),
        mac: veth.container.mac.octets(),
    }]
}

fn guard(
    transaction: &mut Transaction<World>,
    owner: &Owner,
    intents: &[Intent],
) -> Result<(), Error> {
    transaction
        .filter()?
        .apply(Backend::Nftables, owner, intents, &ApplyOptions::default())?;
    let owner = owner.clone();
    transaction.on_failure("remove the MAC guard", move |world: &mut World| {
        Ok::<_, Error>(
            world
                .filter()?
                .remove(&owner, Kinds::GUARD_MAC, &Hints::default())?,
        )
    });
    Ok(())
}
