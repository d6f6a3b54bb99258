//! The commands one after the other.

mod add;
mod check;
mod del;
mod gc;
mod leavings;
mod netns;
mod status;

use crate::judge::check::Check;

pub use leavings::nothing_left;

/// Every table.
pub const TABLES: &[&[Check]] = &[
    add::CHECKS,
    del::CHECKS,
    leavings::CHECKS,
    check::CHECKS,
    gc::CHECKS,
    status::CHECKS,
    netns::CHECKS,
];
