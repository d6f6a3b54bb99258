//! One at a time in a namespace.

use std::fs::File;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::netns::Netns;

/// A handle on a namespace whose file is locked (`flock(2)`) as long as this value lives: against others that do so too.
/// Those who look for something free in the namespace and then take it need that.
#[derive(Debug)]
pub struct Locked {
    handle: Handle,
    _lock: File,
}

impl Locked {
    /// Opens the namespace at `path` and locks it, waiting for at most `patience`. The file is the one that was opened, so
    /// none is ever made.
    ///
    /// # Errors
    /// As [`Netns::open`]; [`Error::Locked`] if somebody else holds the lock all the time.
    pub fn open(path: impl AsRef<Path>, patience: Duration) -> Result<Self> {
        let netns = Netns::open(path)?;
        let failed = |source| match source {
            flock::Error::Io(source) => Error::Io {
                what: "lock network namespace",
                object: netns.path().display().to_string(),
                source,
            },
            held => Error::Locked {
                path: netns.path().to_owned(),
                held: held.to_string(),
            },
        };
        let file = netns.as_fd().try_clone_to_owned();
        let file = file.map_err(|error| failed(error.into()))?;
        let lock = flock::acquire(file.into(), patience).map_err(failed)?;
        Ok(Self {
            handle: Handle::open(&netns)?,
            _lock: lock,
        })
    }
}

impl Deref for Locked {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}
