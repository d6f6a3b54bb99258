//! Which boot the machine is in, and in which one the store was last used.
//!
//! No network namespace outlives a reboot, so a lease of an earlier boot belongs to nobody. The file `.ferrule-boot`
//! beside the leases holds `boot <boot id>\n` of the boot in which leases were last swept (the space keeps it from ever
//! reading as a container's id). When it names another boot, leases last written before this boot began are stale. No
//! such file, or an unreadable one, means that nothing is known: nothing is stale then.

use std::fs;
use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};

pub(crate) const BOOT_FILE: &str = ".ferrule-boot";

/// The present boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The kernel's random id of this boot.
    pub id: String,
    /// When it began.
    pub since: SystemTime,
}

impl Boot {
    /// Asks the kernel (random(4), clock_gettime(2)); `None` where it does not say.
    #[must_use]
    pub fn current() -> Option<Self> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let up = Duration::from(clock_gettime(ClockId::CLOCK_BOOTTIME).ok()?);
        Some(Self {
            id: id.trim().to_owned(),
            since: SystemTime::now().checked_sub(up)?,
        })
    }

    pub(crate) fn marker(&self) -> String {
        format!("boot {}\n", self.id)
    }
}

/// The boot id in a marker file's content.
pub(crate) fn marked(content: &[u8]) -> Option<&str> {
    let id = std::str::from_utf8(content).ok()?.strip_prefix("boot ")?;
    let id = id.strip_suffix('\n')?;
    (!id.is_empty()).then_some(id)
}
