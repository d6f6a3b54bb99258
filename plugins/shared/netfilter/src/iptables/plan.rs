//! From what is there and what is wanted to the changes between them.

use super::rule::{Rule, Stored};
use super::script::{Edits, Op, Table};
use super::view::{Rules, View};
use crate::error::Result;

/// Collects the changes of one command for one family.
pub(crate) struct Plan<'v, 's> {
    /// What is there.
    pub(crate) view: &'v mut View<'s>,
    /// What is to be changed.
    pub(crate) edits: Edits,
}

/// Where a rule is put if it is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place {
    /// Before all others.
    First,
    /// At this position, counted from 1.
    At(usize),
    /// After all others.
    Last,
}

impl Place {
    /// Right behind the rule with this index, counted from 0; before all others if there is none.
    pub(crate) fn behind(index: Option<usize>) -> Self {
        index.map_or(Self::First, |index| Self::At(index + 2))
    }
}

impl<'v, 's> Plan<'v, 's> {
    /// Nothing to change yet.
    pub(crate) fn new(view: &'v mut View<'s>) -> Self {
        let edits = Edits::new(view.family);
        Self { view, edits }
    }

    /// The rules of a chain as they are now.
    pub(crate) fn rules(&mut self, table: Table, chain: &str) -> Result<Rules> {
        self.view.rules(table, chain)
    }

    /// Makes a chain unless it is there.
    pub(crate) fn ensure_chain(&mut self, table: Table, chain: &str) -> Result<()> {
        let new = Op::NewChain(chain.to_owned());
        if self.view.chain(table, chain)?.is_none() && !self.has(table, &new) {
            self.edits.ops.push((table, new));
        }
        Ok(())
    }

    /// Makes a chain, or empties the one that is there.
    pub(crate) fn fresh_chain(&mut self, table: Table, chain: &str) -> Result<()> {
        let op = match self.view.chain(table, chain)? {
            Some(rules) => Op::Flush(chain.to_owned(), rules.to_vec()),
            None => Op::NewChain(chain.to_owned()),
        };
        self.edits.ops.push((table, op));
        Ok(())
    }

    /// Adds a rule unless one that `same` accepts is there or already on the way.
    pub(crate) fn ensure_rule(
        &mut self,
        table: Table,
        chain: &str,
        place: Place,
        rule: Rule,
        same: impl Fn(&Rule) -> bool,
    ) -> Result<()> {
        let there = self
            .rules(table, chain)?
            .iter()
            .any(|stored| same(&stored.rule));
        let coming = self.edits.ops.iter().any(|(t, op)| match op {
            Op::Append(c, rule) | Op::Insert(c, _, rule) => *t == table && c == chain && same(rule),
            _ => false,
        });
        if !there && !coming {
            self.add(table, chain, place, rule);
        }
        Ok(())
    }

    /// Adds a rule.
    pub(crate) fn add(&mut self, table: Table, chain: &str, place: Place, rule: Rule) {
        let chain = chain.to_owned();
        let op = match place {
            Place::First => Op::Insert(chain, 1, rule),
            Place::At(position) => Op::Insert(chain, position, rule),
            Place::Last => Op::Append(chain, rule),
        };
        self.edits.ops.push((table, op));
    }

    /// Removes those rules of a chain that `which` accepts. How many there are.
    pub(crate) fn delete_rules(
        &mut self,
        table: Table,
        chain: &str,
        which: impl Fn(&Stored) -> bool,
    ) -> Result<usize> {
        let rules = self.rules(table, chain)?;
        let gone: Vec<_> = rules
            .iter()
            .filter(|stored| which(stored))
            .cloned()
            .collect();
        let count = gone.len();
        for stored in gone {
            let op = Op::Delete(chain.to_owned(), stored);
            if !self.has(table, &op) {
                self.edits.ops.push((table, op));
            }
        }
        Ok(count)
    }

    /// Removes a chain with its rules, if it is there. Jumps to it must be deleted before.
    pub(crate) fn drop_chain(&mut self, table: Table, chain: &str) -> Result<()> {
        if let Some(rules) = self.view.chain(table, chain)? {
            let op = Op::DropChain(chain.to_owned(), rules.to_vec());
            if !self.has(table, &op) {
                self.edits.ops.push((table, op));
            }
        }
        Ok(())
    }

    fn has(&self, table: Table, wanted: &Op) -> bool {
        self.edits
            .ops
            .iter()
            .any(|(t, op)| *t == table && op == wanted)
    }
}
