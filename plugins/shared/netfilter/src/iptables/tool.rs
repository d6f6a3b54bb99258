//! The child processes: which binary, and running it within a time limit.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::memfd::{MFdFlags, memfd_create};

use super::family::Family;
use super::variant::Variant;
use crate::error::{Error, Result};

/// Looked through after PATH, which runtimes often set to something short.
const DIRECTORIES: [&str; 5] = ["/usr/sbin", "/sbin", "/usr/local/sbin", "/usr/bin", "/bin"];
/// How long a child may take: legacy tools wait that long for their lock, in seconds.
const LOCK_WAIT: &str = "10";
const LIMIT: Duration = Duration::from_secs(20);

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Writes tables.
    Restore,
    /// Prints tables.
    Save,
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Restore => "restore",
            Self::Save => "save",
        }
    }
}

/// The binary of a variant, by its own name or behind the plain name.
pub(crate) fn find(variant: Variant, family: Family, purpose: Purpose) -> Option<PathBuf> {
    let (tool, purpose) = (family.tool(), purpose.name());
    let own = format!("{tool}-{}-{purpose}", variant.name());
    in_path(&own).or_else(|| {
        let plain = in_path(&format!("{tool}-{purpose}"))?;
        (Variant::of_binary(&plain) == Some(variant)).then_some(plain)
    })
}

/// The first file of that name in PATH and the usual system directories.
pub(crate) fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let given = std::env::split_paths(&path).filter(|dir| dir.is_absolute());
    given
        .chain(DIRECTORIES.map(PathBuf::from))
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// Feeds a script to `iptables-restore --noflush`, which carries out all of a table's lines or none.
pub(crate) fn restore(variant: Variant, family: Family, script: &str) -> Result<()> {
    let program = required(variant, family, Purpose::Restore)?;
    run(&program, &["--noflush", "-w", LOCK_WAIT], script).map(drop)
}

/// The text of one table.
pub(crate) fn save(variant: Variant, family: Family, table: &str) -> Result<String> {
    let program = required(variant, family, Purpose::Save)?;
    run(&program, &["-t", table], "")
}

/// [`find`], or why the backend cannot be used.
pub(crate) fn required(variant: Variant, family: Family, purpose: Purpose) -> Result<PathBuf> {
    find(variant, family, purpose).ok_or_else(|| Error::Unavailable {
        what: "the iptables backend".to_owned(),
        reason: format!(
            "{}-{} for {} tables is neither in PATH nor in /usr/sbin; install the package iptables or choose the nftables backend",
            family.tool(),
            purpose.name(),
            variant.name(),
        ),
    })
}

/// A file in memory: a child that does not read cannot block us, and neither can one that says a lot.
fn memory(content: &str) -> std::io::Result<File> {
    let mut file = File::from(memfd_create(c"iptables", MFdFlags::MFD_CLOEXEC)?);
    file.write_all(content.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// Runs a program and returns what it printed.
fn run(program: &Path, args: &[&str], input: &str) -> Result<String> {
    let io = |what: &str| {
        let what = format!("{what} {}", program.display());
        move |source| Error::Io { what, source }
    };
    let mut errors = memory("").map_err(io("prepare"))?;
    let mut child = Command::new(program)
        .args(args)
        .stdin(memory(input).map_err(io("prepare"))?)
        .stdout(Stdio::piped())
        .stderr(errors.try_clone().map_err(io("prepare"))?)
        .spawn()
        .map_err(io("start"))?;
    let output = read_all(&mut child);
    if !matches!(output, Ok(Some(_))) {
        // It may have ended by itself meanwhile.
        let _ = child.kill();
    }
    let status = child.wait().map_err(io("wait for"))?;
    crate::nfnl::tell(|| {
        let lines = input.lines().collect::<Vec<_>>().join(" | ");
        format!(
            "{} {}: {status}; input: {lines}",
            program.display(),
            args.join(" ")
        )
    });
    match output.map_err(io("read from"))? {
        Some(output) if status.success() => Ok(output),
        Some(_) => Err(failure(program, status, &mut errors)),
        None => Err(Error::Busy {
            what: program.display().to_string(),
            reason: format!(
                "it had not ended after {} seconds and was killed",
                LIMIT.as_secs()
            ),
        }),
    }
}

/// The child's output up to its end; `None` when the time is up.
fn read_all(child: &mut Child) -> std::io::Result<Option<String>> {
    let deadline = Instant::now() + LIMIT;
    let mut output = Vec::new();
    let Some(mut pipe) = child.stdout.take() else {
        return Ok(Some(String::new()));
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
        match poll(&mut [PollFd::new(pipe.as_fd(), PollFlags::POLLIN)], timeout) {
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let mut chunk = [0; 16384];
        match pipe.read(&mut chunk)? {
            0 => return Ok(Some(String::from_utf8_lossy(&output).into_owned())),
            count => output.extend_from_slice(chunk.get(..count).unwrap_or_default()),
        }
    }
}

fn failure(program: &Path, status: ExitStatus, errors: &mut File) -> Error {
    let mut said = Vec::new();
    let _ = errors.rewind().and_then(|()| errors.read_to_end(&mut said));
    let said = String::from_utf8_lossy(&said);
    let lines: Vec<_> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    Error::Child {
        program: program.display().to_string(),
        status: status.to_string(),
        stderr: lines.join("; "),
    }
}
