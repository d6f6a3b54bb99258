//! One writer at a time, host-wide.
//!
//! "Look whether a rule is there, then add it" is only right when nobody adds it in between. Neither iptables-nft
//! nor the reference set has a lock for that, so all of our own writers meet at a file of our own. (The lock of
//! legacy iptables, `/run/xtables.lock`, cannot be used: `iptables-restore` takes it itself.)

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::sync::mpsc;
use std::time::Duration;

use nix::fcntl::{Flock, FlockArg};

use crate::error::{Error, Result};

const DIRECTORY: &str = "/run/ferrule";
const FILE: &str = "/run/ferrule/iptables.lock";

/// Held until dropped.
pub(crate) struct Lock {
    _file: Flock<File>,
}

impl Lock {
    /// Takes the lock, waiting `timeout` at most.
    pub(crate) fn take(timeout: Duration) -> Result<Self> {
        let file = open().map_err(|source| Error::Io {
            what: format!("open the lock file {FILE}"),
            source,
        })?;
        match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => Ok(Self { _file: file }),
            Err((file, nix::errno::Errno::EWOULDBLOCK)) => wait(file, timeout),
            Err((_, errno)) => Err(failed(errno)),
        }
    }
}

fn open() -> io::Result<File> {
    match DirBuilder::new().mode(0o700).create(DIRECTORY) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(FILE)
}

/// A thread waits in the kernel; nobody polls. If it gets the lock after the deadline it finds nobody to give it to
/// and lets go again.
fn wait(file: File, timeout: Duration) -> Result<Lock> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let waiter = move || {
        let _ = sender.send(Flock::lock(file, FlockArg::LockExclusive));
    };
    std::thread::Builder::new()
        .name("iptables-lock".to_owned())
        .spawn(waiter)
        .map_err(|source| Error::Io {
            what: "start a thread".to_owned(),
            source,
        })?;
    match receiver.recv_timeout(timeout) {
        Ok(Ok(file)) => Ok(Lock { _file: file }),
        Ok(Err((_, errno))) => Err(failed(errno)),
        Err(_) => Err(Error::Busy {
            what: format!("the iptables lock {FILE}"),
            reason: format!(
                "another plugin held it for {} seconds",
                timeout.as_secs_f32()
            ),
        }),
    }
}

fn failed(errno: nix::errno::Errno) -> Error {
    Error::Io {
        what: format!("lock {FILE}"),
        source: errno.into(),
    }
}
