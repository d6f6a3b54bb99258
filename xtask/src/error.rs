//! What can go wrong.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Why a task did not get done.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// Why it did not work.
        source: io::Error,
    },
    /// A program that was started did not succeed.
    #[error("{program} failed: {status}")]
    Program {
        /// Its command line.
        program: String,
        /// How it ended.
        status: ExitStatus,
    },
    /// A program's answer cannot be understood.
    #[error("cannot understand what {program} says: {why}")]
    Answer {
        /// The program.
        program: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A target for which no name of the architecture is known.
    #[error("no name is known for the architecture of target {0:?}; add it to `Arch::of`")]
    Arch(String),
    /// Two builds of one source differ.
    #[error("{} differs between two builds of the same source, first in byte {at}", file.display())]
    Differs {
        /// The file.
        file: PathBuf,
        /// Where, counted from 0.
        at: usize,
    },
}

/// Says what was tried when the system refuses.
pub trait Doing<T> {
    /// The same, with words in front.
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::System {
            what: what(),
            source,
        })
    }
}
