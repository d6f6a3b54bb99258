//! Removing what an owner has, found through its records.

use std::time::Duration;

use super::attempt::Attempt;
use super::entry::{Key, Slot};
use super::record::{Place, Record};
use super::sets::{SetId, TABLE};
use crate::error::Result;
use crate::intent::Kinds;
use crate::nfnl::{Batch, Family, Socket};
use crate::owner::Owner;

/// A removal must go through if it can at all; it waits for nothing but other writers.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// Removes what the owner has of these kinds, and chains nobody uses any more.
pub(super) fn remove(socket: &mut Socket, owner: &Owner, kinds: Kinds) -> Result<()> {
    let places: Vec<_> = kinds.iter().map(|kind| Place::of(owner, kind)).collect();
    remove_records(
        socket,
        &places,
        &format!("remove the {kinds} rules of {owner}"),
    )
}

/// Removes these records and all they refer to.
pub(super) fn remove_records(socket: &mut Socket, places: &[Place], what: &str) -> Result<()> {
    if load(socket, places)?.0.is_empty() {
        return Ok(());
    }
    let mut attempt = Attempt::in_turn(TIMEOUT);
    loop {
        let mut batch = Batch::at_generation(socket.generation()?);
        let (slots, chains) = load(socket, places)?;
        let deletions = attempt.delete(&mut batch, &slots);
        match socket.commit(batch) {
            Ok(()) => {
                drop_idle_chains(socket, chains);
                return Ok(());
            }
            Err(refusal) => attempt.learn(refusal, what, &deletions)?,
        }
    }
}

/// The elements that these records list, the records' own included, and their chains.
fn load(socket: &mut Socket, places: &[Place]) -> Result<(Vec<Slot>, Vec<String>)> {
    let (mut slots, mut chains) = (Vec::new(), Vec::new());
    for place in places {
        if let Some((record, own)) = Record::load(socket, place)? {
            slots.extend(record.slots.into_iter().chain(own));
            chains.extend(record.chains);
        }
    }
    Ok((slots, chains))
}

/// Deletes chains unless something still leads to them, which the kernel knows best. A chain that stays does no harm,
/// so nothing here is an error.
pub(super) fn drop_idle_chains(socket: &mut Socket, mut chains: Vec<String>) {
    chains.sort();
    chains.dedup();
    for chain in chains {
        let shared = shared_slots(socket, &chain);
        if is_in_use(socket, &chain, &shared) {
            continue;
        }
        let mut batch = Batch::new();
        for slot in shared {
            batch.push(slot.delete());
        }
        batch.delete_chain(Family::Inet, TABLE, &chain);
        let _ = socket.commit(batch);
    }
}

/// Whether anything but its own rules and the elements that go with it holds a chain. Asking is cheap; to try and
/// be refused makes the kernel wait for an RCU grace period before it says so.
fn is_in_use(socket: &mut Socket, chain: &str, shared: &[Slot]) -> bool {
    let Ok(Some(found)) = socket.chain(Family::Inet, TABLE, chain) else {
        return true;
    };
    let Ok(rules) = socket.rules(Family::Inet, TABLE, Some(chain)) else {
        return true;
    };
    // The set of policed bridges does not lead to a chain; the maps do.
    let leading = shared.iter().filter(|slot| slot.set != SetId::Policed);
    usize::try_from(found.uses).is_ok_and(|uses| uses > rules.len() + leading.count())
}

/// Elements that live and die with a bridge's chain. The bridge stays policed while its other chain is there.
fn shared_slots(socket: &mut Socket, chain: &str) -> Vec<Slot> {
    let (map, bridge, other) = match (
        chain.strip_prefix("confine-"),
        chain.strip_prefix("isolate-"),
    ) {
        (Some(bridge), _) => (SetId::Confine, bridge, "isolate-"),
        (_, Some(bridge)) => (SetId::Isolate, bridge, "confine-"),
        _ => return Vec::new(),
    };
    let mut slots = vec![Slot {
        set: map,
        key: Key::name(bridge).0,
    }];
    let other = socket.chain(Family::Inet, TABLE, &format!("{other}{bridge}"));
    if matches!(other, Ok(None)) {
        slots.push(Slot {
            set: SetId::Policed,
            key: Key::name(bridge).0,
        });
    }
    slots
}
