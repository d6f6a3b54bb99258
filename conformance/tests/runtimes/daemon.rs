//! A daemon of a runtime, for as long as it is wanted.

use std::fs::File;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long a daemon may take until its socket answers.
const START: Duration = Duration::from_secs(30);

/// A running daemon; ended when dropped.
pub struct Daemon {
    child: Child,
    log: PathBuf,
}

impl Daemon {
    /// Starts a daemon and returns when its socket answers.
    pub fn start(mut command: Command, socket: &Path, log: &Path) -> Self {
        let file = File::create(log).unwrap();
        let child = command
            .stdout(Stdio::from(file.try_clone().unwrap()))
            .stderr(Stdio::from(file))
            .spawn()
            .unwrap();
        let mut daemon = Self {
            child,
            log: log.to_owned(),
        };
        let end = Instant::now() + START;
        while UnixStream::connect(socket).is_err() {
            let gone = daemon.child.try_wait().unwrap();
            assert!(gone.is_none() && Instant::now() < end, "{}", daemon.said());
            std::thread::sleep(Duration::from_millis(50));
        }
        daemon
    }

    /// The end of what the daemon logged.
    pub fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(40)..].join("\n")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
        // The deadline around it passes this on, which it could not do with SIGKILL.
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        let _ = kill(pid, Signal::SIGTERM);
        let _ = self.child.wait();
    }
}
