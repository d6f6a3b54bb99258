//! Carrying changes out: all of them, over both families, or none.

use super::script::{Edits, Op};
use super::tool;
use super::variant::Variant;
use crate::carrier::Context;
use crate::error::{Error, Result};
use crate::nfnl::Batch;

/// How often changes are planned anew when somebody else changed the tables in between.
pub(crate) const ATTEMPTS: usize = 4;

/// Carries out the changes of all families. If one fails, those before it are taken back.
pub(crate) fn all(context: &mut Context<'_>, variant: Variant, edits: &[Edits]) -> Result<()> {
    let steps: Vec<_> = edits.iter().map(|edits| Step::of(variant, edits)).collect();
    for (index, step) in steps.iter().enumerate() {
        if let Err(error) = step.add(variant) {
            for done in steps.iter().take(index).rev() {
                done.take_back(context, variant);
            }
            return Err(readable(error));
        }
    }
    steps
        .iter()
        .try_for_each(|step| remove(context, &step.removals))
}

/// The changes of one family, by how they are carried out.
struct Step {
    /// Through `iptables-restore`.
    additions: Edits,
    /// Over netlink, when all additions have succeeded. What they remove is stale until then, not wrong.
    removals: Edits,
}

impl Step {
    fn of(variant: Variant, edits: &Edits) -> Self {
        match variant {
            Variant::Nft => {
                let (additions, removals) = edits.split_removals();
                Self {
                    additions,
                    removals,
                }
            }
            Variant::Legacy => Self {
                additions: edits.clone(),
                removals: Edits::new(edits.family),
            },
        }
    }

    fn add(&self, variant: Variant) -> Result<()> {
        if self.additions.ops.is_empty() {
            return Ok(());
        }
        tool::restore(variant, self.additions.family, &self.additions.script())
    }

    fn take_back(&self, context: &mut Context<'_>, variant: Variant) {
        let back = self.additions.reverse();
        if back.ops.is_empty() {
            return;
        }
        if let Err(error) = tool::restore(variant, back.family, &back.script()) {
            context.warnings.push(format!(
                "could not take back the {} rules: {error}",
                back.family.tool()
            ));
        }
    }
}

/// Removes rules and chains of nf_tables in one transaction.
pub(crate) fn remove(context: &mut Context<'_>, edits: &Edits) -> Result<()> {
    let family = edits.family.nfnl();
    let mut batch = Batch::new();
    for (table, op) in &edits.ops {
        match op {
            Op::Delete(chain, stored) => {
                let malformed = || Error::Malformed {
                    what: format!("rule of chain {chain}"),
                };
                batch.delete_rule(family, table, chain, stored.handle.ok_or_else(malformed)?);
            }
            Op::DropChain(chain, rules) if !rules.is_empty() => {
                batch.flush_chain(family, table, chain);
            }
            _ => {}
        }
    }
    // They may have led to one another, so they go when all are empty.
    for (table, op) in &edits.ops {
        if let Op::DropChain(chain, _) = op {
            batch.delete_chain(family, table, chain);
        }
    }
    let what = || format!("remove {} rules", edits.family.tool());
    context
        .socket
        .commit(batch)
        .map_err(|refusal| refusal.into_error(what()))
}

/// Removes rules and chains of any variant.
pub(crate) fn removals(context: &mut Context<'_>, variant: Variant, edits: &Edits) -> Result<()> {
    match variant {
        _ if edits.ops.is_empty() => Ok(()),
        Variant::Nft => remove(context, edits),
        Variant::Legacy => tool::restore(variant, edits.family, &edits.script()),
    }
}

/// Says what helps when the tables are not iptables' own.
fn readable(error: Error) -> Error {
    match error {
        Error::Child {
            program, stderr, ..
        } if stderr.contains("incompatible") => Error::Unavailable {
            what: "the iptables backend".to_owned(),
            reason: format!(
                "{program}: {stderr}; these rules were made with nft, so choose the nftables backend"
            ),
        },
        other => other,
    }
}

/// Whether the kernel or the tool lacks connection marks.
pub(crate) fn lacks_connmark(error: &Error) -> bool {
    matches!(error, Error::Child { stderr, .. } if stderr.to_lowercase().contains("connmark"))
}
