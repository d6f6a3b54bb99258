//! `cargo demo`: a container gets its network, shown with real packets.
//!
//! Started by cargo it first builds every plugin of the workspace, then runs the network lists
//! that real runtimes ship, each in a sandbox of its own, and prints one line for every fact that
//! traffic has shown. With `--plugins DIR` it judges any other plugin directory.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use conformance::demo::{Circumstances, Scene, Style, play};
use conformance::net::Host;
use conformance::sandbox::Launcher;
use conformance::{Error, Result, workspace};

/// Gives containers their network and shows by real traffic what works.
#[derive(Debug, Parser)]
#[command(name = "demo", version)]
struct Options {
    /// Judge the plugins of this directory instead of building our own.
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,

    /// Make Nomad's admin chain before list b, as Nomad itself does.
    #[arg(long)]
    admin_chain: bool,

    /// Only these lists.
    #[arg(value_name = "LIST", value_parser = ["a", "b", "c", "d"])]
    lists: Vec<String>,

    /// Run one list here; used by the demo itself, inside a sandbox.
    #[arg(long, hide = true, value_name = "LIST")]
    inside: Option<String>,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether everything that was tried worked.
fn run(options: &Options) -> Result<bool> {
    let program = workspace::own_path()?;
    if options.inside.is_none() {
        workspace::build()?;
    }
    let plugins = match &options.plugins {
        Some(directory) => directory.canonicalize().map_err(|source| Error::System {
            what: format!("plugin directory {}", directory.display()),
            source,
        })?,
        None => workspace::directory_of(&program),
    };
    match &options.inside {
        Some(list) => inside(list, &plugins, options.admin_chain),
        None => outside(options, &program, &plugins),
    }
}

fn inside(list: &str, plugins: &Path, admin_chain: bool) -> Result<bool> {
    let scene = Scene::named(list).ok_or_else(|| Error::Missing {
        what: format!("a list called {list}"),
    })?;
    play(
        &scene,
        &Host::new()?,
        plugins,
        Circumstances { admin_chain },
    )
}

/// Runs each list in a sandbox of its own.
fn outside(options: &Options, program: &Path, plugins: &Path) -> Result<bool> {
    let launcher = Launcher::beside(program)?;
    let style = Style::of_terminal();
    println!(
        "{}",
        style.bold(&format!("Plugins of {}", plugins.display()))
    );
    let mut failed = Vec::new();
    for scene in Scene::all() {
        if !options.lists.is_empty() && !options.lists.iter().any(|list| list == scene.key) {
            continue;
        }
        let mut command = launcher.command(program);
        command
            .args(["--inside", scene.key, "--plugins"])
            .arg(plugins);
        if options.admin_chain {
            command.arg("--admin-chain");
        }
        let status = command.status().map_err(|source| Error::System {
            what: format!("run list {}", scene.key),
            source,
        })?;
        if !status.success() {
            failed.push(scene.key);
        }
    }
    println!();
    if failed.is_empty() {
        println!(
            "{}",
            style.good("Everything that was tried worked, and nothing was left behind.")
        );
    } else {
        println!(
            "{}",
            style.bad(&format!(
                "Not everything worked: list {}.",
                failed.join(", ")
            ))
        );
    }
    Ok(failed.is_empty())
}
