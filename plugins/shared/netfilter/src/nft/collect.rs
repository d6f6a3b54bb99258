//! Removing what is left of attachments that exist no longer.

use std::collections::HashSet;

use super::attempt::Attempt;
use super::record::Place;
use super::remove::{self, TIMEOUT};
use super::search::holders;
use super::sets::SetId;
use crate::error::Result;
use crate::intent::Kinds;
use crate::nfnl::{Batch, Socket};
use crate::owner::{Holder, Owner};

/// Elements deleted in one batch; a socket takes some two hundred kilobytes at once.
const AT_ONCE: usize = 500;

/// Removes everything of the network that belongs to none of these owners.
pub(super) fn collect(
    socket: &mut Socket,
    network: &str,
    valid: &[Owner],
    kinds: Kinds,
) -> Result<()> {
    let valid: HashSet<_> = valid.iter().map(Owner::instance_hash).collect();
    let is_stale =
        |holder: &Holder| holder.of_network(network) && !valid.contains(&holder.instance_hash);
    let stale: HashSet<_> = holders(socket, SetId::Owners)?
        .into_iter()
        .filter(|(.., holder)| is_stale(holder))
        .map(|(.., holder)| holder.instance_hash)
        .collect();
    let what = format!("remove stale {kinds} rules of network {network}");
    for hash in stale {
        let places: Vec<_> = kinds
            .iter()
            .map(|kind| Place::from_hash(&hash, kind))
            .collect();
        remove::remove_records(socket, &places, None, &what)?;
    }
    remove_orphans(socket, kinds, is_stale, &what)?;
    remove::sweep(socket);
    Ok(())
}

/// Elements that no record knows, which takes somebody who edited the sets by hand.
fn remove_orphans(
    socket: &mut Socket,
    kinds: Kinds,
    is_stale: impl Fn(&Holder) -> bool,
    what: &str,
) -> Result<()> {
    let mut attempt = Attempt::new(TIMEOUT);
    loop {
        let mut batch = Batch::at_generation(socket.generation()?);
        for set in SetId::ALL
            .into_iter()
            .filter(|set| set.kind().is_some_and(|kind| kinds.contains(kind)))
        {
            let orphans = holders(socket, set)?
                .into_iter()
                .filter(|(.., holder)| is_stale(holder));
            for (slot, ..) in orphans.take(AT_ONCE.saturating_sub(batch.len())) {
                batch.push(slot.delete());
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        if let Err(refusal) = socket.commit(batch) {
            attempt.learn(refusal, what, &Vec::new())?;
        }
    }
}
