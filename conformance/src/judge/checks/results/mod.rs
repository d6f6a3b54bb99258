//! What an ADD prints.

mod chained;
mod shape;
mod truth;

use crate::judge::check::Check;

/// Every table.
pub const TABLES: &[&[Check]] = &[shape::CHECKS, truth::CHECKS, chained::CHECKS];
