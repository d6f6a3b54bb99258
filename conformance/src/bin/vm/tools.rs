//! Programs on this machine: building ours, and running those of others.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use conformance::error::Context;
use conformance::{Error, Result};

/// Where the built programs are.
#[derive(Debug)]
pub struct Programs {
    /// Our own binaries, plugins included.
    pub directory: PathBuf,
    /// Where what was fetched is kept.
    pub cache: PathBuf,
}

/// Builds the workspace's binaries, in the profile this program was built in.
pub fn build() -> Result<Programs> {
    let own = std::env::current_exe().doing(|| "find the runner's own file")?;
    let directory = own.parent().unwrap_or(Path::new("/")).to_owned();
    cargo(&directory, &["build", "--workspace", "--bins"])?;
    let target = directory
        .ancestors()
        .find(|dir| dir.join("CACHEDIR.TAG").is_file())
        .unwrap_or(&directory);
    let cache = target.join("vm");
    std::fs::create_dir_all(&cache).doing(|| format!("create {}", cache.display()))?;
    Ok(Programs { directory, cache })
}

/// The test programs of a workspace crate, with their names.
pub fn test_programs(programs: &Programs, package: &str) -> Result<Vec<(String, PathBuf)>> {
    let arguments = [
        "test",
        "--package",
        package,
        "--no-run",
        "--lib",
        "--tests",
        "--message-format=json",
    ];
    let output = cargo(&programs.directory, &arguments)?;
    let mut found = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<serde_json::Value>(line) else {
            continue;
        };
        let name = message
            .pointer("/target/name")
            .and_then(serde_json::Value::as_str);
        let program = message
            .get("executable")
            .and_then(serde_json::Value::as_str);
        if let (Some(name), Some(program)) = (name, program) {
            found.push((name.to_owned(), PathBuf::from(program)));
        }
    }
    if found.is_empty() {
        return Err(Error::Missing {
            what: format!("a test program of {package}"),
        });
    }
    Ok(found)
}

fn cargo(directory: &Path, arguments: &[&str]) -> Result<Output> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(arguments)
        .stderr(std::process::Stdio::inherit());
    if directory.ends_with("release") {
        command.arg("--release");
    }
    if let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR") {
        command.current_dir(manifest);
    }
    finish(&mut command)
}

/// Runs a program and gives what it printed; anything but success is an error that says so.
pub fn output(program: &str, arguments: &[&OsStr], directory: &Path) -> Result<Output> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    finish(&mut command)
}

fn finish(command: &mut Command) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().doing(|| format!("run {name}"))?;
    if output.status.success() {
        return Ok(output);
    }
    Err(Error::unexpected(
        format!("{name} to succeed"),
        String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    ))
}
