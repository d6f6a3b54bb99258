//! Time since the machine was started. It goes on while the machine sleeps, as leases do, and nobody can set it.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment.
pub type Time = Duration;

/// This moment.
pub fn now() -> Time {
    clock_gettime(ClockId::CLOCK_BOOTTIME)
        .map(Duration::from)
        .unwrap_or_default()
}

/// What names this start of the machine; empty if the kernel does not tell.
pub fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}
