//! Would `apply` work?

use super::attempt;
use super::layout;
use crate::error::Result;
use crate::intent::Kinds;
use crate::nfnl::{Batch, Family, Socket};

/// Fails when the kernel lacks what these kinds need, or we lack the permission: it is asked to work through the
/// whole layout and then told to forget it.
pub(super) fn status(socket: &mut Socket, kinds: Kinds) -> Result<()> {
    let mut batch = Batch::dry_run();
    layout::write(&mut batch, Family::Inet);
    if kinds.intersects(Kinds::GUARD_MAC | Kinds::CONFINE) {
        layout::write(&mut batch, Family::Bridge);
    }
    socket
        .commit(batch)
        .map_err(|refusal| attempt::unavailable(refusal, &format!("keep {kinds} rules")))
}
