//! `cargo xtask`: makes what is shipped, and tries it out.

mod archive;
mod command;
mod deb;
mod dist;
mod error;
mod man;
mod sbom;
mod trial;
mod verify;
mod workspace;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use error::Error;

/// Makes what is shipped, and tries it out.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Make archives, checksums, bill of materials and Debian package
    Dist(Dist),
    /// Try the Debian package in a fresh Debian, as root; needs debootstrap
    Trial,
}

#[derive(clap::Args)]
struct Dist {
    /// Rust target to build for [default: this machine's]
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Directory of the outcome [default: target/dist]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Make everything a second time, from a copy of the source in another place, and compare
    #[arg(long)]
    verify: bool,
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::Dist(arguments) => make(&arguments),
        Task::Trial => job(None, None).and_then(|job| trial::trial(&job)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn make(arguments: &Dist) -> Result<(), Error> {
    let job = job(arguments.target.as_deref(), arguments.out.as_deref())?;
    let files = dist::make(&job)?;
    for file in &files {
        let size = std::fs::metadata(file).map_or(0, |meta| meta.len());
        println!("{:>9} KiB  {}", size.div_ceil(1024), file.display());
    }
    if arguments.verify {
        verify::verify(&job, &files)?;
        println!(
            "a second build, elsewhere, made the same {} files",
            files.len()
        );
    }
    Ok(())
}

fn job(target: Option<&str>, out: Option<&Path>) -> Result<dist::Job, Error> {
    let root = workspace::root();
    Ok(dist::Job {
        target: match target {
            Some(target) => target.to_owned(),
            None => workspace::host_target()?,
        },
        out: match out {
            Some(out) => command::absolute(out)?,
            None => root.join("target/dist"),
        },
        target_dir: root.join("target"),
        epoch: workspace::epoch(&root)?,
        root,
    })
}
