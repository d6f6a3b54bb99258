//! Would `apply` work?

use super::attempt;
use super::layout;
use crate::error::Result;
use crate::intent::Kinds;
use crate::nfnl::{Batch, Family, Socket};

/// Whether this kernel has nf_tables at all.
pub(crate) fn is_present(socket: &mut Socket) -> Result<bool> {
    // What nfnetlink says to messages for a subsystem it does not know.
    const UNKNOWN: [i32; 3] = [
        22, /* EINVAL */
        95, /* EOPNOTSUPP */
        93, /* EPROTONOSUPPORT */
    ];
    match socket.generation() {
        Ok(_) => Ok(true),
        Err(error) if error.errno().is_some_and(|errno| UNKNOWN.contains(&errno)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Fails when the kernel lacks what these kinds need, or we lack the permission.
///
/// Tables that are complete prove everything. Without them the kernel is asked to work through the whole layout and
/// then told to forget it.
pub(super) fn status(socket: &mut Socket, kinds: Kinds) -> Result<()> {
    let mut families = vec![Family::Inet];
    if kinds.intersects(Kinds::GUARD_MAC | Kinds::CONFINE) {
        families.push(Family::Bridge);
    }
    let mut batch = Batch::dry_run();
    for family in families {
        if !layout::is_complete(socket, family)? {
            layout::write(&mut batch, family);
        }
    }
    let what = format!("keep {kinds} rules");
    socket
        .commit(batch)
        .map_err(|refusal| attempt::unavailable(refusal, &what))
}
