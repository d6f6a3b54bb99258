//! One transaction that gives an owner what it is to have.
//!
//! Everything is looked up by key first, because a batch that the kernel has to undo costs it an RCU grace period: some
//! 20 ms, against some 0.1 ms for one that goes through. Whatever changes between looking and writing makes the kernel
//! refuse, and we look again.

use std::net::IpAddr;

use super::attempt::{Attempt, Deletions};
use super::claims::{self, Displaced};
use super::entry::Slot;
use super::layout;
use super::plan::{Plan, is_claim};
use super::record::{Place, Record};
use super::remove;
use super::sets::TABLE;
use super::verify;
use crate::carrier::Context;
use crate::error::Result;
use crate::intent::{Intent, Kinds};
use crate::netfilter::ApplyOptions;
use crate::nfnl::{Batch, Socket};
use crate::owner::Owner;

pub(super) fn apply(
    context: &mut Context<'_>,
    owner: &Owner,
    intents: &[Intent],
    options: &ApplyOptions<'_>,
) -> Result<()> {
    let wish = Wish {
        owner,
        kinds: Kinds::of(intents),
        plan: Plan::of(owner, intents)?,
        options,
    };
    let losers = wish.fulfil(context)?;
    context.warnings.extend(losers);
    Ok(())
}

/// Marks the connections that the owner's addresses open, so that a backend whose rules are lists knows them by one
/// rule at the top. They count as [`Kinds::ADMIT`] when it comes to removal.
pub(crate) fn know(
    context: &mut Context<'_>,
    owner: &Owner,
    addresses: &[IpAddr],
    options: &ApplyOptions<'_>,
) -> Result<()> {
    let wish = Wish {
        owner,
        kinds: Kinds::ADMIT,
        plan: Plan::knowing(addresses)?,
        options,
    };
    // Who had the address before loses nothing that it could miss.
    wish.fulfil(context).map(drop)
}

/// What is wanted, and for whom.
struct Wish<'a> {
    owner: &'a Owner,
    kinds: Kinds,
    plan: Plan,
    options: &'a ApplyOptions<'a>,
}

/// One try.
struct Step {
    batch: Batch,
    deletions: Deletions,
    /// Whom it takes something from.
    losers: Vec<String>,
    /// Chains that may be in no use afterwards.
    idle: Vec<String>,
}

/// What was found to be there.
struct Look {
    displaced: Displaced,
    /// Whether the owner had anything.
    again: bool,
    /// Elements to do without, because the same container has them on another network.
    yielded: Vec<Slot>,
}

impl Wish<'_> {
    /// Whom it took something from is given, in words.
    fn fulfil(&self, context: &mut Context<'_>) -> Result<Vec<String>> {
        let what = format!("write the {} rules of {}", self.kinds, self.owner);
        let mut attempt = Attempt::in_turn(self.options.timeout);
        loop {
            let step = self.compose(context.socket, &attempt)?;
            match context.socket.commit(step.batch) {
                Ok(()) => {
                    remove::drop_idle_chains(context.socket, step.idle);
                    return Ok(step.losers);
                }
                Err(refusal) => attempt.learn(refusal, &what, &step.deletions)?,
            }
        }
    }

    fn compose(&self, socket: &mut Socket, attempt: &Attempt) -> Result<Step> {
        let generation = socket.generation()?;
        let Look {
            mut displaced,
            again,
            yielded,
        } = self.look(socket)?;
        // New elements are refused if their keys are taken, so they need no guard; what is deleted, and claims that
        // overlap under another key, must still be as they were read.
        let claims = self.plan.entries().any(|entry| is_claim(&entry.slot));
        let guarded = claims || !displaced.slots.is_empty();
        let mut batch = if guarded {
            Batch::at_generation(generation)
        } else {
            Batch::new()
        };
        self.write_chains(socket, &mut batch, attempt.layout, again)?;
        displaced
            .chains
            .retain(|name| self.plan.chains.iter().all(|chain| chain.name != *name));
        let deletions = attempt.delete(&mut batch, &displaced.slots);
        for request in displaced.mending()? {
            batch.push(request);
        }
        self.add(&mut batch, &yielded)?;
        Ok(Step {
            batch,
            deletions,
            losers: displaced.losers,
            idle: displaced.chains,
        })
    }

    /// What stands in the way: what the owner had of these kinds, others' overlapping claims, others' elements.
    fn look(&self, socket: &mut Socket) -> Result<Look> {
        let mut displaced = Displaced::default();
        for kind in self.kinds.iter() {
            displaced.displace_record(socket, &Place::of(self.owner, kind))?;
        }
        let again = !displaced.slots.is_empty();
        let mut yielded = Vec::new();
        for part in &self.plan.parts {
            for entry in &part.entries {
                let occupant = claims::occupant(socket, entry)?;
                let mut found = claims::overlapping(socket, &entry.slot)?;
                found.extend(occupant.map(|element| (entry.slot.clone(), element)));
                for (slot, element) in found {
                    let rival = (&slot, &element);
                    if !displaced.displace(socket, self.owner, rival, part.kind, self.options)? {
                        yielded.push(entry.slot.clone());
                    }
                }
            }
        }
        Ok(Look {
            displaced,
            again,
            yielded,
        })
    }

    /// The fixed part of the tables if it is not complete, and the chains that this needs. Who applies again may want
    /// to mend something, so then everything is compared.
    fn write_chains(
        &self,
        socket: &mut Socket,
        batch: &mut Batch,
        force: bool,
        again: bool,
    ) -> Result<()> {
        let mut rewrite = force || again && verify::verify_chains(socket, &self.plan).is_err();
        for family in self.plan.families() {
            if rewrite || !layout::is_complete(socket, family)? {
                layout::write(batch, family);
                rewrite = true;
            }
        }
        for chain in &self.plan.chains {
            if rewrite {
                batch.push(chain.declare(0));
                chain.rewrite(batch);
            } else if socket.chain(chain.family, TABLE, &chain.name)?.is_none() {
                chain.create(batch);
            }
        }
        for entry in &self.plan.shared {
            batch.push(entry.slot.add(0, &[], entry.value.as_ref()));
        }
        Ok(())
    }

    /// The owner's elements and records.
    fn add(&self, batch: &mut Batch, yielded: &[Slot]) -> Result<()> {
        let comment = self.owner.comment();
        for part in &self.plan.parts {
            let mut record = Record {
                slots: Vec::new(),
                chains: part.chains.clone(),
            };
            let wanted = part
                .entries
                .iter()
                .filter(|entry| !yielded.contains(&entry.slot));
            for entry in wanted {
                batch.push(entry.claim(&comment));
                record.slots.push(entry.slot.clone());
            }
            for request in record.write(&Place::of(self.owner, part.kind), &comment)? {
                batch.push(request);
            }
        }
        Ok(())
    }
}
