//! One writer at a time, host-wide, for each backend.
//!
//! "Look what is there, then write" is only right when nobody writes in between. The kernel can say that somebody did
//! (nf_tables), or not even that (iptables); so all of our own writers meet at a file of our own. (The lock of legacy
//! iptables, `/run/xtables.lock`, cannot be used: `iptables-restore` takes it itself.)

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::error::{Error, Result};

const DIRECTORY: &str = "/run/ferrule";
/// Longest text that is read back.
const TEXT_MAX: usize = 4096;

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: String,
    file: File,
}

impl Lock {
    /// Takes the backend's lock, waiting `timeout` at most.
    pub(crate) fn take(backend: &str, timeout: Duration) -> Result<Self> {
        let path = path(backend);
        let failed = |source| failed("open the lock file", &path, source);
        let file = create(&path).map_err(failed)?;
        match flock::acquire(file, timeout) {
            Ok(file) => Ok(Self { path, file }),
            Err(flock::Error::Io(source)) => Err(self::failed("lock", &path, source)),
            Err(held @ flock::Error::Held { .. }) => Err(Error::Busy {
                what: format!("the lock {path}"),
                reason: held.to_string(),
            }),
        }
    }

    /// Lets children keep the lock for as long as they live: a writer that is killed leaves the tool it started behind.
    pub(crate) fn share_with_children(&self) -> Result<()> {
        fcntl(&self.file, FcntlArg::F_SETFD(FdFlag::empty()))
            .map(drop)
            .map_err(|errno| failed("share", &self.path, errno.into()))
    }

    /// What the last holder left in the file; empty if it got to its end.
    pub(crate) fn read(&self) -> Result<String> {
        read(&self.file).map_err(|source| failed("read", &self.path, source))
    }

    /// Replaces the text in the file. A holder that is killed leaves it for the next one.
    pub(crate) fn write(&self, text: &str) -> Result<()> {
        self.file
            .set_len(0)
            .and_then(|()| self.file.write_all_at(text.as_bytes(), 0))
            .map_err(|source| failed("write", &self.path, source))
    }
}

/// What stands in the backend's lock file, whoever holds it. Empty where there is none.
pub(crate) fn peek(backend: &str) -> String {
    let file = File::open(path(backend));
    file.and_then(|file| read(&file)).unwrap_or_default()
}

fn path(backend: &str) -> String {
    format!("{DIRECTORY}/{backend}.lock")
}

fn create(path: &str) -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(DIRECTORY) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(0o600)
        .open(path)
}

fn read(file: &File) -> io::Result<String> {
    let mut buffer = [0; TEXT_MAX];
    let count = file.read_at(&mut buffer, 0)?;
    let text = buffer.get(..count).unwrap_or_default();
    Ok(String::from_utf8_lossy(text).into_owned())
}

fn failed(doing: &str, path: &str, source: io::Error) -> Error {
    Error::Io {
        what: format!("{doing} {path}"),
        source,
    }
}
