//! The boundary between [`crate::Netfilter`] and its backends.

use crate::error::Result;
use crate::intent::{Intent, Kinds};
use crate::netfilter::{ApplyOptions, Hints};
use crate::nfnl::Socket;
use crate::owner::Owner;

/// What every call of a backend gets.
pub(crate) struct Context<'a> {
    /// The socket of the host's network namespace.
    pub socket: &'a mut Socket,
    /// Things worth telling a human that are no failure (a missing tool during a removal, say).
    pub warnings: &'a mut Vec<String>,
}

/// A backend: the lifecycle of everything it leaves behind.
pub(crate) trait Carrier {
    /// Makes everything wanted or nothing. Repeating it for the same owner replaces what the owner had of these kinds.
    fn apply(
        &self,
        context: &mut Context<'_>,
        owner: &Owner,
        intents: &[Intent],
        options: &ApplyOptions<'_>,
    ) -> Result<()>;

    /// Removes all that the owner has of these kinds, the reference set's objects included. Nothing there is success;
    /// so is a missing tool, as a warning.
    fn remove(
        &self,
        context: &mut Context<'_>,
        owner: &Owner,
        kinds: Kinds,
        hints: &Hints,
    ) -> Result<()>;

    /// Fails with the first thing that is missing. Changes nothing.
    fn verify(&self, context: &mut Context<'_>, owner: &Owner, intents: &[Intent]) -> Result<()>;

    /// Removes what belongs to the network but to none of these owners.
    fn collect(
        &self,
        context: &mut Context<'_>,
        network: &str,
        valid: &[Owner],
        kinds: Kinds,
    ) -> Result<()>;

    /// Fails when `apply` of these kinds would fail for want of a tool, a feature or a permission.
    fn status(&self, context: &mut Context<'_>, kinds: Kinds) -> Result<()>;
}
