//! The recording of calls: a plugin directory whose plugins are all the recorder.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use super::Call;
use crate::{Error, Result, error::Context};

/// Where the recorder finds the plugins proper, beside its own names.
const REAL: &str = ".real";
/// Where it writes the calls.
const CALLS: &str = ".calls";
/// Set for the plugin, so that delegates which it calls are known.
const NESTED: &str = "CNI_RECORDED";
/// What belongs to the protocol, and what podman sets for plugins alone. All else depends on which
/// of a client's processes makes the call.
const RECORDED: [&str; 2] = ["CNI_", "XDG_RUNTIME_DIR"];

/// A plugin directory that writes every call down.
#[derive(Debug)]
pub struct Recorder {
    directory: PathBuf,
}

impl Recorder {
    /// Furnishes `directory` for the plugins of another one: `program`, the `record` binary, under
    /// each of their names.
    ///
    /// # Errors
    /// When a file cannot be made.
    pub fn new(directory: &Path, program: &Path, real: &Path, plugins: &[&str]) -> Result<Self> {
        let making = || format!("furnish {}", directory.display());
        fs::create_dir_all(directory.join(CALLS)).doing(making)?;
        symlink(real, directory.join(REAL)).doing(making)?;
        for plugin in plugins {
            symlink(program, directory.join(plugin)).doing(making)?;
        }
        Ok(Self {
            directory: directory.to_owned(),
        })
    }

    /// The plugin directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The calls so far, in the order in which they began.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn calls(&self) -> Result<Vec<Call>> {
        let directory = self.directory.join(CALLS);
        let listing = || format!("list {}", directory.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).doing(listing)? {
            files.push(entry.doing(listing)?.path());
        }
        files.sort();
        let read = |file: &PathBuf| {
            let bytes = fs::read(file).doing(|| format!("read {}", file.display()))?;
            serde_json::from_slice(&bytes).map_err(|error| Error::Malformed {
                what: format!("{}: {error}", file.display()),
            })
        };
        files.iter().map(read).collect()
    }
}

/// What the `record` binary does: passes its call on to the plugin whose name it was started
/// under, and writes it down unless a plugin made it. Returns the plugin's exit code.
///
/// # Errors
/// When the plugin cannot be run or the call not written down.
pub fn pass_on() -> Result<u8> {
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let own = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let directory = own.parent().unwrap_or(Path::new("."));
    let plugin = own.file_name().unwrap_or_default();
    let netns = std::env::var_os("CNI_NETNS").unwrap_or_default();
    let netns_gone = !netns.is_empty() && netns != "dummy" && !Path::new(&netns).exists();
    let mut stdin = Vec::new();
    io::stdin()
        .read_to_end(&mut stdin)
        .doing(|| "read standard input")?;
    let (exit, stdout) = run(&directory.join(REAL).join(plugin), &stdin)?;
    if std::env::var_os(NESTED).is_none() {
        let call = Call {
            plugin: text(plugin),
            env: environment(),
            netns_gone,
            stdin: value(&stdin),
            exit,
            stdout: value(&stdout),
        };
        let name = format!("{:020}-{}.json", started.as_nanos(), std::process::id());
        let file = directory.join(CALLS).join(name);
        let line = serde_json::to_vec(&call).unwrap_or_default();
        fs::write(&file, line).doing(|| format!("write {}", file.display()))?;
    }
    io::stdout()
        .write_all(&stdout)
        .doing(|| "write standard output")?;
    Ok(u8::try_from(exit).unwrap_or(u8::MAX))
}

fn run(program: &Path, stdin: &[u8]) -> Result<(i32, Vec<u8>)> {
    let running = || format!("run {}", program.display());
    let mut child = Command::new(program)
        .env(NESTED, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .doing(running)?;
    if let Some(mut pipe) = child.stdin.take() {
        // A plugin may end without reading; requests are smaller than a pipe.
        let _ = pipe.write_all(stdin);
    }
    let output = child.wait_with_output().doing(running)?;
    Ok((output.status.code().unwrap_or(-1), output.stdout))
}

fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .map(|(name, value)| (text(&name), text(&value)))
        .filter(|(name, _)| RECORDED.iter().any(|one| name.starts_with(one)) && name != NESTED)
        .collect()
}

fn text(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}

/// JSON where it is some, nothing where there is nothing, text otherwise.
fn value(bytes: &[u8]) -> Value {
    if bytes.is_empty() {
        return Value::Null;
    }
    serde_json::from_slice(bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(bytes).into_owned()))
}
