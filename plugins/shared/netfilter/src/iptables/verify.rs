//! Whether everything wanted is there.

use super::plan::Plan;
use super::publish;
use super::rule::Rule;
use super::script::{FILTER, NAT, Table};
use super::tool::{self, Purpose};
use super::variant::{Variant, legacy_tables};
use super::view::View;
use super::wanted::Wanted;
use super::{admit, confine, masquerade, render};
use crate::carrier::Context;
use crate::error::{Error, Result};
use crate::owner::Owner;

/// Fails with the first thing that is missing in every place it could be.
pub(crate) fn verify(context: &mut Context<'_>, owner: &Owner, wanted: &Wanted) -> Result<()> {
    let family = wanted.family;
    let live = Variant::live(context.socket);
    let words = admit::words(&wanted.admit);
    let mut view = View::new(context.socket, live, family).only_with(words);
    let first = look(&mut view, owner, wanted);
    let Err(missing @ Error::Missing { .. }) = first else {
        return first;
    };
    // A newer iptables may write expressions that are unknown here, but it can print what it wrote.
    let printable = tool::find(Variant::Nft, family, Purpose::Save).is_some();
    if live == Variant::Nft
        && printable
        && look(&mut View::printed(live, family), owner, wanted).is_ok()
    {
        return Ok(());
    }
    let other = match live {
        Variant::Nft => Variant::Legacy,
        Variant::Legacy => Variant::Nft,
    };
    let worth_it = other == Variant::Nft || !legacy_tables(family).is_empty();
    if worth_it && look(&mut View::new(context.socket, other, family), owner, wanted).is_ok() {
        return Ok(());
    }
    Err(missing)
}

fn look(view: &mut View<'_>, owner: &Owner, wanted: &Wanted) -> Result<()> {
    let mut plan = Plan::new(view);
    let family = wanted.family;
    if !wanted.masquerade.is_empty() {
        let rules = masquerade::wanted_rules(family, owner, &wanted.masquerade);
        all_there(&mut plan, NAT, rules, |there, rule| there == rule)?;
    }
    if !wanted.publish.is_empty() {
        let rules = publish::wanted_rules(&mut plan, owner, &wanted.publish, false)?;
        all_there(&mut plan, NAT, rules, publish::same)?;
    }
    if !wanted.admit.is_empty() {
        all_there(
            &mut plan,
            FILTER,
            admit::wanted_rules(&wanted.admit),
            Rule::same_but_comment,
        )?;
    }
    for (bridge, policy) in &wanted.confine {
        all_there(
            &mut plan,
            FILTER,
            confine::wanted_rules(bridge, *policy),
            Rule::same_but_comment,
        )?;
    }
    Ok(())
}

fn all_there(
    plan: &mut Plan<'_, '_>,
    table: Table,
    wanted: Vec<(String, Rule)>,
    same: impl Fn(&Rule, &Rule) -> bool,
) -> Result<()> {
    for (chain, rule) in wanted {
        let rules = plan.rules(table, &chain)?;
        if !rules.iter().any(|stored| same(&stored.rule, &rule)) {
            let tool = plan.view.family.tool();
            return Err(Error::Missing {
                what: format!("{tool} rule -t {table} -A {chain} {}", render::text(&rule)),
            });
        }
    }
    Ok(())
}
