//! A plugin as a process.

use std::io::{Read, Write};
use std::process::ExitCode;

use netlink::process;
use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::delegate;
use crate::dispatch::{Reply, keys, serve};
use crate::env::Environment;
use crate::error::{ProtocolError, to_object};
use crate::plugin::Plugin;

/// The whole of a plugin's `main`: answers the call in this process' environment and stdin.
///
/// The result is written as the very last action. If that fails, or a signal that asks us to stop came
/// before it, everything the call changed is taken back and the exit status is 1.
///
/// With the argument `--keys` it prints the keys of the configuration that the plugin reads, and what their values are, instead.
pub fn run<P: Plugin>() -> ExitCode {
    // The default hook prints a backtrace that nobody asked for; the text goes into the error object.
    std::panic::set_hook(Box::new(|_| ()));
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == "--keys")
    {
        return finish(keys::<P>());
    }
    process::set_signals_right();
    if delegate::is_orphan() {
        return finish(Reply::failure(&to_object(&ProtocolError::Orphaned)));
    }
    let signals = Signals::hold();
    let env = Environment::of_process();
    let mut reply = serve::<P>(&env, Stdin);
    let pending = signals.as_ref().and_then(Signals::pending);
    if let Some(name) = pending.filter(|_| reply.changes.is_some()) {
        reply = Reply::failure(&to_object(&ProtocolError::Interrupted(name)));
    }
    finish(reply)
}

fn finish(reply: Reply) -> ExitCode {
    // stderr is for people; that it cannot be written must not fail the call.
    let _ = std::io::stderr().write_all(reply.stderr.as_bytes());
    let written = write_out(reply.stdout.as_bytes());
    if let Err(error) = written {
        drop(reply);
        let _ = writeln!(
            std::io::stderr(),
            "cannot write the answer to stdout: {error}"
        );
        return ExitCode::FAILURE;
    }
    let status = reply.status;
    reply.commit();
    ExitCode::from(status)
}

/// Standard input. That of `std::io` takes a stream that is closed, or not open for reading, for an empty one.
struct Stdin;

impl Read for Stdin {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if process::started_without(0) {
            return Err(Errno::EBADF.into());
        }
        Ok(nix::unistd::read(std::io::stdin(), buffer)?)
    }
}

/// Writes past the buffer of `std::io::stdout`, which would cut the answer at its last line break.
fn write_out(mut bytes: &[u8]) -> Result<(), Errno> {
    if !bytes.is_empty() && process::started_without(1) {
        return Err(Errno::EBADF);
    }
    while !bytes.is_empty() {
        match nix::unistd::write(std::io::stdout(), bytes) {
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The signals that ask a process to stop, held back so that they cannot stop it half-way.
struct Signals(SignalFd);

impl Signals {
    fn hold() -> Option<Self> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
            set.add(signal);
        }
        set.thread_block().ok()?;
        SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)
            .ok()
            .map(Self)
    }

    fn pending(&self) -> Option<&'static str> {
        let info = self.0.read_signal().ok().flatten()?;
        let signal = i32::try_from(info.ssi_signo).ok()?;
        Signal::try_from(signal).ok().map(Signal::as_str)
    }
}
