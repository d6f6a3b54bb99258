//! The loop that follows a program and everything it starts (ptrace(2)).

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::process::Command;

use conformance::error::Context;
use conformance::{Error, Result};
use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::calls::{Call, describe};
use super::messages;
use super::plan::{Act, Plan};
use super::registers::{self, Frame};
use super::report::Report;

/// Operation of a `ptrace_syscall_info` at the beginning of a call (`linux/ptrace.h`).
const ENTRY: u8 = 1;
/// The same at its end.
const EXIT: u8 = 2;

/// Follows `program` to its end: the exit status it had and what happened.
pub fn trace(plan: &Plan, stdout: Option<&Path>, program: &Path) -> Result<(u8, Report)> {
    let root = start(program, stdout)?;
    let mut tracer = Tracer {
        plan,
        root,
        status: 0,
        threads: HashMap::new(),
        report: Report::default(),
        refused: None,
    };
    tracer.threads.insert(root, State::default());
    tracer.follow()?;
    Ok((tracer.status, tracer.report))
}

/// Starts the program, stopped at its first instruction.
fn start(program: &Path, stdout: Option<&Path>) -> Result<Pid> {
    let starting = || format!("start {} to trace it", program.display());
    let mut command = Command::new("/proc/self/exe");
    command.arg("traced").arg(program);
    if let Some(file) = stdout {
        let opened = File::options().write(true).open(file);
        command.stdout(opened.doing(|| format!("open {}", file.display()))?);
    }
    let child = command.spawn().doing(starting)?;
    let id = i32::try_from(child.id()).unwrap_or_default();
    let root = Pid::from_raw(id);
    match waitpid(root, None).doing(starting)? {
        WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
        other => {
            return Err(Error::unexpected(
                "a program that can be traced",
                format!("{other:?}"),
            ));
        }
    }
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(root, options).doing(starting)?;
    ptrace::syscall(root, None).doing(starting)?;
    Ok(root)
}

/// A thread that is followed.
#[derive(Default)]
struct State {
    /// The call it is in.
    call: Option<Frame>,
    /// The error that this call is going to give.
    failing: Option<Errno>,
}

struct Tracer<'a> {
    plan: &'a Plan,
    root: Pid,
    status: u8,
    threads: HashMap<Pid, State>,
    report: Report,
    /// Sequence number of the message that the kernel refuses.
    refused: Option<u32>,
}

impl Tracer<'_> {
    fn follow(&mut self) -> Result<()> {
        loop {
            let event = match waitpid(None, Some(WaitPidFlag::__WALL)) {
                Err(Errno::ECHILD) => return Ok(()),
                Err(Errno::EINTR) => continue,
                other => other.doing(|| "wait for what is traced")?,
            };
            match event {
                WaitStatus::Exited(pid, code) => {
                    self.ended(pid, u8::try_from(code).unwrap_or(u8::MAX))
                }
                WaitStatus::Signaled(pid, signal, _) => self.ended(pid, 128 + signal as u8),
                WaitStatus::PtraceSyscall(pid) => {
                    self.at_call(pid)?;
                    resume(pid, None)?;
                }
                // A new thread starts with a stop that nobody sent.
                WaitStatus::Stopped(pid, signal) => {
                    let known = self.threads.contains_key(&pid);
                    self.threads.entry(pid).or_default();
                    resume(pid, known.then_some(signal))?;
                }
                WaitStatus::PtraceEvent(pid, ..) => resume(pid, None)?,
                _ => {}
            }
        }
    }

    fn ended(&mut self, pid: Pid, status: u8) {
        self.threads.remove(&pid);
        if pid == self.root {
            self.status = status;
        }
    }

    /// A thread stands at the beginning or at the end of a call.
    fn at_call(&mut self, pid: Pid) -> Result<()> {
        let stage = match ptrace::syscall_info(pid) {
            // It was killed while it stood there.
            Err(Errno::ESRCH) => return Ok(()),
            other => other.doing(|| "look at a traced call")?.op,
        };
        let outcome = match stage {
            ENTRY => self.enter(pid),
            EXIT => self.leave(pid),
            _ => Ok(()),
        };
        match outcome {
            Err(Errno::ESRCH) => Ok(()),
            other => other.doing(|| "trace a call"),
        }
    }

    fn enter(&mut self, pid: Pid) -> nix::Result<()> {
        let frame = registers::entering(pid)?;
        self.threads.entry(pid).or_default().call = Some(frame);
        self.report.count += 1;
        if self.plan.act == Act::Count {
            self.report.calls.push(Call::of(pid, &frame));
        }
        if matches!(self.plan.act, Act::Count | Act::Refuse(_)) {
            self.look_at_messages(pid, &frame)?;
        }
        if self.is_time(pid) {
            self.fire(pid, &frame)?;
        }
        Ok(())
    }

    /// Whether the plan is for this call.
    fn is_time(&self, pid: Pid) -> bool {
        match self.plan.act {
            Act::Refuse(_) => false,
            Act::KillChild => {
                let waited = self.report.count >= self.plan.at;
                waited && pid != self.root && self.report.fired.is_none()
            }
            _ => self.report.count == self.plan.at,
        }
    }

    fn fire(&mut self, pid: Pid, frame: &Frame) -> nix::Result<()> {
        let what = format!(
            "{} at call {}, {}",
            self.plan,
            self.report.count,
            describe(pid, frame)
        );
        match self.plan.act {
            Act::KillAll => self.signal_all(Signal::SIGKILL),
            Act::KillCaller | Act::KillChild => drop(kill(pid, Signal::SIGKILL)),
            Act::Terminate => self.signal_all(Signal::SIGTERM),
            Act::Fail(errno) => {
                registers::skip(pid)?;
                self.threads.entry(pid).or_default().failing = Some(errno);
            }
            Act::Count | Act::Refuse(_) => return Ok(()),
        }
        self.report.fired = Some(what);
        Ok(())
    }

    /// Whoever is gone already needs no signal.
    fn signal_all(&self, signal: Signal) {
        for pid in self.threads.keys() {
            let _ = kill(*pid, signal);
        }
    }

    /// Counts what is sent to the kernel, and spoils the message that is to be refused.
    fn look_at_messages(&mut self, pid: Pid, frame: &Frame) -> nix::Result<()> {
        for message in messages::sent(pid, frame) {
            self.report.messages += 1;
            if self.report.messages != self.plan.at || !matches!(self.plan.act, Act::Refuse(_)) {
                continue;
            }
            messages::spoil(pid, &message).map_err(errno_of)?;
            self.refused = Some(message.sequence);
            self.report.fired = Some(format!(
                "{} at message {} of type {:#x}, {}",
                self.plan,
                self.plan.at,
                message.kind,
                describe(pid, frame)
            ));
        }
        Ok(())
    }

    fn leave(&mut self, pid: Pid) -> nix::Result<()> {
        let state = self.threads.entry(pid).or_default();
        let call = state.call.take();
        if let Some(errno) = state.failing.take() {
            return registers::fail(pid, errno);
        }
        if let (Act::Refuse(errno), Some(sequence), Some(frame)) =
            (self.plan.act, self.refused, call)
        {
            let got = registers::returned(pid)?;
            messages::answer(pid, &frame, got, sequence, errno).map_err(errno_of)?;
        }
        Ok(())
    }
}

fn errno_of(error: std::io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_raw)
}

fn resume(pid: Pid, signal: Option<Signal>) -> Result<()> {
    match ptrace::syscall(pid, signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(errno) => Err(errno).doing(|| "let a traced program go on"),
    }
}
