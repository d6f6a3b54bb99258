//! The nftables backend: our own tables, spoken over netlink.

use crate::carrier::{Carrier, Context};
use crate::error::{Error, Result};
use crate::intent::{Intent, Kinds};
use crate::netfilter::{ApplyOptions, Hints};
use crate::owner::Owner;

/// The backend.
pub(crate) struct Nftables;

fn unavailable() -> Error {
    Error::Unavailable {
        what: "the nftables backend".into(),
        reason: "this build does not have it".into(),
    }
}

impl Carrier for Nftables {
    fn apply(
        &self,
        _: &mut Context<'_>,
        _: &Owner,
        _: &[Intent],
        _: &ApplyOptions<'_>,
    ) -> Result<()> {
        Err(unavailable())
    }

    fn remove(&self, _: &mut Context<'_>, _: &Owner, _: Kinds, _: &Hints) -> Result<()> {
        Err(unavailable())
    }

    fn verify(&self, _: &mut Context<'_>, _: &Owner, _: &[Intent]) -> Result<()> {
        Err(unavailable())
    }

    fn collect(&self, _: &mut Context<'_>, _: &str, _: &[Owner], _: Kinds) -> Result<()> {
        Err(unavailable())
    }

    fn status(&self, context: &mut Context<'_>, _: Kinds) -> Result<()> {
        context.socket.generation()?;
        Err(unavailable())
    }
}

/// See [`crate::Netfilter::guard_localnet`].
pub(crate) fn guard_localnet(_: &mut Context<'_>, _: &str) -> Result<()> {
    Err(unavailable())
}
