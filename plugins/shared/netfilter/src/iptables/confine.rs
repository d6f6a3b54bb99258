//! Keeping policed bridges, and on request the containers of one bridge, apart.

use super::admit::FORWARD;
use super::names::{
    FORWARD_CHAIN, ISOLATED_COMMENT, ISOLATION_SHARED_COMMENT, ISOLATION_STAGE_1,
    ISOLATION_STAGE_2, SAME_BRIDGE_COMMENT,
};
use super::plan::{Place, Plan};
use super::rule::{Match, Rule, Target};
use super::script::FILTER;
use crate::Policy;
use crate::error::Result;

/// Adds the rules of a bridge. Rules that an older release wrote with another comment count as present.
pub(crate) fn apply(plan: &mut Plan<'_, '_>, bridge: &str, policy: Policy) -> Result<()> {
    plan.ensure_chain(FILTER, ISOLATION_STAGE_1)?;
    plan.ensure_chain(FILTER, ISOLATION_STAGE_2)?;
    before_accepting(plan)?;
    for (chain, place, rule) in rules(bridge, policy) {
        let same = rule.clone();
        plan.ensure_rule(FILTER, chain, place, rule, |there| {
            there.same_but_comment(&same)
        })?;
    }
    Ok(())
}

/// A jump behind the one to [`FORWARD_CHAIN`] would come too late, so it is moved to the front.
fn before_accepting(plan: &mut Plan<'_, '_>) -> Result<()> {
    let rules = plan.rules(FILTER, FORWARD)?;
    let at = |chain| rules.iter().position(|stored| stored.rule.jumps_to(chain));
    if let (Some(accepting), Some(isolating)) = (at(FORWARD_CHAIN), at(ISOLATION_STAGE_1))
        && accepting < isolating
    {
        plan.delete_rules(FILTER, FORWARD, |stored| {
            stored.rule.jumps_to(ISOLATION_STAGE_1)
        })?;
        plan.add(FILTER, FORWARD, Place::First, stage_1_jump());
    }
    Ok(())
}

/// Everything a verification looks for, with the chain it must be in.
pub(crate) fn wanted_rules(bridge: &str, policy: Policy) -> Vec<(String, Rule)> {
    rules(bridge, policy)
        .into_iter()
        .map(|(chain, _, rule)| (chain.to_owned(), rule))
        .collect()
}

fn stage_1_jump() -> Rule {
    Rule::jump(ISOLATION_STAGE_1).comment(ISOLATION_SHARED_COMMENT)
}

fn rules(bridge: &str, policy: Policy) -> Vec<(&'static str, Place, Rule)> {
    let own_comment = match policy {
        Policy::SameBridge => SAME_BRIDGE_COMMENT,
        Policy::Isolated => ISOLATED_COMMENT,
    };
    let this = || Some(Match::is(bridge.to_owned()));
    let any_other = Some(Match {
        value: bridge.to_owned(),
        negated: true,
    });
    let back = || Rule::to(Target::Return).comment(ISOLATION_SHARED_COMMENT);
    let leaving = Rule {
        input: this(),
        output: any_other,
        ..Rule::jump(ISOLATION_STAGE_2).comment(own_comment)
    };
    let inside = Rule {
        input: this(),
        output: this(),
        ..Rule::to(Target::Drop).comment(own_comment)
    };
    let entering = Rule {
        output: this(),
        ..Rule::to(Target::Drop).comment(ISOLATION_SHARED_COMMENT)
    };
    let mut all = vec![
        (FORWARD, Place::First, stage_1_jump()),
        (ISOLATION_STAGE_1, Place::First, leaving),
    ];
    if policy == Policy::Isolated {
        all.push((ISOLATION_STAGE_1, Place::First, inside));
    }
    all.extend([
        (ISOLATION_STAGE_1, Place::Last, back()),
        (ISOLATION_STAGE_2, Place::First, entering),
        (ISOLATION_STAGE_2, Place::Last, back()),
    ]);
    all
}

/// Removes the rules of bridges that are no more. `exists` tells whether an interface does.
pub(crate) fn collect(plan: &mut Plan<'_, '_>, exists: impl Fn(&str) -> bool) -> Result<()> {
    let named = |side: &Option<Match<String>>| {
        side.as_ref()
            .filter(|m| !m.negated)
            .map(|m| m.value.clone())
    };
    for chain in [ISOLATION_STAGE_1, ISOLATION_STAGE_2] {
        plan.delete_rules(FILTER, chain, |stored| {
            let bridge = named(&stored.rule.input).or_else(|| named(&stored.rule.output));
            bridge.is_some_and(|bridge| !bridge.ends_with('+') && !exists(&bridge))
        })?;
    }
    Ok(())
}
