//! Removing what an owner has, found through its records.

use std::time::Duration;

use super::attempt::Attempt;
use super::entry::{Key, Slot};
use super::layout;
use super::record::{Place, Record};
use super::search;
use super::sets::{SetId, TABLE};
use crate::error::Result;
use crate::intent::Kinds;
use crate::netfilter::Hints;
use crate::nfnl::{Batch, Family, Socket};
use crate::owner::{Holder, Owner};

/// A removal must go through if it can at all; it waits for nothing but other writers.
pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// Removes what the owner has of these kinds, and chains nobody uses any more.
pub(super) fn remove(
    socket: &mut Socket,
    owner: &Owner,
    kinds: Kinds,
    hints: &Hints,
) -> Result<()> {
    let places: Vec<_> = kinds.iter().map(|kind| Place::of(owner, kind)).collect();
    remove_records(
        socket,
        &places,
        Some(hints),
        &format!("remove the {kinds} rules of {owner}"),
    )
}

/// Removes these records and all they refer to. With hints, what a lost record must have said is looked for.
pub(super) fn remove_records(
    socket: &mut Socket,
    places: &[Place],
    hints: Option<&Hints>,
    what: &str,
) -> Result<()> {
    let found = load(socket, places)?;
    // Searched once, and not in the loop: it takes longer than a ruleset that others keep changing stays the same.
    let lost = match hints {
        Some(hints) => search_lost(socket, places, hints, found.0.is_empty())?,
        None => Record::default(),
    };
    if found.0.is_empty() && lost.slots.is_empty() {
        sweep(socket);
        return Ok(());
    }
    let mut attempt = Attempt::in_turn(TIMEOUT);
    loop {
        let mut batch = Batch::at_generation(socket.generation()?);
        let (mut slots, mut chains) = load(socket, places)?;
        slots.extend(lost.slots.iter().cloned());
        chains.extend(lost.chains.iter().cloned());
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

/// What records must have said that somebody deleted (`nft flush set`), without those that are there. With `bare` none of them is.
fn search_lost(socket: &mut Socket, places: &[Place], hints: &Hints, bare: bool) -> Result<Record> {
    let mut lost = Record::default();
    for place in places {
        if !may_be_lost(socket, place, hints, bare)? || Record::load(socket, place)?.is_some() {
            continue;
        }
        let (record, _) = search::reconstruct(socket, place)?;
        lost.slots.extend(record.slots);
        lost.chains.extend(record.chains);
    }
    Ok(lost)
}

/// Whether it is worth it to search whole sets for want of a record. Most owners never had one of every kind.
fn may_be_lost(socket: &mut Socket, place: &Place, hints: &Hints, bare: bool) -> Result<bool> {
    if hints.search {
        return Ok(true);
    }
    let (v4, v6) = match place.kind() {
        Kinds::MASQUERADE => ([SetId::Masquerade4; 2], [SetId::Masquerade6; 2]),
        Kinds::ADMIT => (
            [SetId::Admit4, SetId::Known4],
            [SetId::Admit6, SetId::Known6],
        ),
        Kinds::PUBLISH => return Ok(bare && !hints.ports.is_empty()),
        // Few have these, so the sets are small.
        _ => return Ok(bare && !hints.addresses.is_empty()),
    };
    for address in &hints.addresses {
        for set in if address.is_ipv4() { v4 } else { v6 } {
            let key = Key::address(*address).0;
            let element = socket.element(set.family(), TABLE, set.name(), &key)?;
            let holder = element.and_then(|element| Holder::parse(&element.comment()?));
            if holder.is_some_and(|holder| place.is_of(&holder)) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Deletes chains that nobody uses. A removal deletes its elements first and then looks for chains that have become
/// idle; one that is killed in between leaves them to the next that finds nothing of its own.
pub(super) fn sweep(socket: &mut Socket) {
    let fixed: Vec<String> = layout::chains(Family::Inet)
        .into_iter()
        .map(|chain| chain.name)
        .collect();
    // As below: what stays does no harm.
    let chains = socket.chains(Family::Inet, Some(TABLE)).unwrap_or_default();
    let names = chains.into_iter().map(|chain| chain.name);
    drop_idle_chains(socket, names.filter(|name| !fixed.contains(name)).collect());
}

/// Deletes chains unless something still leads to them, which the kernel knows best. A chain that stays does no harm,
/// so nothing here is an error.
pub(super) fn drop_idle_chains(socket: &mut Socket, mut chains: Vec<String>) {
    chains.sort();
    chains.dedup();
    for chain in chains {
        // Once more if it failed: somebody else may have been faster, or a message was lost.
        if drop_idle_chain(socket, &chain).is_err() {
            let _ = drop_idle_chain(socket, &chain);
        }
    }
}

fn drop_idle_chain(socket: &mut Socket, chain: &str) -> Result<()> {
    let shared = shared_slots(socket, chain)?;
    if is_in_use(socket, chain, &shared)? {
        return Ok(());
    }
    let mut batch = Batch::new();
    for slot in shared {
        batch.push(slot.delete());
    }
    batch.delete_chain(Family::Inet, TABLE, chain);
    let what = || format!("delete chain {chain}");
    socket
        .commit(batch)
        .map_err(|refusal| refusal.into_error(what()))
}

/// Whether anything but its own rules and the elements that go with it holds a chain. Asking is cheap; to try and
/// be refused makes the kernel wait for an RCU grace period before it says so.
fn is_in_use(socket: &mut Socket, chain: &str, shared: &[Slot]) -> Result<bool> {
    let Some(found) = socket.chain(Family::Inet, TABLE, chain)? else {
        return Ok(true);
    };
    let rules = socket.rules(Family::Inet, TABLE, Some(chain))?;
    // The set of policed bridges does not lead to a chain; the maps do.
    let leading = shared.iter().filter(|slot| slot.set != SetId::Policed);
    let own = rules.len() + leading.count();
    Ok(usize::try_from(found.uses).is_ok_and(|uses| uses > own))
}

/// Elements that live and die with a bridge's chain. The bridge stays policed while its other chain is there.
fn shared_slots(socket: &mut Socket, chain: &str) -> Result<Vec<Slot>> {
    let (map, bridge, other) = match (
        chain.strip_prefix("confine-"),
        chain.strip_prefix("isolate-"),
    ) {
        (Some(bridge), _) => (SetId::Confine, bridge, "isolate-"),
        (_, Some(bridge)) => (SetId::Isolate, bridge, "confine-"),
        _ => return Ok(Vec::new()),
    };
    let mut slots = vec![Slot {
        set: map,
        key: Key::name(bridge).0,
    }];
    let other = socket.chain(Family::Inet, TABLE, &format!("{other}{bridge}"))?;
    if other.is_none() {
        slots.push(Slot {
            set: SetId::Policed,
            key: Key::name(bridge).0,
        });
    }
    Ok(slots)
}
