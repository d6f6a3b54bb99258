//! What is in the tables of one family, read when it is asked for and no further.

use std::collections::BTreeMap;
use std::rc::Rc;

use memchr::memmem::Finder;

use super::decode;
use super::family::Family;
use super::names::FORWARD_CHAIN;
use super::rule::Stored;
use super::script::{FILTER, Table};
use super::text::{self, Chains};
use super::tool;
use super::variant::{Variant, legacy_tables};
use crate::error::Result;
use crate::nfnl::Socket;

/// The rules of a chain.
pub(crate) type Rules = Rc<Vec<Stored>>;

/// The tables of one family and one implementation.
pub(crate) struct View<'s> {
    /// The family.
    pub(crate) family: Family,
    source: Source<'s>,
}

enum Source<'s> {
    /// nf_tables, chain by chain over netlink.
    Kernel {
        socket: &'s mut Socket,
        words: Vec<Vec<u8>>,
        chains: BTreeMap<(Table, String), Option<Rules>>,
    },
    /// Whole tables, from the output of `iptables-save`.
    Printed {
        variant: Variant,
        tables: BTreeMap<Table, BTreeMap<String, Rules>>,
    },
}

impl<'s> View<'s> {
    /// The tables of an implementation. Legacy ones can only be read by its own tool.
    pub(crate) fn new(socket: &'s mut Socket, variant: Variant, family: Family) -> Self {
        let source = match variant {
            Variant::Nft => Source::Kernel {
                socket,
                words: Vec::new(),
                chains: BTreeMap::new(),
            },
            Variant::Legacy => Source::Printed {
                variant,
                tables: BTreeMap::new(),
            },
        };
        Self { family, source }
    }

    /// Of the chain that has rules for every container on the host, [`FORWARD_CHAIN`], only those rules that hold one
    /// of these words somewhere: nobody is interested in any other. The kernel cannot search, but to take thousands of
    /// rules apart costs far more than to receive them.
    pub(crate) fn only_with(mut self, only: Vec<Vec<u8>>) -> Self {
        if let Source::Kernel { words, .. } = &mut self.source {
            *words = only;
        }
        self
    }

    /// The same tables as `iptables-save` prints them: it knows expressions that we may not.
    pub(crate) fn printed(variant: Variant, family: Family) -> View<'static> {
        View {
            family,
            source: Source::Printed {
                variant,
                tables: BTreeMap::new(),
            },
        }
    }

    /// The rules of a chain; `None` if there is no such chain.
    pub(crate) fn chain(&mut self, table: Table, chain: &str) -> Result<Option<Rules>> {
        let family = self.family;
        match &mut self.source {
            Source::Kernel {
                socket,
                words,
                chains,
            } => {
                let key = (table, chain.to_owned());
                if let Some(known) = chains.get(&key) {
                    return Ok(known.clone());
                }
                let found = read_chain(socket, family, (table, chain), words)?;
                chains.insert(key, found.clone());
                Ok(found)
            }
            Source::Printed { variant, tables } => {
                Ok(printed_table(*variant, family, tables, table)?
                    .get(chain)
                    .cloned())
            }
        }
    }

    /// The rules of a chain, none if there is no such chain.
    pub(crate) fn rules(&mut self, table: Table, chain: &str) -> Result<Rules> {
        Ok(self.chain(table, chain)?.unwrap_or_default())
    }

    /// The names of a table's chains.
    pub(crate) fn chain_names(&mut self, table: Table) -> Result<Vec<String>> {
        let family = self.family;
        match &mut self.source {
            Source::Kernel { socket, .. } => {
                let chains = socket.chains(family.nfnl(), Some(table))?;
                Ok(chains.into_iter().map(|chain| chain.name).collect())
            }
            Source::Printed { variant, tables } => {
                Ok(printed_table(*variant, family, tables, table)?
                    .keys()
                    .cloned()
                    .collect())
            }
        }
    }
}

fn read_chain(
    socket: &mut Socket,
    family: Family,
    (table, chain): (Table, &str),
    words: &[Vec<u8>],
) -> Result<Option<Rules>> {
    if socket.chain(family.nfnl(), table, chain)?.is_none() {
        return Ok(None);
    }
    let words: Vec<_> = match (table, chain) {
        (FILTER, FORWARD_CHAIN) => words.iter().map(Finder::new).collect(),
        _ => Vec::new(),
    };
    let keep = |rule: &[u8]| words.is_empty() || words.iter().any(|w| w.find(rule).is_some());
    let rules = socket.rules_where(family.nfnl(), table, Some(chain), keep)?;
    Ok(Some(Rc::new(rules.iter().map(decode::stored).collect())))
}

fn printed_table(
    variant: Variant,
    family: Family,
    tables: &mut BTreeMap<Table, BTreeMap<String, Rules>>,
    table: Table,
) -> Result<&BTreeMap<String, Rules>> {
    if !tables.contains_key(table) {
        // Asking for a table creates it, so one that is not there is not asked for.
        let there =
            variant == Variant::Nft || legacy_tables(family).iter().any(|name| name == table);
        let chains = if there {
            text::parse_save(&tool::save(variant, family, table)?, table)
        } else {
            Chains::new()
        };
        tables.insert(
            table,
            chains
                .into_iter()
                .map(|(name, rules)| (name, Rc::new(rules)))
                .collect(),
        );
    }
    Ok(tables.entry(table).or_default())
}
