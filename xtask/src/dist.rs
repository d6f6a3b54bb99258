//! Everything that a release consists of.

use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256, Sha512};

use crate::archive::{self, Entry};
use crate::error::Error;
use crate::workspace::{Workspace, cargo};
use crate::{command, deb, man, sbom};

/// What is to be made, of what, and where.
#[derive(Clone, Debug)]
pub struct Job {
    /// The source.
    pub root: PathBuf,
    /// The Rust target.
    pub target: String,
    /// Cargo's directory.
    pub target_dir: PathBuf,
    /// Where the outcome goes.
    pub out: PathBuf,
    /// The time of everything, in seconds since 1970.
    pub epoch: u64,
}

/// The names of an architecture.
#[derive(Clone, Copy, Debug)]
pub struct Arch {
    /// That of Go, and so of the reference set's archives.
    pub go: &'static str,
    /// Debian's.
    pub debian: &'static str,
}

impl Arch {
    /// The names for a Rust target.
    pub fn of(target: &str) -> Result<Self, Error> {
        let cpu = target.split('-').next().unwrap_or_default();
        let (go, debian) = match cpu {
            "x86_64" => ("amd64", "amd64"),
            "aarch64" => ("arm64", "arm64"),
            "armv7" if target.ends_with("hf") => ("arm", "armhf"),
            "riscv64gc" | "riscv64a23" => ("riscv64", "riscv64"),
            "powerpc64le" => ("ppc64le", "ppc64el"),
            "s390x" => ("s390x", "s390x"),
            "loongarch64" => ("loong64", "loong64"),
            _ => return Err(Error::Arch(target.to_owned())),
        };
        Ok(Self { go, debian })
    }
}

/// The parts that the archives and the package are put together from.
pub struct Parts {
    /// Which workspace.
    pub workspace: Workspace,
    /// For which machine.
    pub arch: Arch,
    /// The plugins, by name.
    pub plugins: Vec<(String, Vec<u8>)>,
    /// `cnitool`.
    pub cnitool: Vec<u8>,
    /// The bill of materials.
    pub sbom: Vec<u8>,
    /// Manual pages, by file name.
    pub man: Vec<(String, Vec<u8>)>,
}

/// Builds, and writes everything. Returns the files, each with its checksums behind it.
pub fn make(job: &Job) -> Result<Vec<PathBuf>, Error> {
    let arch = Arch::of(&job.target)?;
    let workspace = Workspace::read(&job.root, &job.target)?;
    build(job, &workspace)?;
    let program = |name: &str| {
        let built = job.target_dir.join(&job.target).join("release").join(name);
        command::read(&built)
    };
    let mut plugins = Vec::new();
    for name in &workspace.plugins {
        plugins.push((name.clone(), program(name)?));
    }
    let parts = Parts {
        arch,
        plugins,
        cnitool: program("cnitool")?,
        sbom: sbom::cyclone_dx(job, &workspace)?,
        man: man::pages(job, &workspace)?,
        workspace,
    };
    write(job, &parts)
}

