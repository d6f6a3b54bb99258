//! Executing one plugin: its start, its deadline, its end.

mod talk;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use talk::{Ending, MAX_OUTPUT, Talk};

/// Pauses (milliseconds) before starting a plugin again whose file was busy, as it is while it is
/// being installed.
const BUSY_PAUSES: [u64; 5] = [10, 20, 40, 80, 160];
/// More than any plugin can be given.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A plugin did not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The executable.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Talking to it failed.
    #[error("cannot talk to {}: {source}", program.display())]
    Pipe {
        /// The executable.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It took too long and was killed.
    #[error("{} did not end within {limit:?} and was killed", program.display())]
    Timeout {
        /// The executable.
        program: PathBuf,
        /// What it was given.
        limit: Duration,
    },
    /// It printed without end and was killed.
    #[error("{} printed more than {MAX_OUTPUT} bytes and was killed", program.display())]
    TooMuch {
        /// The executable.
        program: PathBuf,
    },
}

/// One execution of a plugin, in the namespaces of the calling thread.
pub(super) struct Invocation<'a> {
    pub(super) program: &'a Path,
    /// Set on top of this process's own environment.
    pub(super) environment: &'a [(&'static str, OsString)],
    pub(super) stdin: &'a [u8],
    pub(super) deadline: Duration,
    pub(super) forward_stderr: bool,
}

/// How a plugin ended.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) status: ExitStatus,
    pub(super) stdout: Vec<u8>,
    /// The first part of it.
    pub(super) stderr: Vec<u8>,
}

impl Invocation<'_> {
    pub(super) fn run(&self) -> Result<Output, RunError> {
        let until = Instant::now() + self.deadline.min(YEAR);
        let child = self.spawn().map_err(|source| RunError::Start {
            program: self.program.to_owned(),
            source,
        })?;
        let group = Pid::from_raw(i32::try_from(child.id()).unwrap_or(i32::MAX));
        let outcome = self.converse(child, until);
        if outcome.is_err() {
            // Nothing is left to kill if the group is gone.
            let _ = killpg(group, Signal::SIGKILL);
        }
        outcome
    }

    fn converse(&self, child: Child, until: Instant) -> Result<Output, RunError> {
        let program = || self.program.to_owned();
        let pipe = |source| RunError::Pipe {
            program: program(),
            source,
        };
        let mut talk = Talk::start(child, self.stdin, self.forward_stderr).map_err(pipe)?;
        match talk.until_done(until).map_err(pipe)? {
            Ending::Done => talk.finish().map_err(pipe),
            Ending::Late => Err(RunError::Timeout {
                program: program(),
                limit: self.deadline,
            }),
            Ending::TooMuch => Err(RunError::TooMuch { program: program() }),
        }
    }

    /// Starts the plugin as the leader of a process group of its own, so that it can be killed
    /// with all its children.
    fn spawn(&self) -> io::Result<Child> {
        let mut command = Command::new(self.program);
        command
            .envs(self.environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        for pause in BUSY_PAUSES {
            match command.spawn() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    thread::sleep(Duration::from_millis(pause));
                }
                other => return other,
            }
        }
        command.spawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::libcni::testing::script;

    fn run(body: &str, stdin: &[u8], deadline: Duration) -> Result<Output, RunError> {
        let (_dir, program) = script(body);
        let environment = [("CNI_COMMAND", OsString::from("ADD"))];
        Invocation {
            program: &program,
            environment: &environment,
            stdin,
            deadline,
            forward_stderr: false,
        }
        .run()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn everything_passes_through() {
        let output = run(
            "printf '%s %s' $CNI_COMMAND \"$(cat)\"; echo oops >&2; exit 3",
            b"in",
            LONG,
        );
        let output = output.unwrap();
        assert_eq!(output.stdout, b"ADD in");
        assert_eq!(output.stderr, b"oops\n");
        assert_eq!(output.status.code(), Some(3));
    }

    #[test]
    fn a_plugin_need_not_read() {
        let stdin = vec![b' '; 5 << 20];
        assert_eq!(run("echo '{}'", &stdin, LONG).unwrap().stdout, b"{}\n");
        // Nor read before it writes more than a pipe holds.
        let output = run(
            "dd if=/dev/zero bs=64k count=16 2>/dev/null; cat",
            &stdin,
            LONG,
        )
        .unwrap();
        assert_eq!(output.stdout.len(), (1 << 20) + stdin.len());
    }

    #[test]
    fn a_late_plugin_is_killed_with_its_children() {
        let tmp = tempfile::tempdir().unwrap();
        let pids = tmp.path().join("pids");
        let body = format!("sleep 1000 & echo $! $$ > {}; wait", pids.display());
        let started = Instant::now();
        let error = run(&body, b"", Duration::from_millis(500)).unwrap_err();
        assert!(matches!(error, RunError::Timeout { .. }), "{error}");
        assert!(started.elapsed() < Duration::from_secs(20));
        for pid in std::fs::read_to_string(pids).unwrap().split_whitespace() {
            assert!(gone(pid), "process {pid} is still running");
        }
    }

    /// Whether a process has ended; it may take the kernel a moment after the signal.
    fn gone(pid: &str) -> bool {
        let until = Instant::now() + Duration::from_secs(10);
        while Instant::now() < until {
            match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
                Ok(stat) if !stat.contains(") Z ") => thread::yield_now(),
                _ => return true,
            }
        }
        false
    }

    #[test]
    fn a_stray_child_does_not_delay_the_answer() {
        let started = Instant::now();
        let output = run("sleep 1000 & echo $!", b"", LONG).unwrap();
        assert!(output.status.success());
        assert!(started.elapsed() < Duration::from_secs(20));
        let pid: i32 = String::from_utf8(output.stdout)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        // It has done nothing wrong and is left alone, but not by this test.
        nix::sys::signal::kill(Pid::from_raw(pid), Signal::SIGKILL).unwrap();
    }

    #[test]
    fn closed_pipes_do_not_end_a_plugin_early() {
        let output = run("exec <&- >&- 2>&-; exit 4", b"x", LONG).unwrap();
        assert_eq!(output.status.code(), Some(4));
    }

    #[test]
    fn output_is_bounded() {
        let error = run("yes", b"", LONG).unwrap_err();
        assert!(matches!(error, RunError::TooMuch { .. }), "{error}");
    }

    #[test]
    fn what_cannot_start_is_named() {
        let (_dir, program) = script("");
        std::fs::write(&program, "#!/nonexistent\n").unwrap();
        let invocation = Invocation {
            program: &program,
            environment: &[],
            stdin: b"",
            deadline: LONG,
            forward_stderr: false,
        };
        let error = invocation.run().unwrap_err().to_string();
        assert!(
            error.starts_with("cannot start ") && error.contains("No such file"),
            "{error}"
        );
    }

    #[test]
    fn a_busy_executable_is_tried_again() {
        let (_dir, program) = script("echo '{}'");
        let writer = std::fs::OpenOptions::new()
            .append(true)
            .open(&program)
            .unwrap();
        let invocation = Invocation {
            program: &program,
            environment: &[],
            stdin: b"",
            deadline: LONG,
            forward_stderr: false,
        };
        let error = invocation.run().unwrap_err();
        assert!(
            matches!(&error, RunError::Start { source, .. }
            if source.kind() == ErrorKind::ExecutableFileBusy),
            "{error}"
        );
        let output = thread::scope(|scope| {
            let running = scope.spawn(|| invocation.run());
            drop(writer);
            running.join().unwrap()
        });
        assert_eq!(output.unwrap().stdout, b"{}\n");
    }
}
