//! Whose a rule is, where iptables leaves no room to say so.
//!
//! The rules that admit an address are the reference set's to the letter, so that its own deletion finds them;
//! they have no comment. nf_tables keeps userdata with each rule, of which iptables reads only the kinds that it
//! knows. The owner is put there, as a kind of ours: with the rule where we make it ourselves, else after
//! `iptables-restore` has made it. Legacy tables have no such place; there the addresses that a caller of a removal knows are all there is.

use std::net::IpAddr;

use super::family::Family;
use super::names::FORWARD_CHAIN;
use super::rule::Rule;
use super::script::FILTER;
use super::{admit, decode};
use crate::carrier::Context;
use crate::error::Result;
use crate::nfnl::{Batch, udata_entries, udata_push};

/// Kind of our userdata entry. iptables and nft use 0 and 1 (comment and ebtables policy) and skip others.
const OWNER: u8 = 0xfe;

/// The userdata of a new rule of an owner.
pub(crate) fn userdata(comment: &str) -> Vec<u8> {
    let mut userdata = Vec::new();
    udata_push(&mut userdata, OWNER, comment.as_bytes());
    userdata
}

/// The owner's comment in the userdata of a rule.
pub(crate) fn read(userdata: &[u8]) -> Option<String> {
    let (_, value) = udata_entries(userdata).find(|(kind, _)| *kind == OWNER)?;
    Some(String::from_utf8_lossy(value).into_owned())
}

/// Which of the rules get the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Also those that were another attachment's before.
    All,
    /// Those that have none.
    Untagged,
}

/// Writes the owner's comment into the rules that admit these addresses.
pub(crate) fn write(
    context: &mut Context<'_>,
    comment: &str,
    addresses: &[IpAddr],
    which: Which,
) -> Result<()> {
    Family::ALL.into_iter().try_for_each(|family| {
        let of_family = addresses.iter().filter(|ip| Family::of(**ip) == family);
        let rules: Vec<Rule> = of_family
            .flat_map(|address| admit::address_rules(*address))
            .collect();
        if rules.is_empty() {
            return Ok(());
        }
        write_into(context, family, comment, &rules, which)
    })
}

fn write_into(
    context: &mut Context<'_>,
    family: Family,
    comment: &str,
    rules: &[Rule],
    which: Which,
) -> Result<()> {
    let mut batch = Batch::new();
    for raw in context
        .socket
        .rules(family.nfnl(), FILTER, Some(FORWARD_CHAIN))?
    {
        let stored = decode::stored(&raw);
        let theirs = match which {
            Which::All => stored.tag.as_deref() != Some(comment),
            Which::Untagged => stored.tag.is_none(),
        };
        if !theirs || !rules.contains(&stored.rule) {
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
    let what = || format!("mark the {} rules of {comment}", family.tool());
    context
        .socket
        .commit(batch)
        .map_err(|refusal| refusal.into_error(what()))
}