fn write(job: &Job, parts: &Parts) -> Result<Vec<PathBuf>, Error> {
    let version = &parts.workspace.version;
    let go = parts.arch.go;
    let files = [
        (
            format!("cni-plugins-linux-{go}-v{version}.tgz"),
            plugins(job, parts)?,
        ),
        (
            format!("cnitool-linux-{go}-v{version}.tgz"),
            tool(job, parts)?,
        ),
        (
            format!("cni-plugins-linux-{go}-v{version}.cdx.json"),
            parts.sbom.clone(),
        ),
        (
            format!("{}_{version}_{}.deb", deb::NAME, parts.arch.debian),
            deb::package(job, parts)?,
        ),
    ];
    let mut written = Vec::new();
    for (name, bytes) in files {
        let sums = [
            ("sha256", hex(&Sha256::digest(&bytes))),
            ("sha512", hex(&Sha512::digest(&bytes))),
        ];
        written.push(job.out.join(&name));
        command::write(&job.out.join(&name), &bytes)?;
        for (kind, sum) in sums {
            let path = job.out.join(format!("{name}.{kind}"));
            command::write(&path, format!("{sum}  {name}\n").as_bytes())?;
            written.push(path);
        }
    }
    Ok(written)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The archive that is unpacked into `/opt/cni/bin`: flat, as the reference set's.
fn plugins(job: &Job, parts: &Parts) -> Result<Vec<u8>, Error> {
    let mut entries = texts(job)?;
    for (name, bytes) in &parts.plugins {
        entries.push(Entry::program(name, bytes.clone()));
    }
    archive::tgz(entries, job.epoch)
}

/// `cnitool` apart: a runtime may call whatever stands in `/opt/cni/bin`.
fn tool(job: &Job, parts: &Parts) -> Result<Vec<u8>, Error> {
    let mut entries = texts(job)?;
    entries.push(Entry::program("cnitool", parts.cnitool.clone()));
    for (name, bytes) in parts.man.iter().filter(|(name, _)| name == "cnitool.8") {
        entries.push(Entry::file(name, bytes.clone()));
    }
    archive::tgz(entries, job.epoch)
}

fn texts(job: &Job) -> Result<Vec<Entry>, Error> {
    let text = |name: &str| Ok(Entry::file(name, command::read(&job.root.join(name))?));
    Ok(vec![text("LICENSE")?, text("README.md")?])
}

/// Has the plugins and `cnitool` built, with no path of this machine in them.
fn build(job: &Job, workspace: &Workspace) -> Result<(), Error> {
    let mut cargo = Command::new(cargo());
    cargo
        .current_dir(&job.root)
        .args(["build", "--release", "--locked", "--package", "conformance"])
        .args(["--bin", "cnitool", "--target", &job.target])
        .arg("--target-dir")
        .arg(&job.target_dir)
        .arg("--config")
        .arg(format!(
            "target.{}.rustflags={:?}",
            job.target,
            remapped(job)?
        ));
    for plugin in &workspace.plugins {
        cargo.args(["--package", plugin, "--bin", plugin]);
    }
    // They would take the place of the flags above, and of those in .cargo/config.toml.
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(variable);
    }
    command::run(&mut cargo)
}

/// Compiler flags that give each directory which may be in a binary a name that is the same everywhere. Of several that
/// fit a path the last counts.
fn remapped(job: &Job) -> Result<Vec<String>, Error> {
    let compiler = |argument: &[&str]| {
        let printed = command::output(Command::new("rustc").args(argument))?;
        Ok::<_, Error>(String::from_utf8_lossy(&printed).trim().to_owned())
    };
    let sysroot = PathBuf::from(compiler(&["--print", "sysroot"])?);
    let version = compiler(&["-vV"])?;
    let commit = version
        .lines()
        .find_map(|line| line.strip_prefix("commit-hash: "))
        .unwrap_or("unknown");
    let names = [
        (job.root.clone(), "/ferrule".to_owned()),
        (job.target_dir.clone(), "/target".to_owned()),
        (cargo_home(), "/cargo".to_owned()),
        (
            sysroot.join("lib/rustlib/src/rust"),
            format!("/rustc/{commit}"),
        ),
    ];
    Ok(names
        .into_iter()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect())
}

fn cargo_home() -> PathBuf {
    match std::env::var_os("CARGO_HOME") {
        Some(home) => PathBuf::from(home),
        None => Path::new(&std::env::var_os("HOME").unwrap_or_default()).join(".cargo"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_are_named_as_the_reference_set_and_debian_do() {
        for (target, go, debian) in [
            ("x86_64-unknown-linux-gnu", "amd64", "amd64"),
            ("aarch64-unknown-linux-musl", "arm64", "arm64"),
            ("armv7-unknown-linux-gnueabihf", "arm", "armhf"),
            ("powerpc64le-unknown-linux-gnu", "ppc64le", "ppc64el"),
        ] {
            let arch = Arch::of(target).unwrap();
            assert_eq!((arch.go, arch.debian), (go, debian), "{target}");
        }
        assert!(Arch::of("m68k-unknown-linux-gnu").is_err());
    }
}
