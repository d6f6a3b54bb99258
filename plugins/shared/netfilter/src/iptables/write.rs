//! Carrying changes out: all of them, over both families, or none.

use std::net::IpAddr;

use super::encode::{self, RULES_PER_ADDRESS};
use super::family::Family;
use super::script::{Edits, Op, Table};
use super::variant::Variant;
use super::{tag, tool};
use crate::carrier::Context;
use crate::error::{Error, Result};
use crate::nfnl::{Batch, Expr};

/// How often changes are planned anew when somebody else changed the tables in between.
pub(crate) const ATTEMPTS: usize = 4;

/// Whether rules that admit an address have been given their owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    /// All that there are for these addresses.
    WithOwner,
    /// Not all.
    WithoutOwner,
}

/// Carries out the changes of all families. If one fails, those before it are taken back. `comment` is the owner's.
pub(crate) fn all(
    context: &mut Context<'_>,
    variant: Variant,
    edits: &[Edits],
    comment: &str,
) -> Result<Made> {
    let steps: Vec<_> = edits.iter().map(|edits| Step::of(variant, edits)).collect();
    for (index, step) in steps.iter().enumerate() {
        if let Err(error) = step.add(context, variant, comment) {
            for done in steps.iter().take(index).rev() {
                done.take_back(context, variant);
            }
            return Err(readable(error));
        }
    }
    for step in &steps {
        remove(context, &step.removals)?;
    }
    Ok(match steps.iter().all(Step::is_complete) {
        true => Made::WithOwner,
        false => Made::WithoutOwner,
    })
}

/// The changes of one family, by how they are carried out.
struct Step {
    /// Over netlink if they are all of the kind that [`encode`] knows, else through `iptables-restore`.
    additions: Edits,
    /// The additions, if they go over netlink.
    encoded: Option<Vec<Encoded>>,
    /// Over netlink, when all additions have succeeded. What they remove is stale until then, not wrong.
    removals: Edits,
}

impl Step {
    fn of(variant: Variant, edits: &Edits) -> Self {
        match variant {
            Variant::Nft => {
                let (additions, removals) = edits.split_removals();
                Self {
                    encoded: additions.ops.iter().map(Encoded::of).collect(),
                    additions,
                    removals,
                }
            }
            Variant::Legacy => Self {
                additions: edits.clone(),
                encoded: None,
                removals: Edits::new(edits.family),
            },
        }
    }

    /// Whether all rules for the addresses that it is about are new, and carry their owner.
    fn is_complete(&self) -> bool {
        let Some(encoded) = &self.encoded else {
            return false;
        };
        // Two rules admit an address, and what is there already is not added.
        !encoded.is_empty()
            && encoded.iter().all(|one| {
                let of_same = encoded.iter().filter(|other| other.address == one.address);
                of_same.count() == RULES_PER_ADDRESS
            })
    }

    fn add(&self, context: &mut Context<'_>, variant: Variant, comment: &str) -> Result<()> {
        if self.additions.ops.is_empty() {
            return Ok(());
        }
        if let Some(encoded) = &self.encoded {
            return append(context, self.additions.family, encoded, comment);
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

/// A rule that admits an address, as the kernel takes it.
struct Encoded {
    table: Table,
    chain: String,
    address: IpAddr,
    exprs: Vec<Expr>,
}

impl Encoded {
    fn of((table, op): &(Table, Op)) -> Option<Self> {
        let Op::Append(chain, rule) = op else {
            return None;
        };
        let (address, exprs) = encode::admission(rule)?;
        Some(Self {
            table,
            chain: chain.clone(),
            address,
            exprs,
        })
    }
}

fn append(
    context: &mut Context<'_>,
    family: Family,
    encoded: &[Encoded],
    comment: &str,
) -> Result<()> {
    let mut batch = Batch::new();
    let userdata = tag::userdata(comment);
    for one in encoded {
        batch.append_rule(
            family.nfnl(),
            (one.table, &one.chain),
            &one.exprs,
            &userdata,
        );
    }
    let what = || format!("add {} rules of {comment}", family.tool());
    context
        .socket
        .commit(batch)
        .map_err(|refusal| refusal.into_error(what()))
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
