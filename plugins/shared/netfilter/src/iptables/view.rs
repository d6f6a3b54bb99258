//! What is in the tables of one family, read when it is asked for and no further.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::decode;
use super::family::Family;
use super::rule::Stored;
use super::script::Table;
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
                chains: BTreeMap::new(),
            },
            Variant::Legacy => Source::Printed {
                variant,
                tables: BTreeMap::new(),
            },
        };
        Self { family, source }
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
            Source::Kernel { socket, chains } => {
                let key = (table, chain.to_owned());
                if let Some(known) = chains.get(&key) {
                    return Ok(known.clone());
                }
                let found = read_chain(socket, family, table, chain)?;
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
    table: Table,
    chain: &str,
) -> Result<Option<Rules>> {
    if socket.chain(family.nfnl(), table, chain)?.is_none() {
        return Ok(None);
    }
    let rules = socket.rules(family.nfnl(), table, Some(chain))?;
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
