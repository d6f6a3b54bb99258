//! One transaction that gives an owner what it is to have.
//!
//! The common case reads next to nothing: it adds elements that must be new, into chains that are assumed to be
//! there. Only when the kernel refuses does the next try look closer.

use super::attempt::{Attempt, Deletions};
use super::chain::ChainSpec;
use super::claims::{self, Displaced};
use super::layout;
use super::plan::{Plan, is_claim};
use super::record::{Place, Record};
use super::sets::TABLE;
use super::verify;
use crate::carrier::Context;
use crate::error::Result;
use crate::intent::{Intent, Kinds};
use crate::netfilter::ApplyOptions;
use crate::nfnl::{Batch, Family, Socket};
use crate::owner::Owner;

pub(super) fn apply(
    context: &mut Context<'_>,
    owner: &Owner,
    intents: &[Intent],
    options: &ApplyOptions<'_>,
) -> Result<()> {
    let plan = Plan::of(owner, intents)?;
    let kinds = Kinds::of(intents);
    let what = format!("write the {kinds} rules of {owner}");
    let mut attempt = Attempt::new(options.timeout);
    loop {
        let (batch, deletions, losers) =
            compose(context.socket, owner, &plan, kinds, &attempt, options)?;
        match context.socket.commit(batch) {
            Ok(()) => {
                context.warnings.extend(losers);
                return Ok(());
            }
            Err(refusal) => attempt.learn(refusal, &what, &deletions)?,
        }
    }
}

/// The batch for one try, and whom it takes something from.
fn compose(
    socket: &mut Socket,
    owner: &Owner,
    plan: &Plan,
    kinds: Kinds,
    attempt: &Attempt,
    options: &ApplyOptions<'_>,
) -> Result<(Batch, Deletions, Vec<String>)> {
    let claims = plan.entries().any(|entry| is_claim(&entry.slot));
    // What was read must still be so when the batch is carried out.
    let mut batch = if claims || attempt.inspect {
        Batch::at_generation(socket.generation()?)
    } else {
        Batch::new()
    };
    let mut rewritten = false;
    // Who applies again may want to mend something.
    let damaged = attempt.inspect && verify::verify_chains(socket, plan).is_err();
    for family in plan.families() {
        if attempt.layout || damaged || !layout::is_complete(socket, family)? {
            layout::write(&mut batch, family);
            rewritten = true;
        }
    }
    for chain in &plan.chains {
        ensure_chain(socket, &mut batch, chain, rewritten, attempt.chains)?;
    }
    let displaced = displaced(socket, owner, plan, kinds, attempt, options)?;
    let deletions = attempt.delete(&mut batch, &displaced.slots);
    for request in displaced.mending()? {
        batch.push(request);
    }
    for entry in &plan.shared {
        batch.push(entry.slot.add(0, &[], entry.value.as_ref()));
    }
    add(&mut batch, owner, plan)?;
    Ok((batch, deletions, displaced.losers))
}

/// Makes sure of a chain: rewritten together with the fixed part, made if it turned out to be missing, else assumed.
fn ensure_chain(
    socket: &mut Socket,
    batch: &mut Batch,
    chain: &ChainSpec,
    rewrite: bool,
    look: bool,
) -> Result<()> {
    if rewrite {
        batch.push(chain.declare(0));
        chain.rewrite(batch);
    } else if look && socket.chain(Family::Inet, TABLE, &chain.name)?.is_none() {
        chain.create(batch);
    }
    Ok(())
}

/// What stands in the way: what the owner had of these kinds, others' overlapping claims, others' elements.
fn displaced(
    socket: &mut Socket,
    owner: &Owner,
    plan: &Plan,
    kinds: Kinds,
    attempt: &Attempt,
    options: &ApplyOptions<'_>,
) -> Result<Displaced> {
    let mut displaced = Displaced::default();
    if attempt.inspect {
        for kind in kinds.iter() {
            displaced.displace_record(socket, &Place::of(owner, kind))?;
        }
    }
    for part in &plan.parts {
        for entry in &part.entries {
            for (slot, element) in claims::overlapping(socket, &entry.slot)? {
                displaced.displace(socket, owner, (&slot, &element), part.kind, options)?;
            }
            if attempt.inspect
                && let Some(element) = claims::occupant(socket, entry)?
            {
                displaced.displace(socket, owner, (&entry.slot, &element), part.kind, options)?;
            }
        }
    }
    Ok(displaced)
}

/// The owner's elements and records.
fn add(batch: &mut Batch, owner: &Owner, plan: &Plan) -> Result<()> {
    let comment = owner.comment();
    for part in &plan.parts {
        let mut record = Record {
            slots: Vec::new(),
            chains: part.chains.clone(),
        };
        for entry in &part.entries {
            batch.push(entry.claim(&comment));
            record.slots.push(entry.slot.clone());
        }
        for request in record.write(&Place::of(owner, part.kind), &comment)? {
            batch.push(request);
        }
    }
    Ok(())
}
