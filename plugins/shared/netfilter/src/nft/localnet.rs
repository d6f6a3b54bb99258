//! Guarding the host's loopback services where `route_localnet` is on.

use super::attempt::Attempt;
use super::layout;
use crate::carrier::Context;
use crate::error::Result;
use crate::netfilter::ApplyOptions;
use crate::nfnl::{Batch, Family};

/// See [`crate::Netfilter::guard_localnet`]. The guard is in the fixed part of the table.
pub(crate) fn guard(context: &mut Context<'_>) -> Result<()> {
    let mut attempt = Attempt::new(ApplyOptions::default().timeout);
    while !layout::is_complete(context.socket, Family::Inet)? {
        let mut batch = Batch::new();
        layout::write(&mut batch, Family::Inet);
        if let Err(refusal) = context.socket.commit(batch) {
            attempt.learn(refusal, "guard loopback addresses", &Vec::new())?;
        }
    }
    Ok(())
}
