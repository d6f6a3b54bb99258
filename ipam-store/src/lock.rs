//! The store's lock: `flock(2)` on the file `lock`, as the reference set takes it, but with a deadline.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use nix::fcntl::OFlag;

use crate::error::{Error, at};

pub(crate) const LOCK_FILE: &str = "lock";

/// Opens or creates the lock file: read-only, mode 0750, like the reference set.
pub(crate) fn open_file(dir: &Path) -> io::Result<File> {
    let path = dir.join(LOCK_FILE);
    // Opening a pipe that somebody put there would wait for its other end.
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(&path);
    match opened {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    // std refuses to create a file that is opened for reading only; `append` never writes by itself.
    OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o750)
        .open(&path)
}

/// Takes the lock, waiting at most `wait`. It is given back when the file is dropped.
///
/// # Errors
/// [`Error::Locked`] after `wait`, else the system's error.
pub(crate) fn acquire(file: File, dir: &Path, wait: Duration) -> Result<File, Error> {
    let path = dir.join(LOCK_FILE);
    flock::acquire(file, wait).map_err(|error| match error {
        flock::Error::Held { holder, waited } => Error::Locked {
            path,
            holder,
            waited,
        },
        flock::Error::Io(source) => at("lock", &path)(source),
    })
}
