//! Letting containers through the FORWARD chain.
//!
//! The rules of a container are recognised by its address alone, in the reference set as well.

use std::net::IpAddr;

use super::family::Family;
use super::names::{
    ADMIN_COMMENT, FORWARD_CHAIN, FORWARD_COMMENT, ISOLATION_STAGE_1, KNOWN_COMMENT,
};
use super::plan::{Place, Plan};
use super::rule::{Marked, Rule, Stored, Target, state};
use super::script::FILTER;
use crate::error::Result;
use crate::owner::{Owner, network_hash};

/// The built-in chain.
pub(crate) const FORWARD: &str = "FORWARD";

/// One address to admit.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The container's address.
    pub(crate) address: IpAddr,
    /// The chain of the administrator's own rules.
    pub(crate) admin_chain: String,
}

/// Adds what is wanted. `connmark`: whether the kernel can match connection marks.
pub(crate) fn apply(plan: &mut Plan<'_, '_>, wanted: &[Wanted], connmark: bool) -> Result<()> {
    plan.ensure_chain(FILTER, FORWARD_CHAIN)?;
    for want in wanted {
        plan.ensure_chain(FILTER, &want.admin_chain)?;
    }
    let place = after_isolation(plan)?;
    plan.ensure_rule(FILTER, FORWARD, place, forward_jump(), |rule| {
        rule.jumps_to(FORWARD_CHAIN)
    })?;
    if connmark {
        let known = known();
        let place = after_admin(plan)?;
        plan.ensure_rule(FILTER, FORWARD_CHAIN, place, known.clone(), |rule| {
            rule.same_but_comment(&known)
        })?;
    }
    for want in wanted {
        let chain = &want.admin_chain;
        plan.ensure_rule(
            FILTER,
            FORWARD_CHAIN,
            Place::First,
            admin_jump(chain),
            |rule| rule.jumps_to(chain),
        )?;
    }
    for rule in wanted.iter().flat_map(|want| address_rules(want.address)) {
        let same = rule.clone();
        plan.ensure_rule(FILTER, FORWARD_CHAIN, Place::Last, rule, |there| {
            *there == same
        })?;
    }
    Ok(())
}

/// Words of which each rule holds one that [`apply`] and a verification look at.
pub(crate) fn words(wanted: &[Wanted]) -> Vec<Vec<u8>> {
    let mut words: Vec<Vec<u8>> = wanted.iter().map(|want| octets(want.address)).collect();
    words.extend(
        wanted
            .iter()
            .map(|want| want.admin_chain.clone().into_bytes()),
    );
    // Not its comment, which releases differ in.
    words.push(b"connmark".to_vec());
    // Jumps to other administrators' chains.
    words.push(ADMIN_COMMENT.as_bytes().to_vec());
    words
}

/// The same for [`remove`].
pub(crate) fn words_of(owner: &Owner, addresses: &[IpAddr]) -> Vec<Vec<u8>> {
    let tag = owner.instance_hash().into_bytes();
    let addresses = addresses.iter().copied().map(octets);
    std::iter::once(tag).chain(addresses).collect()
}

/// The same for [`collect`].
pub(crate) fn words_of_network(network: &str) -> Vec<Vec<u8>> {
    vec![network_hash(network).into_bytes()]
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    }
}

/// Isolation must come before anything is accepted.
fn after_isolation(plan: &mut Plan<'_, '_>) -> Result<Place> {
    let rules = plan.rules(FILTER, FORWARD)?;
    let is_isolation = |stored: &Stored| stored.rule.jumps_to(ISOLATION_STAGE_1);
    Ok(Place::behind(rules.iter().position(is_isolation)))
}

/// The administrator's word comes before anything is accepted.
fn after_admin(plan: &mut Plan<'_, '_>) -> Result<Place> {
    let rules = plan.rules(FILTER, FORWARD_CHAIN)?;
    let is_jump = |stored: &Stored| matches!(stored.rule.target, Target::Jump(_));
    // Jumps that are still to come are put first, and so before this.
    Ok(Place::behind(rules.iter().rposition(is_jump)))
}

/// Everything a verification looks for, with the chain it must be in.
pub(crate) fn wanted_rules(wanted: &[Wanted]) -> Vec<(String, Rule)> {
    let mut all = vec![(FORWARD.to_owned(), forward_jump())];
    for want in wanted {
        all.push((FORWARD_CHAIN.to_owned(), admin_jump(&want.admin_chain)));
        all.extend(address_rules(want.address).map(|rule| (FORWARD_CHAIN.to_owned(), rule)));
    }
    all
}

/// Removes the rules of the owner, and those of these addresses that belong to nobody else, every copy of them.
pub(crate) fn remove(plan: &mut Plan<'_, '_>, owner: &Owner, addresses: &[IpAddr]) -> Result<()> {
    let named: Vec<Rule> = addresses
        .iter()
        .flat_map(|address| address_rules(*address))
        .collect();
    plan.delete_rules(FILTER, FORWARD_CHAIN, |stored| {
        stored.is_tagged_for(owner) || (stored.tag.is_none() && named.contains(&stored.rule))
    })
    .map(drop)
}

/// Removes the rules of the network's attachments that are not valid any more.
pub(crate) fn collect(plan: &mut Plan<'_, '_>, network: &str, valid: &[Owner]) -> Result<()> {
    let of_network = format!("{}-", network_hash(network));
    plan.delete_rules(FILTER, FORWARD_CHAIN, |stored| {
        let tag = stored.tag.as_deref().unwrap_or_default();
        tag.starts_with(&of_network) && !valid.iter().any(|owner| stored.is_tagged_for(owner))
    })
    .map(drop)
}

fn forward_jump() -> Rule {
    Rule::jump(FORWARD_CHAIN).comment(FORWARD_COMMENT)
}

fn admin_jump(chain: &str) -> Rule {
    Rule::jump(chain).comment(ADMIN_COMMENT)
}

/// Accepts what belongs to a connection with the mark: one that was opened to a published port, or by a container that
/// is admitted. So published ports pass under a policy of DROP, and no packet walks through the rules of all
/// containers to its own. One rule for all, so there is nothing that a deletion by the reference set would leave behind.
fn known() -> Rule {
    let mark = Marked {
        value: crate::ADMITTED_MARK,
        mask: crate::ADMITTED_MARK,
    };
    Rule {
        connmark: Some(mark),
        ..Rule::to(Target::Accept).comment(KNOWN_COMMENT)
    }
}

pub(crate) fn address_rules(address: IpAddr) -> impl Iterator<Item = Rule> {
    let host = Family::host(address).into_iter();
    host.flat_map(|host| {
        let answers = Rule {
            states: state::RELATED | state::ESTABLISHED,
            ..Rule::to(Target::Accept)
        };
        [answers.towards(host), Rule::to(Target::Accept).from(host)]
    })
}
