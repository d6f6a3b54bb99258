//! Having the plugins built, and where they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use conformance::error::Context;
use conformance::{Error, Result};

/// The running program's own file.
pub fn own_path() -> Result<PathBuf> {
    std::env::current_exe().doing(|| "find the program's own file")
}

/// The directory of the plugins: the one that was asked for, or our own, which are built first when
/// cargo started us.
pub fn plugins(asked: Option<&Path>) -> Result<PathBuf> {
    if let Some(directory) = asked {
        return directory
            .canonicalize()
            .doing(|| format!("plugin directory {}", directory.display()));
    }
    let program = own_path()?;
    let directory = program.parent().unwrap_or(Path::new("/")).to_owned();
    if let Some(cargo) = std::env::var_os("CARGO") {
        build(Command::new(cargo), directory.ends_with("release"))?;
    }
    Ok(directory)
}

fn build(mut cargo: Command, release: bool) -> Result<()> {
    cargo.args(["build", "--quiet", "--workspace", "--bins"]);
    if release {
        cargo.arg("--release");
    }
    if let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR") {
        cargo.current_dir(manifest);
    }
    let status = cargo.status().doing(|| "run cargo build")?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Missing {
        what: "a build of the plugins without errors".into(),
    })
}
