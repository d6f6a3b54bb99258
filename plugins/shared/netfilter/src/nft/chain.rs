//! Chains with their rules, as we want them.

use super::expr::Expr;
use super::sets::TABLE;
use crate::nfnl::consts::{LIST_ELEM, chain, expr, flag, hook, msg, rule};
use crate::nfnl::{Batch, Family, Hook, Request, udata_with_comment};

/// A rule.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleSpec {
    pub exprs: Vec<Expr>,
    pub comment: Option<&'static str>,
}

impl RuleSpec {
    /// A rule of these groups of expressions.
    pub fn of(groups: impl IntoIterator<Item = Vec<Expr>>) -> Self {
        Self {
            exprs: groups.into_iter().flatten().collect(),
            comment: None,
        }
    }
}

/// A chain of one of our tables.
#[derive(Debug, Clone)]
pub(crate) struct ChainSpec {
    pub family: Family,
    pub name: String,
    /// Type and hook of a base chain. The policy is never written: it starts as accept and is an operator's to change.
    pub base: Option<(&'static str, Hook)>,
    pub rules: Vec<RuleSpec>,
}

impl ChainSpec {
    /// A chain that others jump to.
    pub fn regular(name: impl Into<String>, rules: Vec<RuleSpec>) -> Self {
        Self {
            family: Family::Inet,
            name: name.into(),
            base: None,
            rules,
        }
    }

    /// A chain the kernel calls at a hook.
    pub fn base(
        name: &str,
        kind: &'static str,
        number: u32,
        priority: i32,
        rules: Vec<RuleSpec>,
    ) -> Self {
        Self {
            base: Some((kind, Hook { number, priority })),
            ..Self::regular(name, rules)
        }
    }

    /// The same chain in another family's table.
    pub fn in_family(self, family: Family) -> Self {
        Self { family, ..self }
    }

    /// Declares the chain; with `EXCL` in `flags` only if it is not there.
    pub fn declare(&self, flags: u16) -> Request {
        Request::nftables(msg::NEWCHAIN, self.family, flag::CREATE | flags).with(|w| {
            w.text(chain::TABLE, TABLE).text(chain::NAME, &self.name);
            if let Some((kind, at)) = &self.base {
                w.nest(chain::HOOK, |w| {
                    w.u32(hook::HOOKNUM, at.number)
                        .u32(hook::PRIORITY, at.priority.cast_unsigned());
                });
                w.text(chain::TYPE, kind);
            }
        })
    }

    /// Creates the chain with its rules; the batch fails if it is there already.
    pub fn create(&self, batch: &mut Batch) {
        batch.push(self.declare(flag::EXCL));
        self.fill(batch);
    }

    /// Gives the chain, which exists by then, exactly its rules.
    pub fn rewrite(&self, batch: &mut Batch) {
        batch.flush_chain(self.family, TABLE, &self.name);
        self.fill(batch);
    }

    fn fill(&self, batch: &mut Batch) {
        for spec in &self.rules {
            batch.push(self.append(spec));
        }
    }

    fn append(&self, spec: &RuleSpec) -> Request {
        Request::nftables(msg::NEWRULE, self.family, flag::CREATE | flag::APPEND).with(|w| {
            w.text(rule::TABLE, TABLE).text(rule::CHAIN, &self.name);
            w.nest(rule::EXPRESSIONS, |w| {
                for part in &spec.exprs {
                    w.nest(LIST_ELEM, |w| {
                        w.text(expr::NAME, part.name).nest(expr::DATA, |w| {
                            w.append(&part.attrs);
                        });
                    });
                }
            });
            if let Some(comment) = spec.comment {
                w.bytes(rule::USERDATA, &udata_with_comment(comment));
            }
        })
    }
}
