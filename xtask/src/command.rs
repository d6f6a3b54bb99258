//! Programs that are started, and files that are read and written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Doing, Error};

/// Runs a program that must succeed.
pub fn run(command: &mut Command) -> Result<(), Error> {
    let status = command
        .status()
        .doing(|| format!("start {}", command.get_program().display()))?;
    if status.success() {
        return Ok(());
    }
    Err(Error::Program {
        program: line(command),
        status,
    })
}

/// What a program that must succeed prints on standard output.
pub fn output(command: &mut Command) -> Result<Vec<u8>, Error> {
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .doing(|| format!("start {}", command.get_program().display()))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(Error::Program {
        program: line(command),
        status: output.status,
    })
}

fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

/// The bytes of a file.
pub fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).doing(|| format!("read {}", path.display()))
}

/// Writes a file; its directory is made.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).doing(|| format!("make {}", directory.display()))?;
    }
    fs::write(path, bytes).doing(|| format!("write {}", path.display()))
}

/// The path from the root.
pub fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).doing(|| format!("find {}", path.display()))
}
