//! The Debian package on a Debian that nobody has used yet.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;
use crate::dist::{self, Job};
use crate::error::{Doing, Error};

/// The release whose podman still speaks to CNI plugins.
const RELEASE: &str = "bookworm";

/// Makes the package and tries it: installed in a fresh Debian in a directory, used by `cnitool` and podman, purged. Everything is in
/// namespaces that end with the trial, and the directory goes with it.
pub fn trial(job: &Job) -> Result<(), Error> {
    let files = dist::make(job)?;
    let package = files
        .iter()
        .find(|file| file.extension().is_some_and(|ending| ending == "deb"));
    let place = tempfile::Builder::new()
        .prefix("ferrule-trial-")
        .tempdir_in("/var/tmp")
        .doing(|| "make a directory in /var/tmp".to_owned())?;
    let root = place.path().join("debian");
    println!("-- a fresh Debian in {}", root.display());
    command::run(
        Command::new("debootstrap")
            .args(["--variant=minbase", RELEASE])
            .arg(&root)
            .stdout(std::process::Stdio::null()),
    )?;
    furnish(job, &root, package)?;
    let outcome =
        enter(job, &root, "host", "fetch").and_then(|()| enter(job, &root, "own", "inside"));
    sweep_cgroups();
    outcome
}

/// Puts package and scripts where the trial finds them.
fn furnish(job: &Job, root: &Path, package: Option<&PathBuf>) -> Result<(), Error> {
    let trial = root.join("trial");
    fs::create_dir_all(&trial).doing(|| format!("make {}", trial.display()))?;
    let scripts = job.root.join("xtask/trial");
    let copies = [
        (scripts.join("fetch"), trial.join("fetch")),
        (scripts.join("inside"), trial.join("inside")),
    ];
    let package = package.map(|package| (package.clone(), trial.join("package.deb")));
    for (from, to) in copies.into_iter().chain(package) {
        fs::copy(&from, &to).doing(|| format!("copy {}", from.display()))?;
    }
    Ok(())
}

fn enter(job: &Job, root: &Path, network: &str, script: &str) -> Result<(), Error> {
    command::run(
        Command::new(job.root.join("xtask/trial/enter"))
            .arg(root)
            .args([network, "bash", &format!("/trial/{script}")]),
    )
}

/// Control groups have no namespace that would take them along: podman's are removed where they are empty.
fn sweep_cgroups() {
    let Ok(controllers) = fs::read_dir("/sys/fs/cgroup") else {
        return;
    };
    for place in controllers.flatten().map(|entry| entry.path()) {
        let parents = [place.join("libpod_parent"), place];
        for parent in parents
            .iter()
            .filter(|path| path.ends_with("libpod_parent"))
        {
            for one in fs::read_dir(parent).into_iter().flatten().flatten() {
                // Whatever is in use is not ours, and stays.
                let _ = fs::remove_dir(one.path());
            }
            let _ = fs::remove_dir(parent);
        }
    }
}
