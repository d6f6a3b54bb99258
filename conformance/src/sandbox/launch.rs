//! Starting a command in a sandbox.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};

/// Starts commands through the `sandbox` binary.
#[derive(Clone, Debug)]
pub struct Launcher {
    binary: PathBuf,
}

impl Launcher {
    /// A launcher that uses this `sandbox` binary.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
        }
    }

    /// Finds the `sandbox` binary in the directory of the running program.
    ///
    /// # Errors
    /// [`Error::Missing`] when it was not built.
    pub fn beside(program: &Path) -> Result<Self> {
        let binary = program.with_file_name("sandbox");
        if binary.is_file() {
            Ok(Self::new(binary))
        } else {
            Err(Error::Missing {
                what: format!("{} (cargo build -p conformance makes it)", binary.display()),
            })
        }
    }

    /// A command that will run `program` in a sandbox of its own.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(program);
        command
    }
}
