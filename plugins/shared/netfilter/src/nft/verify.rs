//! Comparing what should be with what is. Changes nothing.

use super::chain::{ChainSpec, RuleSpec};
use super::claims;
use super::entry::Entry;
use super::layout;
use super::plan::Plan;
use super::record::Place;
use super::sets::TABLE;
use crate::error::{Error, Result};
use crate::intent::Intent;
use crate::nfnl::{Reader, Rule, Socket};
use crate::owner::{Holder, Owner};

/// Fails with the first object that is missing or not as `apply` made it.
pub(super) fn verify(socket: &mut Socket, owner: &Owner, intents: &[Intent]) -> Result<()> {
    let plan = Plan::of(owner, intents)?;
    verify_chains(socket, &plan)?;
    for entry in &plan.shared {
        find(socket, entry)?;
    }
    for entry in plan.entries() {
        let found = find(socket, entry).and_then(|comment| match Holder::parse(&comment) {
            Some(holder) if holder.is(owner) => Ok(()),
            _ => Err(missing(format!(
                "{} (it belongs to {comment:?})",
                entry.slot
            ))),
        });
        if found.is_err() && claims::is_served(socket, owner, entry)? {
            continue;
        }
        found?;
    }
    for part in &plan.parts {
        let record = Place::of(owner, part.kind).slot(0);
        let set = record.set;
        if socket
            .element(set.family(), TABLE, set.name(), &record.key)?
            .is_none()
        {
            return Err(missing(record.to_string()));
        }
    }
    Ok(())
}

/// Fails with the first chain, fixed or made for these elements, that is not as it was written.
pub(super) fn verify_chains(socket: &mut Socket, plan: &Plan) -> Result<()> {
    for family in plan.families() {
        let rules = socket.rules(family, TABLE, None)?;
        let on_demand = plan.chains.iter().filter(|chain| chain.family == family);
        for chain in layout::chains(family).iter().chain(on_demand) {
            verify_chain(socket, chain, &rules)?;
        }
    }
    Ok(())
}

/// The element's comment, if it is there with the right value.
fn find(socket: &mut Socket, entry: &Entry) -> Result<String> {
    let found = claims::occupant(socket, entry)?.filter(|element| entry.is(element));
    let found = found.ok_or_else(|| missing(entry.slot.to_string()))?;
    Ok(found.comment().unwrap_or_default())
}

fn verify_chain(socket: &mut Socket, spec: &ChainSpec, rules: &[Rule]) -> Result<()> {
    let name = format!("chain {} {TABLE} {}", spec.family.name(), spec.name);
    let found = socket
        .chain(spec.family, TABLE, &spec.name)?
        .ok_or_else(|| missing(name.clone()))?;
    let base = spec
        .base
        .map(|(kind, hook)| (Some(kind.to_owned()), Some(hook)));
    if base.is_some_and(|base| base != (found.kind, found.hook)) {
        return Err(missing(format!("the hook of {name}")));
    }
    let mut rules = rules.iter().filter(|rule| rule.chain == spec.name);
    for (index, wanted) in spec.rules.iter().enumerate() {
        if !rules.next().is_some_and(|rule| is(wanted, rule)) {
            return Err(missing(format!("rule {} of {name}", index + 1)));
        }
    }
    match rules.next() {
        Some(_) => Err(Error::Invalid {
            what: name,
            reason: "it has rules that are not ours".into(),
        }),
        None => Ok(()),
    }
}

/// Whether the kernel's rule has the wanted expressions. It may report more attributes than were asked for.
fn is(wanted: &RuleSpec, rule: &Rule) -> bool {
    let same = wanted.exprs.iter().zip(&rule.exprs);
    wanted.exprs.len() == rule.exprs.len()
        && same.into_iter().all(|(wanted, found)| {
            wanted.name == found.name && covers(Reader::new(&found.data), wanted.attrs.reader())
        })
}

fn covers(found: Reader<'_>, mut wanted: Reader<'_>) -> bool {
    wanted.all(|attr| {
        found.get(attr.kind).is_some_and(|other| {
            if attr.nested {
                covers(other.nested(), attr.nested())
            } else {
                attr.value == other.value
            }
        })
    })
}

fn missing(what: String) -> Error {
    Error::Missing { what }
}
