//! Masquerading: one chain per container and network, a jump to it per address.
//!
//! The chain is named by network and container id, not by interface. When a second interface of a container joins
//! the same network, its addresses are noted in the chain by rules that only carry its owner as a comment, so that
//! each of the two can leave without the other.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

use super::family::Family;
use super::names;
use super::plan::{Place, Plan};
use super::rule::{Match, Rule, Stored, Target};
use super::script::NAT;
use crate::error::Result;
use crate::{Holder, Owner};

const POSTROUTING: &str = "POSTROUTING";

/// One address to masquerade.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The address with its prefix length.
    pub(crate) source: IpNetwork,
    /// Further destinations that are left alone.
    pub(crate) except: Vec<IpNetwork>,
}

/// Adds what is wanted for the owner.
pub(crate) fn apply(plan: &mut Plan<'_, '_>, owner: &Owner, wanted: &[Wanted]) -> Result<()> {
    let chain = names::masquerade_chain(&owner.network, &owner.container_id);
    let ours = |address: IpAddr| wanted.iter().any(|w| w.source.ip() == address);
    if plan.view.chain(NAT, &chain)?.is_none() {
        // Nothing leads to a chain that is not there, so the many jumps to other chains need not be read.
        fill(plan, owner, &chain, wanted)?;
        for rule in jump_rules(owner, &chain, wanted) {
            plan.add(NAT, POSTROUTING, Place::Last, rule);
        }
        return Ok(());
    }
    let others = jumps(plan, &chain)?
        .iter()
        .any(|jump| jump.rule.source_host().is_some_and(|a| !ours(a)));
    if others {
        join(plan, owner, &chain, wanted)?;
    } else {
        fill(plan, owner, &chain, wanted)?;
    }
    for rule in jump_rules(owner, &chain, wanted) {
        let same = rule.clone();
        plan.ensure_rule(NAT, POSTROUTING, Place::Last, rule, |there| *there == same)?;
    }
    Ok(())
}

/// Writes the chain anew, unless it is as it should be.
fn fill(plan: &mut Plan<'_, '_>, owner: &Owner, chain: &str, wanted: &[Wanted]) -> Result<()> {
    let rules = chain_rules(plan.view.family, owner, wanted);
    let there = plan.view.chain(NAT, chain)?;
    if there.is_some_and(|there| there.iter().map(|stored| &stored.rule).eq(rules.iter())) {
        return Ok(());
    }
    plan.fresh_chain(NAT, chain)?;
    rules
        .into_iter()
        .for_each(|rule| plan.add(NAT, chain, Place::Last, rule));
    Ok(())
}

/// Adds to a chain that another interface of the container uses as well.
fn join(plan: &mut Plan<'_, '_>, owner: &Owner, chain: &str, wanted: &[Wanted]) -> Result<()> {
    for rule in chain_rules(plan.view.family, owner, wanted) {
        let same = rule.clone();
        let place = if rule.target == Target::Accept {
            Place::First
        } else {
            Place::Last
        };
        plan.ensure_rule(NAT, chain, place, rule, |there| *there == same)?;
    }
    for rule in wanted.iter().filter_map(|w| note(owner, w.source.ip())) {
        let same = rule.clone();
        plan.ensure_rule(NAT, chain, Place::Last, rule, |there| *there == same)?;
    }
    Ok(())
}

