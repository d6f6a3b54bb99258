//! Lock files that are waited for with a deadline, and whose holder has a name: `flock(2)`.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use fs2::FileExt;

/// Why a lock could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Somebody held it all the time; trying again later may help.
    #[error("still held by {by} after {secs:.1}s", by = describe(.holder.as_ref()), secs = .waited.as_secs_f32())]
    Held {
        /// Who holds it, if the kernel tells.
        holder: Option<Holder>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Who holds a lock, as far as the kernel tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process that took it.
    pub pid: i32,
    /// Its command name; `None` when it has ended and a child keeps the lock.
    pub command: Option<String>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.command {
            Some(command) => write!(f, "process {} ({command})", self.pid),
            None => write!(f, "a child of process {}, which has ended", self.pid),
        }
    }
}

fn describe(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "an unknown process".to_owned(), ToString::to_string)
}

/// Takes the exclusive lock, waiting at most `wait`. It is given back when the file is dropped.
///
/// A free lock is taken at once. Otherwise one thread waits inside `flock(2)`: no polling, no signal handler. When time
/// runs out that thread stays behind until the lock comes free or the process ends, and gives the lock back at once.
///
/// # Errors
/// [`Error::Held`] after `wait`, else the system's error.
pub fn acquire(file: File, wait: Duration) -> Result<File, Error> {
    match FileExt::try_lock_exclusive(&file) {
        Ok(()) => return Ok(file),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
        Err(e) => return Err(e.into()),
    }
    let waiter = file.try_clone()?;
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
        })?;
    match receive.recv_timeout(wait) {
        Ok(locked) => Ok(locked?),
        Err(_) => Err(Error::Held {
            holder: holder(&file),
            waited: wait,
        }),
    }
}

/// Looks the lock's holder up in `/proc/locks` (proc_locks(5)).
fn holder(file: &File) -> Option<Holder> {
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| holder_in(line, &inode))?;
    let command = fs::read_to_string(format!("/proc/{pid}/comm"))
        .ok()
        .map(|comm| comm.trim_end().to_owned());
    Some(Holder { pid, command })
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
    use std::time::Instant;

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

    #[test]
    fn a_lock_is_waited_for_with_a_deadline() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || File::open(file.path()).unwrap();
        let held = acquire(open(), Duration::ZERO).unwrap();
        let begin = Instant::now();
        let error = acquire(open(), Duration::from_millis(30)).unwrap_err();
        assert!(begin.elapsed() >= Duration::from_millis(30));
        let Error::Held { holder, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(
            holder.map(|holder| holder.pid),
            i32::try_from(std::process::id()).ok()
        );
        drop(held);
        acquire(open(), Duration::from_secs(10)).unwrap();
    }
}
