//! Whether somebody else gets the same bytes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::dist::{self, Job};
use crate::error::{Doing, Error};

/// Makes everything again, from a copy of the source in another place and with another target directory, and compares.
pub fn verify(job: &Job, files: &[PathBuf]) -> Result<(), Error> {
    let place = tempfile::tempdir().doing(|| "make a directory".to_owned())?;
    let root = place.path().join("a copy of the source");
    copy(&job.root, &root)?;
    let again = Job {
        target_dir: place.path().join("another target directory"),
        out: place.path().join("out"),
        root,
        ..job.clone()
    };
    dist::make(&again)?;
    for file in files {
        let name = file.file_name().map(PathBuf::from).unwrap_or_default();
        compare(file, &again.out.join(name))?;
    }
    Ok(())
}

/// Copies what git knows or would take in.
fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let listed = command::output(Command::new("git").current_dir(from).args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]))?;
    let listed = String::from_utf8_lossy(&listed);
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let (source, copy) = (from.join(name), to.join(name));
        if !source.exists() {
            continue;
        }
        if let Some(directory) = copy.parent() {
            fs::create_dir_all(directory).doing(|| format!("make {}", directory.display()))?;
        }
        fs::copy(&source, &copy).doing(|| format!("copy {}", source.display()))?;
    }
    Ok(())
}

fn compare(first: &Path, second: &Path) -> Result<(), Error> {
    let (one, other) = (command::read(first)?, command::read(second)?);
    let length = one.len().min(other.len());
    let differing = one.iter().zip(&other).position(|(a, b)| a != b);
    match differing.or_else(|| (one.len() != other.len()).then_some(length)) {
        None => Ok(()),
        Some(at) => Err(Error::Differs {
            file: first.to_owned(),
            at,
        }),
    }
}