/// The chain's rules: every subnet is left alone before anything is masqueraded.
fn chain_rules(family: Family, owner: &Owner, wanted: &[Wanted]) -> Vec<Rule> {
    let comment = names::masquerade_comment(&owner.network, &owner.container_id);
    let mut rules: Vec<Rule> = Vec::new();
    for subnet in wanted
        .iter()
        .flat_map(|w| std::iter::once(&w.source).chain(&w.except))
    {
        let rule = Rule::to(Target::Accept).towards(*subnet).comment(&comment);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    let mut rest = Rule::to(Target::Masquerade).comment(&comment);
    rest.destination = family.multicast().map(|value| Match {
        value,
        negated: true,
    });
    rules.push(rest);
    rules
}

/// The rules that send the addresses' packets to the chain, each once.
fn jump_rules(owner: &Owner, chain: &str, wanted: &[Wanted]) -> Vec<Rule> {
    let comment = names::masquerade_comment(&owner.network, &owner.container_id);
    let mut rules: Vec<Rule> = Vec::new();
    for host in wanted.iter().filter_map(|w| Family::host(w.source.ip())) {
        let rule = Rule::jump(chain).from(host).comment(&comment);
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    }
    rules
}

/// The rule that says whose an address is. It decides nothing.
fn note(owner: &Owner, address: IpAddr) -> Option<Rule> {
    Some(
        Rule::to(Target::None)
            .from(Family::host(address)?)
            .comment(&owner.comment()),
    )
}

/// Everything a verification looks for, with the chain it must be in.
pub(crate) fn wanted_rules(
    family: Family,
    owner: &Owner,
    wanted: &[Wanted],
) -> Vec<(String, Rule)> {
    let chain = names::masquerade_chain(&owner.network, &owner.container_id);
    let inside = chain_rules(family, owner, wanted)
        .into_iter()
        .map(|rule| (chain.clone(), rule));
    let jumps = jump_rules(owner, &chain, wanted)
        .into_iter()
        .map(|rule| (POSTROUTING.to_owned(), rule));
    inside.chain(jumps).collect()
}

/// Removes what the owner has. `addresses`: the container's, as far as they are known.
pub(crate) fn remove(plan: &mut Plan<'_, '_>, owner: &Owner, addresses: &[IpAddr]) -> Result<()> {
    let chain = names::masquerade_chain(&owner.network, &owner.container_id);
    let Some(rules) = plan.view.chain(NAT, &chain)? else {
        return Ok(());
    };
    let (gone, staying) = own_jumps(&rules, jumps(plan, &chain)?, owner, addresses);
    plan.delete_rules(NAT, POSTROUTING, |stored| gone.contains(stored))?;
    if staying == 0 {
        return plan.drop_chain(NAT, &chain);
    }
    let comment = owner.comment();
    plan.delete_rules(NAT, &chain, |stored| {
        stored.rule.comment.as_ref() == Some(&comment)
    })
    .map(drop)
}

/// The owner's among the jumps to its chain, and how many others there are.
///
/// Addresses that nobody noted are those of the interface that was there first, or alone. They are found by the
/// chain, whatever the container's addresses are by now.
fn own_jumps(
    rules: &[Stored],
    jumps: Vec<Stored>,
    owner: &Owner,
    addresses: &[IpAddr],
) -> (Vec<Stored>, usize) {
    let notes: Vec<(IpAddr, bool)> = rules
        .iter()
        .filter_map(|stored| read_note(stored, owner))
        .collect();
    let own_notes = notes.iter().any(|(_, mine)| *mine);
    let is_own = |stored: &Stored| match stored.rule.source.as_ref().map(|source| source.value.ip())
    {
        Some(address) if notes.contains(&(address, true)) => true,
        Some(address) if notes.contains(&(address, false)) => false,
        Some(address) => !own_notes || addresses.contains(&address),
        None => true,
    };
    let all = jumps.len();
    let own: Vec<_> = jumps.into_iter().filter(is_own).collect();
    let others = all - own.len();
    (own, others)
}

/// The address in a note and whether it is the owner's.
fn read_note(stored: &Stored, owner: &Owner) -> Option<(IpAddr, bool)> {
    let holder = Holder::parse(stored.rule.comment.as_ref()?)?;
    Some((stored.rule.source_host()?, holder.is(owner)))
}

fn jumps(plan: &mut Plan<'_, '_>, chain: &str) -> Result<Vec<Stored>> {
    let rules = plan.rules(NAT, POSTROUTING)?;
    Ok(rules
        .iter()
        .filter(|stored| stored.rule.jumps_to(chain))
        .cloned()
        .collect())
}

/// The owner's addresses.
pub(crate) fn addresses(plan: &mut Plan<'_, '_>, owner: &Owner) -> Result<Vec<IpAddr>> {
    let chain = names::masquerade_chain(&owner.network, &owner.container_id);
    let Some(rules) = plan.view.chain(NAT, &chain)? else {
        return Ok(Vec::new());
    };
    let (own, _) = own_jumps(&rules, jumps(plan, &chain)?, owner, &[]);
    Ok(own
        .iter()
        .filter_map(|jump| jump.rule.source_host())
        .collect())
}

/// Network and container id of everyone who has the address masqueraded.
pub(crate) fn holders(
    plan: &mut Plan<'_, '_>,
    address: IpAddr,
) -> Result<Vec<(String, Option<String>)>> {
    let rules = plan.rules(NAT, POSTROUTING)?;
    let here = rules
        .iter()
        .map(|stored| &stored.rule)
        .filter(|rule| rule.source_host() == Some(address));
    let jumps = here
        .filter(|rule| matches!(&rule.target, Target::Jump(to) if names::is_masquerade_chain(to)));
    Ok(jumps
        .filter_map(|rule| names::parse_comment(rule.comment.as_ref()?))
        .collect())
}

/// Removes the chains of the network that none of these owners has.
pub(crate) fn collect(plan: &mut Plan<'_, '_>, network: &str, valid: &[Owner]) -> Result<()> {
    let kept: Vec<String> = valid
        .iter()
        .map(|owner| names::masquerade_chain(&owner.network, &owner.container_id))
        .collect();
    for chain in plan.view.chain_names(NAT)? {
        if !names::is_masquerade_chain(&chain) {
            continue;
        }
        if kept.contains(&chain) {
            collect_notes(plan, &chain, valid)?;
        } else if belongs_to(plan, &chain, network)? {
            plan.delete_rules(NAT, POSTROUTING, |stored| stored.rule.jumps_to(&chain))?;
            plan.drop_chain(NAT, &chain)?;
        }
    }
    Ok(())
}

fn belongs_to(plan: &mut Plan<'_, '_>, chain: &str, network: &str) -> Result<bool> {
    let mut rules = plan.rules(NAT, chain)?.to_vec();
    rules.extend(jumps(plan, chain)?);
    let mut comments = rules
        .iter()
        .filter_map(|stored| names::parse_comment(stored.rule.comment.as_ref()?));
    Ok(comments.any(|(name, _)| name == network))
}

/// Removes the noted addresses of interfaces that are gone while others of the container live.
fn collect_notes(plan: &mut Plan<'_, '_>, chain: &str, valid: &[Owner]) -> Result<()> {
    let stale = |stored: &Stored| {
        let holder = Holder::parse(stored.rule.comment.as_deref().unwrap_or_default());
        holder.is_some_and(|holder| !valid.iter().any(|owner| holder.is(owner)))
    };
    let rules = plan.rules(NAT, chain)?;
    let gone: Vec<_> = rules
        .iter()
        .filter(|stored| stale(stored))
        .filter_map(|stored| stored.rule.source_host())
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    let of_gone = |stored: &Stored| {
        stored
            .rule
            .source_host()
            .is_some_and(|address| gone.contains(&address))
    };
    plan.delete_rules(NAT, POSTROUTING, |stored| {
        stored.rule.jumps_to(chain) && of_gone(stored)
    })?;
    plan.delete_rules(NAT, chain, stale).map(drop)
}
