//! `cargo bench-cni`: what lists cost, ours against another plugin directory.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use clap::{Parser, Subcommand};
use conformance::bench::{
    Cycle, Row, Setting, cycles, list_table, process_counts, scale, start_up, start_up_table,
};
use conformance::error::Context;
use conformance::sandbox::Launcher;
use conformance::{Error, Result, lists, workspace};
use serde::de::DeserializeOwned;

/// Measures lists a and b and the start-up of each plugin, and prints Markdown.
#[derive(Debug, Parser)]
#[command(name = "bench", version)]
struct Options {
    /// The plugin directory to compare with.
    #[arg(long, value_name = "DIR", default_value = "/usr/lib/cni")]
    reference: PathBuf,

    /// How often each kind takes its turn.
    #[arg(long, default_value_t = 6)]
    rounds: u32,

    /// Cycles of ADD, CHECK and DEL in each turn.
    #[arg(long, default_value_t = 5)]
    cycles: u32,

    /// Other containers that are attached meanwhile.
    #[arg(long, default_value_t = 0)]
    others: u32,

    /// Measure here; used by the benchmark itself, inside a sandbox.
    #[arg(long, hide = true, value_names = ["LIST", "DIR", "TASK"], num_args = 3)]
    inside: Vec<String>,

    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Everything: by attachments and leases that are there already, many at once, packets, the floor.
    All(scale::Plan),
    /// The start-up of each plugin, and nothing else.
    StartUp,
    /// Carry out orders from standard input, inside a sandbox; used by the benchmark itself.
    #[command(hide = true)]
    Worker {
        /// The plugin directory.
        plugins: PathBuf,
        /// The list's text.
        list: String,
    },
}

const LISTS: [(&str, &str, &str); 2] = [
    ("a", "a: bridge, firewall, portmap", lists::NOMAD),
    (
        "b",
        "b: the same, dual stack, iptables by name",
        lists::NOMAD_DUAL,
    ),
];

fn main() -> ExitCode {
    let options = Options::parse();
    let outcome = match (&options.what, options.inside.as_slice()) {
        (Some(What::All(plan)), _) => everything(plan),
        (Some(What::Worker { plugins, list }), _) => scale::work(plugins, list),
        (Some(What::StartUp), _) => built().and_then(|(_, ours)| print_start_up(&options, &ours)),
        (None, [list, plugins, task]) => inside(&options, list, plugins, task),
        (None, _) => compare(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures all, prints the page and writes it if asked to.
fn everything(plan: &scale::Plan) -> Result<()> {
    let results = scale::run(plan)?;
    println!("{}", results.page());
    match &plan.docs {
        Some(directory) => results.write(directory),
        None => Ok(()),
    }
}

/// One turn, in a sandbox; the result goes to standard output as JSON.
fn inside(options: &Options, list: &str, plugins: &str, task: &str) -> Result<()> {
    let (_, _, text) = LISTS
        .iter()
        .find(|(key, _, _)| *key == list)
        .ok_or_else(|| Error::Missing {
            what: format!("a list called {list}"),
        })?;
    let setting = Setting {
        plugins: plugins.into(),
        list: (*text).to_owned(),
        cycles: options.cycles,
        others: options.others,
    };
    let json = match task {
        "count" => serde_json::to_string(&process_counts(&setting)?),
        _ => serde_json::to_string(&cycles(&setting)?),
    };
    println!(
        "{}",
        json.map_err(std::io::Error::other)
            .doing(|| "write the result")?
    );
    Ok(())
}

fn compare(options: &Options) -> Result<()> {
    let (program, ours) = built()?;
    let launcher = Launcher::beside(&program)?;
    let turn = Turn {
        launcher: &launcher,
        program: &program,
        options,
    };
    let mut rows = Vec::new();
    for (key, title, _) in LISTS {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for round in 0..options.rounds {
            eprintln!("list {key}, round {} of {} ...", round + 1, options.rounds);
            own.extend(turn.run::<Vec<Cycle>>(key, &ours, "time")?);
            other.extend(turn.run::<Vec<Cycle>>(key, &options.reference, "time")?);
        }
        rows.push(Row {
            title: title.to_owned(),
            ours: own,
            theirs: other,
            our_processes: turn.run(key, &ours, "count")?,
            their_processes: turn.run(key, &options.reference, "count")?,
        });
    }
    println!("{}", list_table(&rows));
    print_start_up(options, &ours)
}

/// This program, and the directory of the plugins, which have been built.
fn built() -> Result<(PathBuf, PathBuf)> {
    let program = workspace::own_path()?;
    workspace::build()?;
    let ours = workspace::directory_of(&program);
    Ok((program, ours))
}

fn print_start_up(options: &Options, ours: &Path) -> Result<()> {
    eprintln!("start-up ...");
    let plugins = workspace::plugins()?;
    let names: Vec<&str> = plugins.iter().map(String::as_str).collect();
    let (empty, rows) = start_up(&names, ours, &options.reference, options.rounds * 20)?;
    println!("{}", start_up_table(empty, &rows));
    Ok(())
}

/// How a turn is started.
struct Turn<'a> {
    launcher: &'a Launcher,
    program: &'a Path,
    options: &'a Options,
}

impl Turn<'_> {
    fn run<T: DeserializeOwned>(&self, list: &str, plugins: &Path, task: &str) -> Result<T> {
        let mut command: Command = self.launcher.command(self.program);
        command.args(["--cycles", &self.options.cycles.to_string()]);
        command.args(["--others", &self.options.others.to_string()]);
        command.arg("--inside").arg(list).arg(plugins).arg(task);
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .doing(|| format!("measure {}", plugins.display()))?;
        if !output.status.success() {
            return Err(Error::unexpected(
                "a measurement",
                output.status.to_string(),
            ));
        }
        serde_json::from_slice(&output.stdout).map_err(|error| Error::Malformed {
            what: format!("a measurement: {error}"),
        })
    }
}
