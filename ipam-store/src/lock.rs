//! The store's lock: `flock(2)` on the file `lock`, as the reference set takes it, but with a deadline.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fs2::FileExt;
use nix::fcntl::OFlag;

use crate::error::{Error, at};

pub(crate) const LOCK_FILE: &str = "lock";

/// Who holds a lock, as far as the kernel tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolder {
    /// The process that took it.
    pub pid: i32,
    /// Its command name; `None` when it has ended and a child keeps the lock.
    pub command: Option<String>,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Some(command) => write!(f, "process {} ({command})", self.pid),
            None => write!(f, "a child of process {}, which has ended", self.pid),
        }
    }
}

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
/// A free lock is taken at once. Otherwise one thread waits inside `flock(2)`: no polling, no signal handler. When time
/// runs out that thread stays behind until the lock comes free or the process ends, and gives the lock back at once.
///
/// # Errors
/// [`Error::Locked`] after `wait`, else the system's error.
pub(crate) fn acquire(file: File, dir: &Path, wait: Duration) -> Result<File, Error> {
    let path = dir.join(LOCK_FILE);
    match FileExt::try_lock_exclusive(&file) {
        Ok(()) => return Ok(file),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
        Err(e) => return Err(at("lock", &path)(e)),
    }
    let waiter = file.try_clone().map_err(at("open", &path))?;
    let (send, receive) = mpsc::sync_channel(0);
    thread::Builder::new()
        .name("lock".to_owned())
        .spawn(move || {
            let locked = loop {
                match FileExt::lock_exclusive(&waiter) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    other => break other,
                }
            };
            // Nobody receives any more after the deadline: dropping the file gives the lock back.
            let _ = send.send(locked.map(|()| waiter));
        })
        .map_err(at("wait for", &path))?;
    match receive.recv_timeout(wait) {
        Ok(locked) => locked.map_err(at("lock", &path)),
        Err(_) => Err(Error::Locked {
            holder: holder(&file),
            path,
            waited: wait,
        }),
    }
}

/// Looks the lock's holder up in `/proc/locks` (proc_locks(5)).
fn holder(file: &File) -> Option<LockHolder> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| holder_in(line, &inode))?;
    let command = fs::read_to_string(format!("/proc/{pid}/comm"))
        .ok()
        .map(|comm| comm.trim_end().to_owned());
    Some(LockHolder { pid, command })
}

/// One line is `<n>: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF`; waiters have `->` after the number.
/// Only the inode is compared: on btrfs and overlayfs the device differs from what stat(2) says.
fn holder_in(line: &str, inode: &str) -> Option<i32> {
    let mut words = line.split_ascii_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    let pid = words.nth(2)?.parse().ok()?;
    words.next()?.ends_with(inode).then_some(pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_proc_locks() {
        let held = "3: FLOCK  ADVISORY  WRITE 4711 08:01:9001 0 EOF";
        assert_eq!(holder_in(held, ":9001"), Some(4711));
        assert_eq!(holder_in(held, ":001"), None);
        assert_eq!(
            holder_in(
                "3: -> FLOCK  ADVISORY  WRITE 4712 08:01:9001 0 EOF",
                ":9001"
            ),
            None
        );
        assert_eq!(
            holder_in("3: POSIX  ADVISORY  WRITE 4711 08:01:9001 0 EOF", ":9001"),
            None
        );
        assert_eq!(holder_in("", ":9001"), None);
    }
}
