//! What a client sends to plugins and what they answer, written down.
//!
//! The `record` binary stands in a plugin directory under the plugins' names, passes every call on
//! and writes it down. What changes from run to run (ids, MAC addresses, names of veths, process
//! numbers) is replaced by a value of the same shape, so that two recordings of one scenario are
//! equal, and a recording can be played against any plugin directory.

mod normal;
mod recorder;
mod replay;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Error, Result, error::Context};

pub use normal::normalise;
pub use recorder::{Recorder, pass_on};
pub use replay::Replay;

/// One call of a plugin by a client; delegates that a plugin calls itself are not among them.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Call {
    /// Name of the plugin.
    pub plugin: String,
    /// The protocol's variables, and `XDG_RUNTIME_DIR`.
    pub env: BTreeMap<String, String>,
    /// Whether `CNI_NETNS` named something that was no longer there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub netns_gone: bool,
    /// What the plugin read; a string where it is not JSON.
    pub stdin: Value,
    /// The plugin's exit code; -1 if it was killed.
    pub exit: i32,
    /// What the plugin wrote; a string where it is not JSON.
    pub stdout: Value,
}

impl Call {
    /// A variable of the environment; empty when it is not set.
    #[must_use]
    pub fn var(&self, name: &str) -> &str {
        self.env.get(name).map_or("", String::as_str)
    }

    /// The command.
    #[must_use]
    pub fn command(&self) -> &str {
        self.var("CNI_COMMAND")
    }

    /// Environment, input and output on a line each.
    fn text(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let text = text.replacen(",\"stdin\":", ",\n \"stdin\":", 1);
        text.replacen(",\"exit\":", ",\n \"exit\":", 1)
    }

    /// One line that is equal for calls alike, whatever order keys and arguments have, and whichever
    /// of its containers a client served first.
    fn line(&self) -> String {
        let mut call = self.clone();
        let args = self.var("CNI_ARGS");
        if !args.is_empty() {
            let mut pairs: Vec<&str> = args.split(';').collect();
            pairs.sort_unstable();
            call.env.insert("CNI_ARGS".into(), pairs.join(";"));
        }
        let mut value = serde_json::to_value(&call).unwrap_or_default();
        let ports = value.pointer_mut("/stdin/runtimeConfig/portMappings");
        if let Some(ports) = ports.and_then(Value::as_array_mut) {
            // podman keeps them in no order.
            ports.sort_by_key(Value::to_string);
        }
        sort(&mut value);
        normal::shape(&value.to_string())
    }
}

/// Sorts the keys of every object.
fn sort(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.sort_keys();
            map.values_mut().for_each(sort);
        }
        Value::Array(list) => list.iter_mut().for_each(sort),
        _ => {}
    }
}

/// A scenario as one client played it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Transcript {
    /// The client and its version.
    pub client: String,
    /// What it was asked to do.
    pub scenario: String,
    /// The calls in the order in which they began.
    pub calls: Vec<Call>,
}

impl Transcript {
    /// Reads a transcript.
    ///
    /// # Errors
    /// When it cannot be read or is none.
    pub fn load(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).doing(|| format!("read {}", file.display()))?;
        serde_json::from_slice(&bytes).map_err(|error| Error::Malformed {
            what: format!("{}: {error}", file.display()),
        })
    }

    /// Writes a transcript, three lines for each call, so that changes can be read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn store(&self, file: &Path) -> Result<()> {
        let calls: Vec<String> = self.calls.iter().map(Call::text).collect();
        let text = format!(
            "{{\n\"client\": {},\n\"scenario\": {},\n\"calls\": [\n{}\n]}}\n",
            Value::from(self.client.as_str()),
            Value::from(self.scenario.as_str()),
            calls.join(",\n"),
        );
        if let Some(directory) = file.parent() {
            fs::create_dir_all(directory).doing(|| format!("make {}", directory.display()))?;
        }
        fs::write(file, text).doing(|| format!("write {}", file.display()))
    }

    /// The calls that only one of both has, in words; empty if a client sent the same.
    #[must_use]
    pub fn difference(&self, other: &Self) -> String {
        let lines = |one: &Self| {
            let mut lines: Vec<String> = one.calls.iter().map(Call::line).collect();
            lines.sort_unstable();
            lines
        };
        let (ours, theirs) = (lines(self), lines(other));
        let only = |mark: &str, one: &[String], two: &[String]| {
            let mut two = two.to_vec();
            let mut text = String::new();
            for line in one {
                match two.iter().position(|other| other == line) {
                    Some(place) => drop(two.swap_remove(place)),
                    None => text.push_str(&format!("{mark} {line}\n")),
                }
            }
            text
        };
        only("-", &ours, &theirs) + &only("+", &theirs, &ours)
    }
}

/// Every transcript below a directory, sorted by path.
///
/// # Errors
/// When the directory cannot be listed.
pub fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let listing = || format!("list {}", directory.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).doing(listing)? {
        let path = entry.doing(listing)?.path();
        if path.is_dir() {
            found.extend(files(&path)?);
        } else if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
