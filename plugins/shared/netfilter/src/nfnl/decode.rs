//! From message bodies to objects, and the dumps that give them.

use super::attr::{Attr, Reader};
use super::consts::{LIST_ELEM, chain, data, elem, expr, hook, msg, rule, set, table};
use super::message::{Family, Request};
use super::objects::{Chain, Data, Element, Expr, Hook, Rule, Set, Table, Verdict};
use super::socket::Socket;
use crate::error::Result;

/// `NFT_NAME_MAXLEN` (linux/netfilter/nf_tables.h): bytes of a name with its terminating zero.
const NAME_MAX: usize = 256;

impl Socket {
    /// All tables of a family ([`Family::Unspec`] for all families).
    pub fn tables(&mut self, family: Family) -> Result<Vec<Table>> {
        self.dump(
            &Request::nftables(msg::GETTABLE, family, 0),
            "tables",
            read_table,
        )
    }

    /// One table.
    pub fn table(&mut self, family: Family, name: &str) -> Result<Option<Table>> {
        let request = Request::nftables(msg::GETTABLE, family, 0).with(|w| {
            w.text(table::NAME, name);
        });
        self.get(request, "table", read_table)
    }

    /// The chains of a table, or of all tables of the family.
    pub fn chains(&mut self, family: Family, table: Option<&str>) -> Result<Vec<Chain>> {
        let mut chains = self.dump(
            &Request::nftables(msg::GETCHAIN, family, 0),
            "chains",
            read_chain,
        )?;
        chains.retain(|chain| table.is_none_or(|table| chain.table == table));
        Ok(chains)
    }

    /// One chain. A name that is too long for the kernel is no chain's.
    pub fn chain(&mut self, family: Family, table: &str, name: &str) -> Result<Option<Chain>> {
        if name.len() >= NAME_MAX {
            return Ok(None);
        }
        let request = Request::nftables(msg::GETCHAIN, family, 0).with(|w| {
            w.text(chain::TABLE, table).text(chain::NAME, name);
        });
        self.get(request, "chain", read_chain)
    }

    /// The rules of a table, or of one of its chains, in order. A table or chain that does not exist has none.
    pub fn rules(&mut self, family: Family, table: &str, chain: Option<&str>) -> Result<Vec<Rule>> {
        self.rules_where(family, table, chain, |_| true)
    }

