//! Whose a rule is, where iptables leaves no room to say so.
//!
//! The rules that admit an address are the reference set's to the letter, so that its own deletion finds them;
//! they have no comment. nf_tables keeps userdata with each rule, of which iptables reads only the kinds that it
//! knows. The owner is put there, as a kind of ours, after `iptables-restore` has made the rule. Legacy tables have
//! no such place; there the addresses that a caller of a removal knows are all there is.

use super::family::Family;
use super::names::FORWARD_CHAIN;
use super::rule::Rule;
use super::script::FILTER;
use super::{admit, decode};
use crate::carrier::Context;
use crate::error::Result;
use crate::nfnl::{Batch, udata_entries, udata_push};
use crate::owner::Owner;

/// Kind of our userdata entry. iptables and nft use 0 and 1 (comment and ebtables policy) and skip others.
const OWNER: u8 = 0xfe;

/// The owner's comment in the userdata of a rule.
pub(crate) fn read(userdata: &[u8]) -> Option<String> {
    let (_, value) = udata_entries(userdata).find(|(kind, _)| *kind == OWNER)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Writes the owner into the rules that admit these addresses. An address that another attachment had before
/// is ours from now on.
pub(crate) fn write(
    context: &mut Context<'_>,
    family: Family,
    owner: &Owner,
    wanted: &[admit::Wanted],
) -> Result<()> {
    let rules: Vec<Rule> = wanted
        .iter()
        .flat_map(|want| admit::address_rules(want.address))
        .collect();
    let comment = owner.comment();
    let mut batch = Batch::new();
    for raw in context
        .socket
        .rules(family.nfnl(), FILTER, Some(FORWARD_CHAIN))?
    {
        let stored = decode::stored(&raw);
        if !rules.contains(&stored.rule) || stored.tag.as_deref() == Some(&comment) {
            continue;
        }
        let mut userdata = Vec::new();
        for (kind, value) in udata_entries(&raw.userdata).filter(|(kind, _)| *kind != OWNER) {
            udata_push(&mut userdata, kind, value);
        }
        udata_push(&mut userdata, OWNER, comment.as_bytes());
        batch.retag_rule(&raw, &userdata);
    }
    if batch.is_empty() {
        return Ok(());
    }
    let what = || format!("mark the {} rules of {owner}", family.tool());
    context
        .socket
        .commit(batch)
        .map_err(|refusal| refusal.into_error(what()))
}
