//! STATUS: would an ADD find an address, and could it write the lease?

use std::fmt::Write;
use std::path::Path;

use ipam_store::{Options, RangeSet, Store, check_writable};

use crate::error::Error;

/// So many of the longest-standing owners are named when nothing is free.
const OLDEST: usize = 5;

/// Fails if no range set can hand out an address, or if no lease could be written.
pub(crate) fn check(dir: &Path, options: &Options, sets: &[RangeSet]) -> Result<(), Error> {
    check_writable(dir).map_err(Error::Unwritable)?;
    let Some(mut store) = Store::open_existing(dir, options)? else {
        return Ok(());
    };
    let usage = store.usage(sets)?;
    if usage.iter().any(|set| set.free) {
        return Ok(());
    }
    let mut details = String::new();
    for (index, (set, usage)) in sets.iter().zip(&usage).enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(
            details,
            "range set {index} ({set}) has {} lease{}; ",
            usage.leases,
            if usage.leases == 1 { "" } else { "s" }
        );
    }
    details.push_str("oldest:");
    for (address, holder) in store.oldest(OLDEST)? {
        let _ = write!(details, " {address} {holder},");
    }
    Err(Error::Full {
        details: format!(
            "{} in {}; DEL attachments that are gone, run GC, or widen a range",
            details.trim_end_matches(','),
            dir.display()
        ),
    })
}
