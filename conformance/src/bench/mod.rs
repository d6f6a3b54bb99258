//! How long lists take, ours against another plugin directory, on one machine in one run.
//!
//! Both kinds run in sandboxes of their own and take turns, so that whatever else the machine
//! does hits both. Times are those of a runtime: from starting the first plugin of a list until
//! the last one is gone.

mod measure;
pub mod scale;
mod start_up;
mod table;

pub use measure::{Cycle, Lap, Setting, cycles, process_counts};
pub use start_up::{StartUp, start_up};
pub use table::{Row, list_table, start_up_table};

use std::time::Duration;

/// The middle of some times; zero of none.
#[must_use]
pub fn median(times: &[Duration]) -> Duration {
    let mut sorted = times.to_vec();
    sorted.sort();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}
