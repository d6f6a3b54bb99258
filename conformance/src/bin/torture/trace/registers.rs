//! The registers of a stopped process, as far as a system call concerns them.

use nix::errno::Errno;
use nix::unistd::Pid;

/// A system call as the processor sees it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its number.
    pub number: i64,
    /// Its arguments.
    pub arguments: [u64; 6],
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use super::{Errno, Frame, Pid};
    use nix::sys::ptrace;

    /// The call that a process is about to make.
    pub fn entering(pid: Pid) -> nix::Result<Frame> {
        let r = ptrace::getregs(pid)?;
        Ok(Frame {
            number: r.orig_rax.cast_signed(),
            arguments: [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9],
        })
    }

    /// Makes the kernel skip the call.
    pub fn skip(pid: Pid) -> nix::Result<()> {
        let mut r = ptrace::getregs(pid)?;
        r.orig_rax = u64::MAX;
        ptrace::setregs(pid, r)
    }

    /// What the call returned; negative for an error.
    pub fn returned(pid: Pid) -> nix::Result<i64> {
        Ok(ptrace::getregs(pid)?.rax.cast_signed())
    }

    /// Makes the call return an error.
    pub fn fail(pid: Pid, errno: Errno) -> nix::Result<()> {
        let mut r = ptrace::getregs(pid)?;
        r.rax = (-i64::from(errno as i32)).cast_unsigned();
        ptrace::setregs(pid, r)
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod machine {
    //! The names of registers are known for one architecture so far.
    use super::{Errno, Frame, Pid};

    pub fn entering(_: Pid) -> nix::Result<Frame> {
        Err(Errno::ENOSYS)
    }

    pub fn skip(_: Pid) -> nix::Result<()> {
        Err(Errno::ENOSYS)
    }

    pub fn returned(_: Pid) -> nix::Result<i64> {
        Err(Errno::ENOSYS)
    }

    pub fn fail(_: Pid, _: Errno) -> nix::Result<()> {
        Err(Errno::ENOSYS)
    }
}

pub use machine::{entering, fail, returned, skip};
