//! Guarding interfaces on which `route_localnet` is on.

use super::attempt::Attempt;
use super::entry::{Key, Slot};
use super::layout;
use super::sets::SetId;
use crate::carrier::Context;
use crate::error::Result;
use crate::netfilter::ApplyOptions;
use crate::nfnl::{Batch, Family};

/// See [`crate::Netfilter::guard_localnet`].
pub(crate) fn guard(context: &mut Context<'_>, ifname: &str) -> Result<()> {
    let what = format!("guard loopback addresses against {ifname}");
    let mut attempt = Attempt::new(ApplyOptions::default().timeout);
    loop {
        let mut batch = Batch::new();
        if attempt.layout || !layout::is_complete(context.socket, Family::Inet)? {
            layout::write(&mut batch, Family::Inet);
        }
        batch.push(
            Slot {
                set: SetId::Localnet,
                key: Key::name(ifname).0,
            }
            .add(0, &[], None),
        );
        match context.socket.commit(batch) {
            Ok(()) => return Ok(()),
            Err(refusal) => attempt.learn(refusal, &what, &Vec::new())?,
        }
    }
}
