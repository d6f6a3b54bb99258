//! How this process was started, and how it waits for one that it started.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, ExitStatus};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A bit for each of the descriptors 0, 1 and 2 that the process was started without.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Rust's runtime opens `/dev/null` in place of a standard stream that is closed, before `main`: what is read is then empty,
/// and what is written is lost without an error. So this is looked at earlier.
extern "C" fn look() {
    let mut closed = 0;
    for descriptor in 0..3 {
        // SAFETY: F_GETFD takes no argument and touches no memory; it fails on a descriptor that is not open.
        let open = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        if open < 0 {
            closed |= 1 << descriptor;
        }
    }
    CLOSED.store(closed, Ordering::Relaxed);
}

// SAFETY: the section is an array of pointers to functions that are called before main with arguments that `look` does not
// take, which the C calling convention allows. It uses nothing of the Rust runtime: a system call and an atomic.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// Whether this process was started without that standard stream (0, 1 or 2).
#[must_use]
pub fn started_without(descriptor: RawFd) -> bool {
    (0..3).contains(&descriptor) && CLOSED.load(Ordering::Relaxed) & (1 << descriptor) != 0
}

/// Sets the two signals right whose disposition a caller may have left in a state that breaks a plugin.
///
/// With `SIGCHLD` ignored nobody can learn how a child ended. With `SIGXFSZ` at its default, writing past the limit of a file's
/// size (`ulimit -f`) kills the process half-way instead of failing.
pub fn set_signals_right() {
    // SAFETY: neither disposition runs code of ours, and nothing else in the process sets these two.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Waits for a child's end, but no longer than that; `None` if it still runs then. Without pidfds (Linux before 5.3) it waits
/// without end.
///
/// # Errors
/// What poll(2) or wait(2) say.
pub fn wait_at_most(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let Some(handle) = pidfd(child) else {
        return child.wait().map(Some);
    };
    let started = std::time::Instant::now();
    loop {
        let left = limit.saturating_sub(started.elapsed());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(
            &mut [PollFd::new(handle.as_fd(), PollFlags::POLLIN)],
            timeout,
        ) {
            Ok(0) => return child.try_wait(),
            Err(Errno::EINTR) => {}
            Ok(_) => return child.wait().map(Some),
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// A descriptor that is readable once the child has ended.
fn pidfd(child: &Child) -> Option<OwnedFd> {
    let none: libc::c_uint = 0;
    // SAFETY: pidfd_open takes two numbers and touches no memory. The child is not waited for yet, so its number is its own.
    let got = unsafe { libc::syscall(libc::SYS_pidfd_open, child.id(), none) };
    let raw = RawFd::try_from(got).ok().filter(|raw| *raw >= 0)?;
    // SAFETY: the kernel just gave us this descriptor, and nobody else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(raw) })
}
