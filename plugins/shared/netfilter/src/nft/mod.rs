//! The nftables backend: our own tables, spoken over netlink.
//!
//! Everything per container is an element of a set or map whose comment is the owner's. The fixed part (`layout`) is
//! written once. docs/nftables.md describes the tables for operators.

mod apply;
mod attempt;
mod chain;
mod claims;
mod collect;
mod condition;
mod contest;
mod entry;
mod expr;
mod layout;
mod localnet;
mod masqueraded;
mod matches;
mod plan;
mod record;
mod reference;
mod remove;
mod search;
mod sets;
mod status;
mod subnet;
mod verify;

pub(crate) use apply::know;
pub(crate) use contest::contest;
pub(crate) use localnet::guard as guard_localnet;
pub(crate) use masqueraded::{addresses as masqueraded, holder as masquerader};
pub(crate) use sets::TABLE;
pub(crate) use status::is_present;

use crate::carrier::{Carrier, Context};
use crate::error::{Error, Result};
use crate::intent::{Intent, Kinds};
use crate::netfilter::{ApplyOptions, Hints};
use crate::owner::Owner;

/// The backend.
pub(crate) struct Nftables;

impl Carrier for Nftables {
    fn apply(
        &self,
        context: &mut Context<'_>,
        owner: &Owner,
        intents: &[Intent],
        options: &ApplyOptions<'_>,
    ) -> Result<()> {
        apply::apply(context, owner, intents, options)
    }

    fn remove(
        &self,
        context: &mut Context<'_>,
        owner: &Owner,
        kinds: Kinds,
        hints: &Hints,
    ) -> Result<()> {
        if !status::is_present(context.socket)? {
            return Ok(());
        }
        let own = remove::remove(context.socket, owner, kinds, hints);
        let theirs = reference::remove(context.socket, owner, kinds);
        Error::join([own, theirs].into_iter().filter_map(Result::err).collect())
    }

    fn verify(&self, context: &mut Context<'_>, owner: &Owner, intents: &[Intent]) -> Result<()> {
        verify::verify(context.socket, owner, intents)
    }

    fn collect(
        &self,
        context: &mut Context<'_>,
        network: &str,
        valid: &[Owner],
        kinds: Kinds,
    ) -> Result<()> {
        if !status::is_present(context.socket)? {
            return Ok(());
        }
        let own = collect::collect(context.socket, network, valid, kinds);
        let theirs = reference::collect(context.socket, network, valid, kinds);
        Error::join([own, theirs].into_iter().filter_map(Result::err).collect())
    }

    fn status(&self, context: &mut Context<'_>, kinds: Kinds) -> Result<()> {
        status::status(context.socket, kinds)
    }
}
