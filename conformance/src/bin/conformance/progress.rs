//! The line that moves while a run goes on.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use conformance::judge::{Case, Events, Outcome};

/// Writes the progress line to standard error, if that is a terminal.
#[derive(Debug)]
pub struct Progress {
    wanted: bool,
    failed: AtomicUsize,
}

impl Progress {
    pub fn new() -> Self {
        Self {
            wanted: std::io::stderr().is_terminal(),
            failed: AtomicUsize::new(0),
        }
    }

    /// Takes the line away.
    pub fn clear(&self) {
        if self.wanted {
            eprint!("\r\x1b[K");
        }
    }
}

impl Events for Progress {
    fn done(&self, units: usize, of: usize, cases: &[Case]) {
        let bad = |case: &&Case| matches!(case.outcome, Outcome::Fail | Outcome::Error);
        let new = cases.iter().filter(bad).count();
        let failed = self.failed.fetch_add(new, Ordering::Relaxed) + new;
        if let (true, Some(last)) = (self.wanted, cases.last()) {
            eprint!(
                "\r\x1b[K[{units}/{of}] {failed} failed; {} {}",
                last.plugin, last.check
            );
            let _ = std::io::stderr().flush();
        }
    }
}
