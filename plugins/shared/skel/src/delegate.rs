//! Running the IPAM plugin (CNI specification, section 4, "Plugin Delegation").

use std::ffi::CStr;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use cni_types::json;
use cni_types::result::CniResult;
use cni_types::{CniError, SpecVersion, code};
use netlink::process::wait_at_most;
use nix::errno::Errno;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getppid};

use crate::log;

/// The most that is read of a delegate's stdout or stderr, in bytes.
const OUTPUT_LIMIT: u64 = 16 << 20;

/// Set in the environment of an IPAM plugin that one of ours runs, and of all that it runs in turn.
///
/// Its value is the process id of the one that runs it, see [`is_orphan`]. And a configuration whose `ipam` names an interface
/// plugin would have that plugin read the same configuration and run the next one, without end.
const DELEGATED: &str = "FERRULE_DELEGATED";

/// How long a delegate may take. A DHCP server that is slow to answer takes part of it; one that never ends would keep the
/// runtime waiting without end.
const PATIENCE: Duration = Duration::from_secs(120);

/// Attempts at executing a binary that somebody has open for writing.
const BUSY_ATTEMPTS: u32 = 5;

/// A plugin to which this one hands its request, unchanged, for one part of the work.
#[derive(Debug, Clone)]
pub struct Delegate {
    plugin: String,
    dirs: Vec<PathBuf>,
    stdin: Vec<u8>,
    version: SpecVersion,
    patience: Duration,
}

