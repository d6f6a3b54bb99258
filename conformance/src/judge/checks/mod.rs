//! The checks, by group.

mod chaining;
mod concurrency;
mod delegation;
mod hostile;
mod lifecycle;
mod protocol;
mod results;
mod traffic;

use super::check::Check;

/// Every table.
pub fn tables() -> Vec<&'static [Check]> {
    let own: &[&[Check]] = &[
        chaining::CHECKS,
        delegation::CHECKS,
        traffic::CHECKS,
        concurrency::CHECKS,
        hostile::CHECKS,
    ];
    [protocol::TABLES, results::TABLES, lifecycle::TABLES, own].concat()
}
