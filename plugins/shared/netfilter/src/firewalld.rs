//! The firewalld backend.

use crate::carrier::{Carrier, Context};
use crate::error::{Error, Result};
use crate::intent::{Intent, Kinds};
use crate::netfilter::{ApplyOptions, Hints};
use crate::owner::Owner;

/// The backend.
pub(crate) struct Firewalld;

fn unavailable() -> Error {
    Error::Unavailable {
        what: "the firewalld backend".into(),
        reason: "this build does not have it".into(),
    }
}

impl Carrier for Firewalld {
    fn apply(
        &self,
        _: &mut Context<'_>,
        _: &Owner,
        _: &[Intent],
        _: &ApplyOptions<'_>,
    ) -> Result<()> {
        Err(unavailable())
    }

    fn remove(&self, context: &mut Context<'_>, _: &Owner, _: Kinds, _: &Hints) -> Result<()> {
        context.warnings.push(unavailable().to_string());
        Ok(())
    }

    fn verify(&self, _: &mut Context<'_>, _: &Owner, _: &[Intent]) -> Result<()> {
        Err(unavailable())
    }

    fn collect(&self, context: &mut Context<'_>, _: &str, _: &[Owner], _: Kinds) -> Result<()> {
        context.warnings.push(unavailable().to_string());
        Ok(())
    }

    fn status(&self, _: &mut Context<'_>, _: Kinds) -> Result<()> {
        Err(unavailable())
    }
}
