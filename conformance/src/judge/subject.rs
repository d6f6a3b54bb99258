//! The plugin that is judged.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::check::{VERSIONS, rank};
use super::profile::{self, Profile, Role};
use crate::chain::standard_path;
use crate::error::{Context, Error, Result};
use crate::plugin::Call;

/// A plugin, where it is, and what is known of it.
#[derive(Debug)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its directory.
    pub directory: PathBuf,
    /// A configuration that the caller vouches for.
    pub config: Option<Value>,
    profile: Profile,
}

impl Subject {
    /// The plugin of this name in a directory.
    #[must_use]
    pub fn new(directory: &Path, name: &str, config: Option<Value>) -> Self {
        Self {
            name: name.to_owned(),
            directory: directory.to_owned(),
            config,
            profile: profile::of(name),
        }
    }

    /// Its file.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    pub(super) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Whether the suite knows a plugin of this name.
    #[must_use]
    pub fn is_known(&self) -> bool {
        self.profile.role != Role::Unknown
    }

    /// The versions that it says it supports and that exist, oldest first. One that does not know the command VERSION
    /// counts as of 0.1.0, one that answers it wrongly as of the newest.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn versions(&self) -> Result<Vec<String>> {
        let answer = Call::new(self.program())
            .env("PATH", standard_path())
            .env("CNI_COMMAND", "VERSION")
            .env("CNI_PATH", &self.directory)
            .stdin(r#"{"cniVersion":"1.0.0"}"#)
            .run();
        let answer = match answer {
            Err(Error::Timeout { .. }) => return Ok(vec!["1.0.0".into()]),
            other => other?,
        };
        let too_old = answer
            .error()
            .is_some_and(|error| error.msg.contains("unknown CNI_COMMAND"));
        if too_old {
            return Ok(vec!["0.1.0".into()]);
        }
        let listed: Vec<String> = answer
            .json()
            .as_ref()
            .and_then(|value| value.get("supportedVersions")?.as_array())
            .into_iter()
            .flatten()
            .filter_map(|version| version.as_str().map(str::to_owned))
            .collect();
        let mut exist: Vec<String> = listed
            .into_iter()
            .filter(|version| VERSIONS.contains(&version.as_str()))
            .collect();
        exist.sort_by_key(|version| rank(version));
        exist.dedup();
        if exist.is_empty() {
            exist.push("1.0.0".into());
        }
        Ok(exist)
    }
}

/// The names of the plugins in a directory: its executable files. In a directory that holds programs of our own, too, such as
/// a build directory, only those whose names the suite knows.
///
/// # Errors
/// When the directory cannot be read.
pub fn plugins_in(directory: &Path) -> Result<Vec<String>> {
    let listing = || format!("list {}", directory.display());
    let mixed = directory.join("sandbox").is_file();
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).doing(listing)? {
        let path = entry.doing(listing)?.path();
        let Ok(meta) = path.metadata() else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_program = meta.is_file() && meta.permissions().mode() & 0o111 != 0;
        let wanted = !mixed || profile::of(&name).role != Role::Unknown;
        if is_program && wanted && !name.starts_with('.') {
            names.push(name.into_owned());
        }
    }
    names.sort();
    Ok(names)
}
