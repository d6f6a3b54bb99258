//! The proof that a process stands inside a sandbox.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::{Context, Error, Result};

/// Directory for scratch files inside a sandbox; gone with it.
pub const PRIVATE_TMP: &str = "/run/sandbox/tmp";

const MARKER: &str = "/run/sandbox/netns";

/// A token that can only be had inside a sandbox. What changes the network asks for one.
#[derive(Debug)]
pub struct Sandbox {
    _private: (),
}

impl Sandbox {
    /// Checks that this process is inside a sandbox, in the network namespace made for it.
    ///
    /// # Errors
    /// [`Error::NotInSandbox`] anywhere else.
    pub fn require() -> Result<Self> {
        let recorded = fs::read_to_string(MARKER).map_err(|_| Error::NotInSandbox)?;
        if recorded == own_netns()? {
            Ok(Self { _private: () })
        } else {
            Err(Error::NotInSandbox)
        }
    }

    /// Writes the marker; called once while the sandbox is built.
    pub(super) fn mark() -> Result<()> {
        fs::write(MARKER, own_netns()?).doing(|| format!("write {MARKER}"))
    }
}

fn own_netns() -> Result<String> {
    let path = Path::new("/proc/self/ns/net");
    let meta = fs::metadata(path).doing(|| format!("look at {}", path.display()))?;
    Ok(format!("{}:{}", meta.dev(), meta.ino()))
}
