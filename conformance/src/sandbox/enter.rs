//! Making the namespaces, from a process that has only one thread.

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Command;

use nix::errno::Errno;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use nix::unistd::{Gid, Uid, getegid, geteuid};

use super::marker::{PRIVATE_TMP, Sandbox};
use super::mounts;
use crate::error::{Context, Error, Result};

/// Argument by which the sandbox binary tells its second half from its first.
pub const INNER: &str = "--inside-sandbox";

/// Enters new namespaces, runs `command` there as their first process and returns its exit code
/// (128 + signal when it was killed).
///
/// # Errors
/// [`Error::NoNamespaces`] when the system forbids them; otherwise what failed while furnishing.
pub fn enter(command: &[OsString]) -> Result<u8> {
    let (uid, gid) = (geteuid(), getegid());
    separate(uid, gid)?;
    mount(
        None::<&str>,
        "/",
        None::<&str>,
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        None::<&str>,
    )
    .map_err(|errno| Error::NoNamespaces {
        source: errno.into(),
    })?;
    mounts::furnish()?;
    Sandbox::mark()?;

    // A process namespace begins with the next child, which is why this is not the last step.
    let status = Command::new("/proc/self/exe")
        .arg(INNER)
        .args(command)
        .env("TMPDIR", PRIVATE_TMP)
        .status()
        .doing(|| "start the sandbox's first process")?;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    Ok(code
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX))
}

/// The second half, as first process of the new process namespace: becomes `command`.
///
/// # Errors
/// Returns only when the command cannot be started.
pub fn finish(command: &[OsString]) -> Result<Infallible> {
    // Without this an interrupted caller would leave the sandbox running.
    prctl::set_pdeathsig(Signal::SIGKILL).doing(|| "tie the sandbox to its caller")?;
    mount_own_proc()?;
    let (program, arguments) = command.split_first().ok_or_else(|| Error::Missing {
        what: "a command to run in the sandbox".into(),
    })?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).doing(|| format!("start {}", program.display()))
}

fn separate(uid: Uid, gid: Gid) -> Result<()> {
    let own = CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID;
    if uid.is_root() {
        match unshare(own) {
            // Root without the capability, as in most containers: try as anybody else would.
            Err(Errno::EPERM) => {}
            other => return other.doing(|| "make namespaces"),
        }
    }
    let refused = |errno: Errno| Error::NoNamespaces {
        source: errno.into(),
    };
    // The user namespace first, and its maps: what the kernel makes for a network namespace gets
    // its owner by them.
    unshare(CloneFlags::CLONE_NEWUSER).map_err(refused)?;
    let write = |file: &str, text: String| {
        fs::write(file, text).map_err(|source| Error::NoNamespaces { source })
    };
    write("/proc/self/setgroups", "deny".into())?;
    write("/proc/self/uid_map", format!("0 {uid} 1"))?;
    write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    unshare(own).map_err(refused)
}

/// Gives the process namespace its own `/proc`. Where parts of `/proc` are masked (inside most
/// containers) the kernel refuses; the outer one serves as well, only with other numbers.
fn mount_own_proc() -> Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    match mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>) {
        Err(Errno::EPERM) => Ok(()),
        other => other.doing(|| "mount /proc"),
    }
}
