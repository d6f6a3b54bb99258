//! `torture`: stops, starves and deceives the plugins at every step, and looks at what is left.
//!
//! `kill` stops each plugin with SIGKILL at each system call, `fail` makes each system call and
//! each request to the kernel fail, `soak` runs random commands with kills for some minutes. Each
//! prints a table and fails if anything was left behind.

mod build;
mod dice;
mod fail;
mod kill;
mod lan;
mod lists;
mod reset;
mod rows;
mod soak;
mod trace;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use conformance::Result;

use lists::{LISTS, List};
use rows::Job;
use trace::Plan;

/// Kills plugins, makes their system calls fail, and looks at what is left.
#[derive(Parser)]
#[command(name = "torture", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// SIGKILL at every system call of ADD and DEL
    Kill(Choice),
    /// Every system call and every request to the kernel fails in turn
    Fail(Choice),
    /// Random commands with kills on a changing set of containers
    Soak {
        /// How long
        #[arg(long, value_name = "N", default_value_t = 1.0)]
        minutes: f64,
        /// Where the random numbers start [default: another one each time]
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        choice: Choice,
    },
    /// One line of a table; used by the program itself, inside a sandbox
    #[command(hide = true)]
    Inside {
        #[arg(long)]
        plugins: PathBuf,
        /// The line, as JSON
        job: String,
    },
    /// Runs a program under the tracer; used by the program itself
    #[command(hide = true)]
    Trace {
        #[arg(long)]
        plan: Plan,
        #[arg(long)]
        report: PathBuf,
        #[arg(long)]
        stdout: Option<PathBuf>,
        program: PathBuf,
    },
    /// Becomes a traced program; used by the tracer
    #[command(hide = true)]
    Traced { program: PathBuf },
}

/// What to torture.
#[derive(Args, Clone)]
pub struct Choice {
    /// Only these lists [default: all that any kernel can play]
    #[arg(long = "list", value_name = "LIST", value_parser = LISTS.map(|list| list.key))]
    lists: Vec<String>,
    /// Only these plugins
    #[arg(long = "plugin", value_name = "PLUGIN")]
    only: Vec<String>,
    /// Only these commands: ADD, DEL
    #[arg(long = "verb", value_name = "COMMAND", value_parser = ["ADD", "DEL"])]
    verbs: Vec<String>,
    /// Only every so many calls
    #[arg(long, value_name = "N", default_value_t = 1)]
    every: usize,
    /// The first call, from 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    from: usize,
    /// How many lines of the table at a time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Torture the plugins of this directory instead of building our own
    #[arg(long, value_name = "DIR")]
    plugins: Option<PathBuf>,
}

impl Choice {
    fn lists(&self) -> Result<Vec<List>> {
        if self.lists.is_empty() {
            let common = LISTS.into_iter().filter(|list| list.rare().is_none());
            return Ok(common.collect());
        }
        self.lists.iter().map(|key| List::named(key)).collect()
    }
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(command: Command) -> Result<u8> {
    match command {
        Command::Kill(choice) => rows::table(&choice, &rows::kills(&choice)?),
        Command::Fail(choice) => rows::table(&choice, &rows::failures(&choice)?),
        Command::Soak {
            minutes,
            seed,
            choice,
        } => {
            let jobs = rows::soaks(&choice, minutes, seed)?;
            rows::table(&choice, &jobs)
        }
        Command::Inside { plugins, job } => inside(&plugins, &job),
        Command::Trace {
            plan,
            report,
            stdout,
            program,
        } => trace::run(&plan, &report, stdout.as_deref(), &program),
        Command::Traced { program } => match trace::become_traced(&program)? {},
    }
}

fn inside(plugins: &Path, job: &str) -> Result<u8> {
    let job = Job::parse(job)?;
    let tally = job.run(plugins, &build::own_path()?)?;
    println!("{}", serde_json::to_string(&tally).unwrap_or_default());
    Ok(0)
}
