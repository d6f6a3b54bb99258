//! The workspace's own binaries: having them built, and where they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Context;
use crate::{Error, Result};

/// The running program's own file.
///
/// # Errors
/// When `/proc` is not there.
pub fn own_path() -> Result<PathBuf> {
    std::env::current_exe().map_err(|source| Error::System {
        what: "find the program's own file".into(),
        source,
    })
}

/// The directory a program stands in.
#[must_use]
pub fn directory_of(program: &Path) -> PathBuf {
    program.parent().unwrap_or(Path::new("/")).to_owned()
}

/// Builds the workspace's binaries when cargo started the program; they come to stand beside it.
///
/// # Errors
/// When they do not build.
pub fn build() -> Result<()> {
    let Some(cargo) = std::env::var_os("CARGO") else {
        return Ok(());
    };
    eprintln!("Building the plugins ...");
    let mut command = Command::new(cargo);
    command.args(["build", "--release", "--workspace", "--bins"]);
    if let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR") {
        command.current_dir(manifest);
    }
    let status = command.status().map_err(|source| Error::System {
        what: "run cargo build".into(),
        source,
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(Error::Missing {
            what: "a build of the plugins without errors".into(),
        })
    }
}

/// The names of the workspace's plugins, sorted.
///
/// # Errors
/// When the source is not where it was when this was built.
pub fn plugins() -> Result<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../plugins");
    let mut names = Vec::new();
    for kind in ["main", "ipam", "meta"] {
        let directory = root.join(kind);
        let entries = directory
            .read_dir()
            .doing(|| format!("list {}", directory.display()))?;
        for entry in entries {
            let path = entry
                .doing(|| format!("list {}", directory.display()))?
                .path();
            if let Some(name) = path.file_name()
                && path.join("src/main.rs").is_file()
            {
                names.push(name.to_string_lossy().into_owned());
            }
        }
    }
    names.sort();
    Ok(names)
}
