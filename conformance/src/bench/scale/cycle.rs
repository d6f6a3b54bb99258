//! One ADD, CHECK and DEL, by the clock and by the processor.

use std::ffi::OsString;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use serde::{Deserialize, Serialize};

use super::crowd::Crowd;
use crate::error::{Context, Result};

/// What one command along a list cost.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Cost {
    /// By the clock, from starting the first plugin until the last is gone.
    pub wall: Duration,
    /// Processor time of all programs that ran for it, user and system.
    pub cpu: Duration,
    /// Whether every plugin reported success.
    pub ok: bool,
}

/// The three commands, in their order.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub struct Cycle {
    /// Attach.
    pub add: Cost,
    /// Compare.
    pub check: Cost,
    /// Detach.
    pub del: Cost,
}

impl Crowd<'_> {
    /// Attaches, checks and detaches one more container, with every plugin under a `wrapper` if
    /// there is one.
    ///
    /// # Errors
    /// When its namespace cannot be made.
    pub fn cycle(&mut self, wrapper: &[OsString]) -> Result<Cycle> {
        let mut one = self.newcomer()?;
        let runtime = self.runtime.clone().under(wrapper);
        let network = &self.network;
        let add = cost(|| runtime.add(network, &mut one.attachment).is_ok())?;
        let check = cost(|| runtime.check(network, &one.attachment).is_ok())?;
        let del = cost(|| runtime.del(network, &one.attachment).is_ok())?;
        Ok(Cycle { add, check, del })
    }
}

/// Measures what this process's children do meanwhile.
pub(super) fn cost(work: impl FnOnce() -> bool) -> Result<Cost> {
    let before = cpu_of_children()?;
    let started = Instant::now();
    let ok = work();
    let wall = started.elapsed();
    Ok(Cost {
        wall,
        cpu: cpu_of_children()?.saturating_sub(before),
        ok,
    })
}

fn cpu_of_children() -> Result<Duration> {
    let usage =
        getrusage(UsageWho::RUSAGE_CHILDREN).doing(|| "read the resources that children used")?;
    let time = usage.user_time() + usage.system_time();
    let micros = u64::try_from(time.tv_sec() * 1_000_000 + time.tv_usec()).unwrap_or(0);
    Ok(Duration::from_micros(micros))
}