/// Why a delegate gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum DelegateError {
    /// The configuration names a path, or nothing that can be a file name.
    #[error("invalid plugin name: {0}")]
    BadName(String),
    /// No directory of `CNI_PATH` holds it.
    #[error("failed to find plugin {plugin:?} in path [{dirs}]")]
    Missing {
        /// The name looked for.
        plugin: String,
        /// The directories looked in, separated by blanks.
        dirs: String,
    },
    /// It could not be started or talked to.
    #[error("failed to run plugin {plugin:?}: {error}")]
    Run {
        /// Its name.
        plugin: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// It did not end, and was killed.
    #[error("plugin {plugin:?} did not end within {} s and was killed", .limit.as_secs())]
    Hangs {
        /// Its name.
        plugin: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// It failed and said why in the protocol's form; this is passed through unchanged.
    #[error("{0}")]
    Refused(CniError),
    /// It failed without an error object.
    #[error("plugin {plugin:?} failed: {how}{said}")]
    Died {
        /// Its name.
        plugin: String,
        /// Its exit status or signal.
        how: ExitStatus,
        /// What it wrote instead, with a leading separator; may be empty.
        said: String,
    },
    /// It succeeded, but its answer is not a result.
    #[error("plugin {plugin:?} gave a result that cannot be read: {why}")]
    BadResult {
        /// Its name.
        plugin: String,
        /// What is wrong with it.
        why: String,
    },
}

impl DelegateError {
    /// Whether the delegate may have done something without saying so.
    fn is_unclear(&self) -> bool {
        match self {
            Self::BadName(_) | Self::Missing { .. } | Self::Refused(_) => false,
            Self::Run { .. } | Self::Hangs { .. } | Self::Died { .. } | Self::BadResult { .. } => {
                true
            }
        }
    }
}

impl Delegate {
    /// Prepares a delegate of that name for a request with these bytes on stdin and that version.
    pub fn new(plugin: &str, dirs: Vec<PathBuf>, stdin: Vec<u8>, version: SpecVersion) -> Self {
        Self {
            plugin: plugin.to_owned(),
            dirs,
            stdin,
            version,
            patience: PATIENCE,
        }
    }

    /// The same, with another limit to how long each call of it may take instead of two minutes.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The delegate's name, as the configuration gives it.
    pub fn name(&self) -> &str {
        &self.plugin
    }

    /// ADD: its result, in the newest model whatever version it answered in.
    ///
    /// A delegate that ends without a proper answer may have given addresses all the same, and nobody would ever
    /// know which; it is asked to release them. One that refuses properly has nothing to release.
    pub fn add(&self) -> Result<CniResult, DelegateError> {
        let outcome = self.try_add();
        if outcome.as_ref().is_err_and(DelegateError::is_unclear) {
            log::info(format_args!(
                "DEL of {}, whose ADD ended unclearly",
                self.plugin
            ));
            if let Err(error) = self.del() {
                log::warn(format_args!("{error}"));
            }
        }
        outcome
    }

    fn try_add(&self) -> Result<CniResult, DelegateError> {
        let stdout = self.run("ADD")?;
        let bad = |why: String| DelegateError::BadResult {
            plugin: self.plugin.clone(),
            why,
        };
        let value = json::parse(&stdout).map_err(|e| bad(e.to_string()))?;
        let (_, result) =
            CniResult::decode(&value, self.version).map_err(|e| bad(e.to_string()))?;
        Ok(result)
    }

    /// DEL.
    pub fn del(&self) -> Result<(), DelegateError> {
        self.run("DEL").map(drop)
    }

    /// CHECK.
    pub fn check(&self) -> Result<(), DelegateError> {
        self.run("CHECK").map(drop)
    }

    /// GC.
    pub fn gc(&self) -> Result<(), DelegateError> {
        self.run("GC").map(drop)
    }

    /// STATUS.
    pub fn status(&self) -> Result<(), DelegateError> {
        self.run("STATUS").map(drop)
    }

    /// The binary: the first regular file of that name in the directories, links followed.
    fn find(&self) -> Result<PathBuf, DelegateError> {
        if self.plugin.is_empty() || self.plugin.contains('/') || self.plugin.contains('\0') {
            return Err(DelegateError::BadName(self.plugin.clone()));
        }
        let found = self
            .dirs
            .iter()
            .map(|dir| dir.join(&self.plugin))
            .find(|path| path.is_file());
        found.ok_or_else(|| DelegateError::Missing {
            plugin: self.plugin.clone(),
            dirs: join(&self.dirs),
        })
    }

    fn run(&self, verb: &str) -> Result<Vec<u8>, DelegateError> {
        let path = self.find()?;
        if std::env::var_os(DELEGATED).is_some() {
            return Err(self.recursive());
        }
        let failed = |error| DelegateError::Run {
            plugin: self.plugin.clone(),
            error,
        };
        let mut files = Files::new(&self.stdin).map_err(failed)?;
        let status = files
            .execute(&path, verb, self.patience)
            .map_err(failed)?
            .ok_or_else(|| DelegateError::Hangs {
                plugin: self.plugin.clone(),
                limit: self.patience,
            })?;
        let (stdout, stderr) = files.output().map_err(failed)?;
        log::info(format_args!("{verb} of {}: {status}", self.plugin));
        if !status.success() {
            return Err(self.failure(status, &stdout, &stderr));
        }
        // What a successful delegate has to say is for the operator; a failure to pass it on is not one.
        let _ = std::io::stderr().write_all(&stderr);
        Ok(stdout)
    }

    /// What a plugin answers that was run as an IPAM plugin and is to run one itself.
    fn recursive(&self) -> DelegateError {
        let msg = format!(
            "a plugin that was run for ipam would run {:?} for ipam in turn",
            self.plugin
        );
        let error = CniError::new(code::INVALID_NETWORK_CONFIG, msg).with_details(
            "ipam.type names an interface plugin; name an IPAM plugin, such as host-local",
        );
        DelegateError::Refused(error)
    }

    fn failure(&self, status: ExitStatus, stdout: &[u8], stderr: &[u8]) -> DelegateError {
        let object = json::parse(stdout)
            .ok()
            .and_then(|value| CniError::decode(&value).ok());
        if let Some(error) = object.filter(|e| e.code != 0 || !e.msg.is_empty()) {
            return DelegateError::Refused(error);
        }
        let said = [stderr, stdout]
            .iter()
            .map(|bytes| String::from_utf8_lossy(bytes).trim().to_owned())
            .find(|text| !text.is_empty())
            .map(|text| format!(": {text}"))
            .unwrap_or_default();
        DelegateError::Died {
            plugin: self.plugin.clone(),
            how: status,
            said,
        }
    }
}

fn join(dirs: &[PathBuf]) -> String {
    let shown: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    shown.join(" ")
}

/// A delegate's three standard streams.
///
/// They are files in memory, not pipes: the delegate may stop reading at any point, it never waits for us to
/// read, and a process that it leaves behind cannot keep us waiting for the end of its output.
struct Files {
    stdin: File,
    stdout: File,
    stderr: File,
}

impl Files {
    fn new(request: &[u8]) -> std::io::Result<Self> {
        let mut stdin = memory_file(c"cni-request")?;
        stdin.write_all(request)?;
        Ok(Self {
            stdin,
            stdout: memory_file(c"cni-result")?,
            stderr: memory_file(c"cni-stderr")?,
        })
    }

    /// `None` if it had to be killed.
    fn execute(
        &mut self,
        path: &Path,
        verb: &str,
        patience: Duration,
    ) -> std::io::Result<Option<ExitStatus>> {
        let mut attempt = 1;
        loop {
            self.stdin.rewind()?;
            let spawned = Command::new(path)
                .env("CNI_COMMAND", verb)
                .env(DELEGATED, std::process::id().to_string())
                .stdin(Stdio::from(self.stdin.try_clone()?))
                .stdout(Stdio::from(self.stdout.try_clone()?))
                .stderr(Stdio::from(self.stderr.try_clone()?))
                .spawn();
            match spawned {
                Ok(child) => return end_of(child, patience),
                // Somebody is installing the binary at this moment; nothing announces the end of that.
                Err(e) if is_busy(&e) && attempt < BUSY_ATTEMPTS => {
                    std::thread::sleep(std::time::Duration::from_millis(20 << attempt));
                    attempt += 1;
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn output(mut self) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
        Ok((contents(&mut self.stdout)?, contents(&mut self.stderr)?))
    }
}

fn end_of(mut child: Child, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
    let ended = wait_at_most(&mut child, patience)?;
    if ended.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(ended)
}

/// Whether this process was run for `ipam` by a plugin that is gone. From the first call on it ends together with that one.
///
/// The runtime's DEL follows the death of an ADD at once. A lease that were written after it would belong to nobody.
pub(crate) fn is_orphan() -> bool {
    let marker = std::env::var(DELEGATED).ok();
    let Some(caller) = marker.and_then(|text| text.parse().ok()).map(Pid::from_raw) else {
        return false;
    };
    // Unsupported nowhere; and where it failed, the rest is still worth a look.
    let _ = set_pdeathsig(Signal::SIGKILL);
    // Between the two there may be a script that runs us, and stays.
    getppid() != caller && kill(caller, None) == Err(Errno::ESRCH)
}

fn is_busy(error: &std::io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ETXTBSY as i32)
}

fn memory_file(name: &CStr) -> std::io::Result<File> {
    Ok(File::from(memfd_create(name, MFdFlags::MFD_CLOEXEC)?))
}

fn contents(file: &mut File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(OUTPUT_LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}
