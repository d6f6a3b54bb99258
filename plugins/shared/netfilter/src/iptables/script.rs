//! Changes to the tables of one family, and the text for `iptables-restore` that makes them.

use super::family::Family;
use super::render;
use super::rule::{Rule, Stored};

/// Name of a table.
pub(crate) type Table = &'static str;
/// Where addresses are translated.
pub(crate) const NAT: Table = "nat";
/// Where packets are accepted and dropped.
pub(crate) const FILTER: Table = "filter";

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Op {
    /// Make a chain that is not there. Fails when somebody else was faster, so nothing of theirs is lost.
    NewChain(String),
    /// Empty a chain that is there; `Vec` is what it held.
    Flush(String, Vec<Stored>),
    /// Add a rule at the end.
    Append(String, Rule),
    /// Add a rule at a position, counted from 1.
    Insert(String, usize, Rule),
    /// Remove a rule.
    Delete(String, Stored),
    /// Remove a chain; the `Vec` is what it still holds. Jumps to it go first, by [`Op::Delete`].
    DropChain(String, Vec<Stored>),
}

impl Op {
    /// Whether the change takes something away only.
    pub(crate) fn is_removal(&self) -> bool {
        matches!(self, Self::Delete(..) | Self::DropChain(..))
    }
}

/// Changes to the tables of one family, in the order in which they are to be made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edits {
    /// The family.
    pub(crate) family: Family,
    /// The changes.
    pub(crate) ops: Vec<(Table, Op)>,
}

impl Edits {
    pub(crate) fn new(family: Family) -> Self {
        Self {
            family,
            ops: Vec::new(),
        }
    }

    /// Whether a chain that is there is emptied.
    pub(crate) fn flushes(&self, chain: &str) -> bool {
        self.ops
            .iter()
            .any(|(_, op)| matches!(op, Op::Flush(name, _) if name == chain))
    }

    /// Splits off what only takes away: nf_tables removes by handle, without a child process.
    pub(crate) fn split_removals(&self) -> (Self, Self) {
        let (removals, additions) = self
            .ops
            .iter()
            .cloned()
            .partition(|(_, op)| op.is_removal());
        (
            Self {
                family: self.family,
                ops: additions,
            },
            Self {
                family: self.family,
                ops: removals,
            },
        )
    }

    /// The text for `iptables-restore --noflush`. Removals come first: `-D` takes the first equal rule, which
    /// must not be a new one. Chains that go may lead to one another, so all are emptied before any is removed.
    pub(crate) fn script(&self) -> String {
        let mut out = String::new();
        for table in [FILTER, NAT] {
            let of_table = || {
                self.ops
                    .iter()
                    .filter(|(t, _)| *t == table)
                    .map(|(_, op)| op)
            };
            if of_table().next().is_none() {
                continue;
            }
            out.push_str(&format!("*{table}\n"));
            for pass in [deletions, flushes, drops, additions] {
                out.extend(of_table().filter_map(pass));
            }
            out.push_str("COMMIT\n");
        }
        out
    }

    /// The changes that take these back, without the removals among them.
    pub(crate) fn reverse(&self) -> Self {
        let is_new = |table: Table, chain: &str| {
            let new = Op::NewChain(chain.to_owned());
            self.ops.iter().any(|(t, op)| *t == table && *op == new)
        };
        let mut ops = Vec::new();
        for (table, op) in self.ops.iter().rev() {
            let back = match op {
                Op::NewChain(chain) => vec![Op::DropChain(chain.clone(), Vec::new())],
                // They go with their chain.
                Op::Append(chain, _) | Op::Insert(chain, _, _) if is_new(table, chain) => {
                    Vec::new()
                }
                Op::Append(chain, rule) | Op::Insert(chain, _, rule) => {
                    vec![Op::Delete(chain.clone(), as_text(rule))]
                }
                Op::Flush(chain, old) => {
                    let restored = old.iter().map(|stored| stored.rule.clone());
                    restored
                        .map(|rule| Op::Append(chain.clone(), rule))
                        .collect()
                }
                Op::Delete(..) | Op::DropChain(..) => Vec::new(),
            };
            ops.extend(back.into_iter().map(|op| (*table, op)));
        }
        Self {
            family: self.family,
            ops,
        }
    }
}

fn as_text(rule: &Rule) -> Stored {
    Stored {
        tag: None,
        rule: rule.clone(),
        handle: None,
        text: Some(render::text(rule)),
    }
}

fn deletions(op: &Op) -> Option<String> {
    let Op::Delete(chain, stored) = op else {
        return None;
    };
    let text = stored
        .text
        .clone()
        .unwrap_or_else(|| render::text(&stored.rule));
    Some(format!("-D {chain} {text}\n"))
}

fn flushes(op: &Op) -> Option<String> {
    match op {
        Op::DropChain(chain, _) => Some(format!("-F {chain}\n")),
        _ => None,
    }
}

fn drops(op: &Op) -> Option<String> {
    match op {
        Op::DropChain(chain, _) => Some(format!("-X {chain}\n")),
        _ => None,
    }
}

fn additions(op: &Op) -> Option<String> {
    Some(match op {
        Op::NewChain(chain) => format!("-N {chain}\n"),
        Op::Flush(chain, _) => format!("-F {chain}\n"),
        Op::Append(chain, rule) => format!("-A {chain} {}\n", render::text(rule)),
        Op::Insert(chain, at, rule) => format!("-I {chain} {at} {}\n", render::text(rule)),
        Op::Delete(..) | Op::DropChain(..) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::rule::Target;
    use super::*;

    fn edits(ops: Vec<(Table, Op)>) -> Edits {
        Edits {
            family: Family::V4,
            ops,
        }
    }

    #[test]
    fn removals_come_first_and_tables_apart() {
        let rule = Rule::to(Target::Return);
        let all = edits(vec![
            (NAT, Op::NewChain("A".into())),
            (FILTER, Op::Insert("B".into(), 2, rule.clone())),
            (NAT, Op::Append("A".into(), rule.clone())),
            (NAT, Op::Delete("C".into(), as_text(&rule))),
            (NAT, Op::DropChain("D".into(), Vec::new())),
        ]);
        assert_eq!(
            all.script(),
            "*filter\n-I B 2 -j RETURN\nCOMMIT\n*nat\n-D C -j RETURN\n-F D\n-X D\n-N A\n-A A -j RETURN\nCOMMIT\n"
        );
        let (additions, removals) = all.split_removals();
        assert_eq!((additions.ops.len(), removals.ops.len()), (3, 2));
    }

    #[test]
    fn the_reverse_takes_back_in_reverse_order() {
        let (rule, old) = (Rule::to(Target::Return), Rule::to(Target::Accept));
        let forward = edits(vec![
            (NAT, Op::NewChain("A".into())),
            (NAT, Op::Append("A".into(), rule.clone())),
            (NAT, Op::Flush("B".into(), vec![as_text(&old)])),
            (NAT, Op::Append("B".into(), rule)),
        ]);
        assert_eq!(
            forward.reverse().script(),
            "*nat\n-D B -j RETURN\n-F A\n-X A\n-A B -j ACCEPT\nCOMMIT\n"
        );
    }
}
