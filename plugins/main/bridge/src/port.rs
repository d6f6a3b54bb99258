//! The veth pair and the bridge port that its host end is.

use interface::pair;
use netfilter::{ApplyOptions, Backend, Hints, Intent, Kinds, Owner};
use netlink::{Link, LinkChange, MacAddr, NewVeth, Veth};
use skel::{Transaction, log};

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
    owner: &Owner,
    mac: Option<MacAddr>,
) -> Result<Veth, Error> {
    let mut pair = NewVeth {
        mtu: config.mtu(),
        master: Some(bridge.index),
        ..NewVeth::new(&owner.ifname)?
    };
    if let Some(mac) = mac {
        pair.mac = mac;
    }
    // A bridge that goes away in between is a matter for the caller.
    pair::create(transaction, pair, owner).map_err(|error| match error {
        interface::Error::Netlink(error) => Error::Netlink(error),
        other => other.into(),
    })
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
    // A port's own link-local address is of no use to anybody, but every change of a link makes the kernel go
    // through the routes of all such addresses, and every container would hear of each new one.
    let requests = [
        LinkChange::new().no_link_local().request(&veth.host)?,
        change.request(&veth.host)?,
    ];
    let mut verdicts = transaction.host.execute_each(&requests)?.into_iter();
    if let Some(Err(error)) = verdicts.next() {
        log::debug(format_args!("{error}"));
    }
    verdicts.try_for_each(|verdict| Ok(verdict?))
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
    // Before it is put up: the kernel may have done it though its answer is lost.
    let taken_back = owner.clone();
    transaction.on_failure("remove the MAC guard", move |world: &mut World| {
        Ok::<_, Error>(
            world
                .filter()?
                .remove(&taken_back, Kinds::GUARD_MAC, &Hints::default())?,
        )
    });
    transaction
        .filter()?
        .apply(Backend::Nftables, owner, intents, &ApplyOptions::default())?;
    Ok(())
}
