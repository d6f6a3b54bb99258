//! Host ports between backends: whoever publishes with another backend asks here first.

use super::attempt::Attempt;
use super::claims::{self, Displaced};
use super::plan::{Plan, is_port};
use super::{remove, status};
use crate::carrier::Context;
use crate::error::Result;
use crate::intent::{Intent, Kinds};
use crate::netfilter::ApplyOptions;
use crate::nfnl::Batch;
use crate::owner::Owner;

/// Fails if another live container holds one of these ports in our tables; what a dead one holds is removed.
pub(crate) fn contest(
    context: &mut Context<'_>,
    owner: &Owner,
    intents: &[Intent],
    options: &ApplyOptions<'_>,
) -> Result<()> {
    if !status::is_present(context.socket)? {
        return Ok(());
    }
    let plan = Plan::of(owner, intents)?;
    let ports: Vec<_> = plan
        .entries()
        .filter(|entry| is_port(&entry.slot))
        .collect();
    let mut attempt = Attempt::new(options.timeout);
    loop {
        let generation = context.socket.generation()?;
        let mut displaced = Displaced::default();
        for entry in &ports {
            let mut found = claims::overlapping(context.socket, &entry.slot)?;
            let occupant = claims::occupant(context.socket, entry)?;
            found.extend(occupant.map(|element| (entry.slot.clone(), element)));
            for (slot, element) in found {
                let rival = (&slot, &element);
                displaced.displace(context.socket, owner, rival, Kinds::PUBLISH, options)?;
            }
        }
        let mut batch = Batch::at_generation(generation);
        let deletions = attempt.delete(&mut batch, &displaced.slots);
        match context.socket.commit(batch) {
            Ok(()) => {
                context.warnings.extend(displaced.losers);
                remove::drop_idle_chains(context.socket, displaced.chains);
                return Ok(());
            }
            Err(refusal) => attempt.learn(refusal, "take over ports of the dead", &deletions)?,
        }
    }
}
