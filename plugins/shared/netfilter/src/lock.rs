//! One writer at a time, host-wide, for each backend.
//!
//! "Look what is there, then write" is only right when nobody writes in between. The kernel can say that somebody did
//! (nf_tables), or not even that (iptables); so all of our own writers meet at a file of our own. (The lock of legacy
//! iptables, `/run/xtables.lock`, cannot be used: `iptables-restore` takes it itself.)

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::mpsc;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use crate::error::{Error, Result};

const DIRECTORY: &str = "/run/ferrule";

/// Held until dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: Flock<File>,
}

impl Lock {
    /// Takes the backend's lock, waiting `timeout` at most.
    pub(crate) fn take(backend: &'static str, timeout: Duration) -> Result<Self> {
        let path = format!("{DIRECTORY}/{backend}.lock");
        let file = open(&path).map_err(|source| Error::Io {
            what: format!("open the lock file {path}"),
            source,
        })?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Self { _file: file }),
            Err((file, nix::errno::Errno::EWOULDBLOCK)) => wait(file, &path, timeout),
            Err((_, errno)) => Err(failed(&path, errno)),
        }
    }
}

fn open(path: &str) -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(DIRECTORY) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(path)
}

/// A thread waits in the kernel; nobody polls. If it gets the lock after the deadline it finds nobody to give it to
/// and lets go again.
fn wait(file: File, path: &str, timeout: Duration) -> Result<Lock> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let waiter = move || {
        let _ = sender.send(Flock::lock(file, FlockArg::LockExclusive));
    };
    std::thread::Builder::new()
        .name("lock".to_owned())
        .spawn(waiter)
        .map_err(|source| Error::Io {
            what: "start a thread".to_owned(),
            source,
        })?;
    match receiver.recv_timeout(timeout) {
        Ok(Ok(file)) => Ok(Lock { _file: file }),
        Ok(Err((_, errno))) => Err(failed(path, errno)),
        Err(_) => Err(Error::Busy {
            what: format!("the lock {path}"),
            reason: format!(
                "another plugin held it for {} seconds",
                timeout.as_secs_f32()
            ),
        }),
    }
}

fn failed(path: &str, errno: nix::errno::Errno) -> Error {
    Error::Io {
        what: format!("lock {path}"),
        source: errno.into(),
    }
}