    /// As [`Self::rules`], but only those whose message (without its header) `keep` accepts. The others are not even
    /// taken apart.
    pub fn rules_where(
        &mut self,
        family: Family,
        table: &str,
        chain: Option<&str>,
        keep: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<Rule>> {
        let request = Request::nftables(msg::GETRULE, family, 0).with(|w| {
            w.text(rule::TABLE, table);
            if let Some(chain) = chain {
                w.text(rule::CHAIN, chain);
            }
        });
        let mut rules = self.dump(&request, "rules", |family, body| {
            keep(body).then(|| read_rule(family, body))?
        })?;
        // Kernels that do not know the filter send everything.
        rules.retain(|rule| rule.table == table && chain.is_none_or(|chain| rule.chain == chain));
        Ok(rules)
    }

    /// The sets and maps of a table.
    pub fn sets(&mut self, family: Family, table: &str) -> Result<Vec<Set>> {
        let request = Request::nftables(msg::GETSET, family, 0).with(|w| {
            w.text(set::TABLE, table);
        });
        let mut sets = self.dump(&request, "sets", read_set)?;
        sets.retain(|set| set.table == table);
        Ok(sets)
    }

    /// The elements of a set or map; none if it does not exist.
    pub fn elements(&mut self, family: Family, table: &str, set: &str) -> Result<Vec<Element>> {
        let request = Request::nftables(msg::GETSETELEM, family, 0).with(|w| {
            w.text(elem::LIST_TABLE, table).text(elem::LIST_SET, set);
        });
        let lists = self.dump(&request, "set elements", |_, body| {
            Some(read_elements(body))
        })?;
        Ok(lists.into_iter().flatten().collect())
    }

    /// The element with this key.
    pub fn element(
        &mut self,
        family: Family,
        table: &str,
        set: &str,
        key: &[u8],
    ) -> Result<Option<Element>> {
        let request = Request::nftables(msg::GETSETELEM, family, 0).with(|w| {
            w.text(elem::LIST_TABLE, table)
                .text(elem::LIST_SET, set)
                .nest(elem::LIST_ELEMENTS, |w| {
                    w.nest(LIST_ELEM, |w| {
                        w.nest(elem::KEY, |w| {
                            w.bytes(data::VALUE, key);
                        });
                    });
                });
        });
        let found = self.get(request, "set element", |_, body| Some(read_elements(body)))?;
        Ok(found.into_iter().flatten().next())
    }
}

fn read_table(family: Family, body: &[u8]) -> Option<Table> {
    let attrs = Reader::new(body);
    Some(Table {
        family,
        name: attrs.get(table::NAME)?.text(),
        handle: attrs
            .get(table::HANDLE)
            .and_then(|attr| attr.u64())
            .unwrap_or(0),
        flags: attrs
            .get(table::FLAGS)
            .and_then(|attr| attr.u32())
            .unwrap_or(0),
        userdata: bytes(attrs, table::USERDATA),
    })
}

fn read_chain(family: Family, body: &[u8]) -> Option<Chain> {
    let attrs = Reader::new(body);
    let number = |kind| attrs.get(kind).and_then(|attr| attr.u32());
    Some(Chain {
        family,
        table: attrs.get(chain::TABLE)?.text(),
        name: attrs.get(chain::NAME)?.text(),
        handle: attrs
            .get(chain::HANDLE)
            .and_then(|attr| attr.u64())
            .unwrap_or(0),
        hook: attrs
            .get(chain::HOOK)
            .and_then(|attr| read_hook(attr.nested())),
        kind: attrs.get(chain::TYPE).map(|attr| attr.text()),
        policy: number(chain::POLICY),
        uses: number(chain::USE).unwrap_or(0),
        userdata: bytes(attrs, chain::USERDATA),
    })
}

fn read_hook(attrs: Reader<'_>) -> Option<Hook> {
    let number = attrs.get(hook::HOOKNUM)?.u32()?;
    let priority = attrs.get(hook::PRIORITY)?.u32()?;
    Some(Hook {
        number,
        priority: priority.cast_signed(),
    })
}

fn read_rule(family: Family, body: &[u8]) -> Option<Rule> {
    let attrs = Reader::new(body);
    let exprs = attrs
        .get(rule::EXPRESSIONS)
        .map(|attr| attr.nested().filter_map(|expr| read_expr(&expr)).collect());
    Some(Rule {
        family,
        table: attrs.get(rule::TABLE)?.text(),
        chain: attrs.get(rule::CHAIN)?.text(),
        handle: attrs.get(rule::HANDLE)?.u64()?,
        exprs: exprs.unwrap_or_default(),
        userdata: bytes(attrs, rule::USERDATA),
    })
}

fn read_expr(attr: &Attr<'_>) -> Option<Expr> {
    Some(Expr {
        name: attr.nested().get(expr::NAME)?.text(),
        data: bytes(attr.nested(), expr::DATA),
    })
}

impl Expr {
    /// The verdict of an immediate expression on the verdict register.
    pub fn verdict(&self) -> Option<Verdict> {
        const DREG: u16 = 1;
        const DATA: u16 = 2;
        let attrs = Reader::new(&self.data);
        let to_verdict_register = attrs.get(DREG)?.u32()? == 0;
        (self.name == "immediate" && to_verdict_register)
            .then(|| read_data(attrs.get(DATA)?.nested()))?
            .and_then(|data| match data {
                Data::Verdict(verdict) => Some(verdict),
                Data::Value(_) => None,
            })
    }
}

fn read_set(family: Family, body: &[u8]) -> Option<Set> {
    let attrs = Reader::new(body);
    let number = |kind| attrs.get(kind).and_then(|attr| attr.u32()).unwrap_or(0);
    Some(Set {
        family,
        table: attrs.get(set::TABLE)?.text(),
        name: attrs.get(set::NAME)?.text(),
        flags: number(set::FLAGS),
        key_len: number(set::KEY_LEN),
        data_type: number(set::DATA_TYPE),
    })
}

fn read_elements(body: &[u8]) -> Vec<Element> {
    let list = Reader::new(body).get(elem::LIST_ELEMENTS);
    list.map(|list| {
        list.nested()
            .filter_map(|attr| read_element(attr.nested()))
            .collect()
    })
    .unwrap_or_default()
}

fn read_element(attrs: Reader<'_>) -> Option<Element> {
    Some(Element {
        key: bytes(attrs.get(elem::KEY)?.nested(), data::VALUE),
        data: attrs
            .get(elem::DATA)
            .and_then(|attr| read_data(attr.nested())),
        flags: attrs
            .get(elem::FLAGS)
            .and_then(|attr| attr.u32())
            .unwrap_or(0),
        userdata: bytes(attrs, elem::USERDATA),
    })
}

fn read_data(attrs: Reader<'_>) -> Option<Data> {
    if let Some(value) = attrs.get(data::VALUE) {
        return Some(Data::Value(value.value.to_vec()));
    }
    let verdict = attrs.get(data::VERDICT)?.nested();
    Some(Data::Verdict(Verdict {
        code: verdict.get(data::VERDICT_CODE)?.u32()?.cast_signed(),
        chain: verdict.get(data::VERDICT_CHAIN).map(|attr| attr.text()),
    }))
}

fn bytes(attrs: Reader<'_>, kind: u16) -> Vec<u8> {
    attrs
        .get(kind)
        .map(|attr| attr.value.to_vec())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfnl::Writer;
    use proptest::prelude::*;

    /// Attributes of random types with random nests: closer to what could come than plain noise.
    fn attributes() -> impl Strategy<Value = Vec<u8>> {
        let leaf = proptest::collection::vec(any::<u8>(), 0..24);
        leaf.prop_recursive(4, 64, 6, |inner| {
            proptest::collection::vec((0u16..14, inner), 0..6).prop_map(|list| {
                let mut writer = Writer::default();
                for (kind, value) in list {
                    writer.bytes(kind, &value);
                }
                writer.finish().unwrap()
            })
        })
    }

    proptest! {
        #[test]
        fn whatever_the_kernel_sends_is_survived(body in attributes()) {
            let _ = read_table(Family::Inet, &body);
            let _ = read_chain(Family::Inet, &body);
            let _ = read_set(Family::Inet, &body);
            for element in read_elements(&body) {
                let _ = element.comment();
            }
            if let Some(rule) = read_rule(Family::Inet, &body) {
                let _ = (rule.comment(), rule.verdict());
            }
        }
    }
}
