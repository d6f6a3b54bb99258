//! The conversation with a running plugin: all pipes at once, so that neither side can block.

use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Output;

/// Bytes of standard output that a plugin may print.
pub(super) const MAX_OUTPUT: usize = 16 << 20;
/// Bytes of standard error that are kept for the error message.
const MAX_MESSAGE: usize = 64 << 10;
/// How long to read on after the plugin has ended, when a child of it holds the pipes open.
const DRAIN: Duration = Duration::from_secs(1);

/// How a conversation ended.
pub(super) enum Ending {
    /// The plugin has ended.
    Done,
    /// It is still there.
    Late,
    /// It has printed more than [`MAX_OUTPUT`].
    TooMuch,
}

pub(super) struct Talk<'a> {
    stdin: Option<ChildStdin>,
    to_write: &'a [u8],
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    /// At its end when the plugin has ended and been reaped.
    running: Option<PipeReader>,
    waiter: JoinHandle<io::Result<ExitStatus>>,
    output: Vec<u8>,
    message: Vec<u8>,
    forward_stderr: bool,
}

#[derive(Clone, Copy)]
enum Source {
    Stdin,
    Stdout,
    Stderr,
    End,
}

impl<'a> Talk<'a> {
    pub(super) fn start(
        mut child: Child,
        to_write: &'a [u8],
        forward_stderr: bool,
    ) -> io::Result<Self> {
        let stdin = child.stdin.take();
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        let (running, end) = io::pipe()?;
        let waiter = thread::Builder::new().name("wait".into()).spawn(move || {
            let status = child.wait();
            drop(end);
            status
        })?;
        let pipes = [
            stdin.as_ref().map(AsFd::as_fd),
            stdout.as_ref().map(AsFd::as_fd),
            stderr.as_ref().map(AsFd::as_fd),
        ];
        for pipe in pipes.into_iter().flatten() {
            unblock(pipe)?;
        }
        Ok(Talk {
            stdin,
            to_write,
            stdout,
            stderr,
            running: Some(running),
            waiter,
            output: Vec::new(),
            message: Vec::new(),
            forward_stderr,
        })
    }

    /// Goes on until the plugin has ended and everything it wrote is read.
    pub(super) fn until_done(&mut self, deadline: Instant) -> io::Result<Ending> {
        let mut until = deadline;
        while self.running.is_some() || self.stdout.is_some() || self.stderr.is_some() {
            let ready = self.wait(until)?;
            if ready.is_empty() {
                // After the end only a stray child can hold the pipes, and nobody waits for it.
                return Ok(if self.running.is_some() {
                    Ending::Late
                } else {
                    Ending::Done
                });
            }
            for source in ready {
                match source {
                    Source::Stdin => self.write()?,
                    Source::Stdout => self.read_stdout()?,
                    Source::Stderr => self.read_stderr()?,
                    Source::End => {
                        self.running = None;
                        self.stdin = None;
                        until = deadline.min(Instant::now() + DRAIN);
                    }
                }
            }
            if self.output.len() > MAX_OUTPUT {
                return Ok(Ending::TooMuch);
            }
        }
        Ok(Ending::Done)
    }

    /// What a plugin that has ended leaves.
    pub(super) fn finish(self) -> io::Result<Output> {
        let status = self
            .waiter
            .join()
            .map_err(|_| io::Error::other("the thread that waits for the plugin died"))??;
        Ok(Output {
            status,
            stdout: self.output,
            stderr: self.message,
        })
    }

    /// The pipes on which something can be done; none when the time is over.
    fn wait(&self, until: Instant) -> io::Result<Vec<Source>> {
        let wanted = [
            (
                Source::Stdin,
                self.stdin.as_ref().map(AsFd::as_fd),
                PollFlags::POLLOUT,
            ),
            (
                Source::Stdout,
                self.stdout.as_ref().map(AsFd::as_fd),
                PollFlags::POLLIN,
            ),
            (
                Source::Stderr,
                self.stderr.as_ref().map(AsFd::as_fd),
                PollFlags::POLLIN,
            ),
            (
                Source::End,
                self.running.as_ref().map(AsFd::as_fd),
                PollFlags::POLLIN,
            ),
        ];
        let (sources, mut fds): (Vec<Source>, Vec<PollFd<'_>>) = wanted
            .into_iter()
            .filter_map(|(source, fd, events)| Some((source, PollFd::new(fd?, events))))
            .unzip();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            // Rounded up, or the last millisecond would be spent spinning.
            let rounded = if left.is_zero() {
                left
            } else {
                left + Duration::from_millis(1)
            };
            match poll(
                &mut fds,
                PollTimeout::try_from(rounded).unwrap_or(PollTimeout::MAX),
            ) {
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
                Ok(0) if !left.is_zero() => {}
                Ok(_) => break,
            }
        }
        let ready = sources
            .into_iter()
            .zip(fds)
            .filter(|(_, fd)| fd.any().unwrap_or(true));
        Ok(ready.map(|(source, _)| source).collect())
    }

    fn write(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.stdin else {
            return Ok(());
        };
        match pipe.write(self.to_write) {
            Ok(count) => self.to_write = self.to_write.get(count..).unwrap_or_default(),
            Err(error) if is_retry(&error) => return Ok(()),
            // A plugin may end, or close its input, without reading all of it.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.to_write = &[],
            Err(error) => return Err(error),
        }
        if self.to_write.is_empty() {
            self.stdin = None;
        }
        Ok(())
    }

    fn read_stdout(&mut self) -> io::Result<()> {
        match read(&mut self.stdout)? {
            Some(bytes) => self.output.extend(bytes),
            None => self.stdout = None,
        }
        Ok(())
    }

    fn read_stderr(&mut self) -> io::Result<()> {
        let Some(bytes) = read(&mut self.stderr)? else {
            self.stderr = None;
            return Ok(());
        };
        if self.forward_stderr {
            // A plugin's remarks are not worth failing for.
            let _ = io::stderr().write_all(&bytes);
        }
        let room = MAX_MESSAGE.saturating_sub(self.message.len());
        self.message.extend(bytes.into_iter().take(room));
        Ok(())
    }
}

/// What is there to read; nothing at all when the other side has closed.
fn read(pipe: &mut Option<impl Read>) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; 64 << 10];
    match pipe.as_mut().map_or(Ok(0), |pipe| pipe.read(&mut bytes)) {
        Ok(0) => Ok(None),
        Ok(count) => {
            bytes.truncate(count);
            Ok(Some(bytes))
        }
        Err(error) if is_retry(&error) => Ok(Some(Vec::new())),
        Err(error) => Err(error),
    }
}

fn is_retry(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn unblock(pipe: BorrowedFd<'_>) -> io::Result<()> {
    let flags = OFlag::from_bits_retain(fcntl(pipe, FcntlArg::F_GETFL)?);
    fcntl(pipe, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK))?;
    Ok(())
}
