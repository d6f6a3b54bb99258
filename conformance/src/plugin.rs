//! Executing one plugin binary, as a runtime would.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Context, Error, Result};

/// How long any plugin may take before it counts as hanging. More than a busy machine can stand
/// still for: what is measured by it is whether a call ends, not how fast.
pub const DEADLINE: Duration = Duration::from_secs(180);

/// One call of a plugin: its binary, environment and standard input.
#[derive(Clone, Debug)]
pub struct Call {
    program: PathBuf,
    wrapper: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    stdin: Vec<u8>,
    deadline: Duration,
}

/// What a plugin answered.
#[derive(Debug)]
pub struct Answer {
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// From just before its start until it was gone.
    pub took: Duration,
}

impl Call {
    /// A call with an empty environment and empty standard input.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            wrapper: Vec::new(),
            env: Vec::new(),
            stdin: Vec::new(),
            deadline: DEADLINE,
        }
    }

    /// Sets a variable of the plugin's environment.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env
            .push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Sets what the plugin reads.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// Kills the plugin after this time instead of [`DEADLINE`].
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// Runs the plugin under another program, such as a tracer, that takes it as arguments.
    #[must_use]
    pub fn under(mut self, wrapper: &[OsString]) -> Self {
        self.wrapper = wrapper.to_vec();
        self
    }

    /// Runs the plugin in the namespaces of the calling thread.
    ///
    /// # Errors
    /// [`Error::System`] when it cannot be started, [`Error::Timeout`] when it does not end.
    pub fn run(&self) -> Result<Answer> {
        let started = Instant::now();
        let mut child = self
            .command()
            .spawn()
            .doing(|| format!("start {}", self.program.display()))?;
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        if let Some(mut pipe) = child.stdin.take() {
            let bytes = self.stdin.clone();
            // A plugin may end without reading all of it; that is no fault.
            thread::spawn(move || drop(pipe.write_all(&bytes)));
        }
        let stdout = self.wait(stdout, &mut child)?;
        let stderr = self.wait(stderr, &mut child)?;
        let status = child
            .wait()
            .doing(|| format!("wait for {}", self.program.display()))?;
        Ok(Answer {
            status,
            stdout,
            stderr,
            took: started.elapsed(),
        })
    }

    fn command(&self) -> Command {
        let mut command = match self.wrapper.split_first() {
            Some((wrapper, arguments)) => {
                let mut command = Command::new(wrapper);
                command.args(arguments).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command
            .env_clear()
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn wait(
        &self,
        output: Option<Receiver<io::Result<Vec<u8>>>>,
        child: &mut Child,
    ) -> Result<Vec<u8>> {
        let Some(output) = output else {
            return Ok(Vec::new());
        };
        match output.recv_timeout(self.deadline) {
            Ok(bytes) => bytes.doing(|| format!("read from {}", self.program.display())),
            Err(_) => {
                let state = whereabouts(child.id());
                // Already gone is as good as killed.
                let _ = child.kill();
                let _ = child.wait();
                Err(Error::Timeout {
                    program: self.program.clone(),
                    limit: self.deadline,
                    state,
                })
            }
        }
    }
}

/// Where a process that does not end stands, and each of its children: its state, the kernel
/// function it sleeps in, its system call, its kernel stack where that may be read (`proc(5)`).
fn whereabouts(pid: u32) -> String {
    let read = |pid: &str, file: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let pid = pid.to_string();
    let children = read(&pid, &format!("task/{pid}/children"));
    let all = [pid.as_str()].into_iter().chain(children.split(' '));
    all.filter(|pid| !pid.is_empty())
        .map(|pid| {
            let seen = ["stat", "wchan", "syscall", "stack"].map(|file| read(pid, file));
            format!("[{}]", seen.join(" | "))
        })
        .collect::<Vec<_>>()
        .join(" ")
}

fn collect(mut pipe: impl Read + Send + 'static) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let outcome = pipe.read_to_end(&mut bytes).map(|_| bytes);
        // Nobody listens any more once the deadline has passed.
        let _ = sender.send(outcome);
    });
    receiver
}

impl Answer {
    /// Whether the plugin reported success.
    #[must_use]
    pub fn ok(&self) -> bool {
        self.status.success()
    }

    /// Standard output as JSON, if it is exactly one document.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.stdout).ok()
    }

    /// The CNI error object, if the plugin failed as the protocol wants: exit code 1 and one
    /// object with a numeric `code` and a text `msg` on standard output.
    #[must_use]
    pub fn error(&self) -> Option<PluginError> {
        let object = self.json()?;
        let code = object.get("code")?.as_u64()?;
        let msg = object.get("msg")?.as_str()?.to_owned();
        let details = object
            .get("details")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        (self.status.code() == Some(1)).then_some(PluginError { code, msg, details })
    }

    /// Standard output and standard error in one line each, for messages.
    #[must_use]
    pub fn text(&self) -> String {
        let line = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        };
        format!(
            "{}; stdout: {}; stderr: {}",
            self.status,
            line(&self.stdout),
            line(&self.stderr)
        )
    }
}

/// The error object of the protocol.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PluginError {
    /// Error code; below 100 they are the specification's.
    pub code: u64,
    /// Short text.
    pub msg: String,
    /// Longer text; may be empty.
    pub details: String,
}

/// Finds a plugin in the directories of a `CNI_PATH`.
///
/// # Errors
/// [`Error::Missing`] when no directory has a file of this name.
pub fn find(name: &str, directories: &[PathBuf]) -> Result<PathBuf> {
    let candidate = |directory: &PathBuf| Path::new(directory).join(name);
    directories
        .iter()
        .map(candidate)
        .find(|file| file.is_file())
        .ok_or_else(|| {
            let places: Vec<_> = directories
                .iter()
                .map(|one| one.display().to_string())
                .collect();
            Error::Missing {
                what: format!("plugin {name} in {}", places.join(":")),
            }
        })
}
