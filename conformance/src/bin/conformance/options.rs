//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Says of a directory of CNI plugins, clause by clause, where it keeps to the specification and to the plugins' documented
/// behaviour. Exit code 0: all passed; 1: something failed; 2: it could not be judged.
#[derive(Debug, Parser)]
#[command(name = "conformance", version)]
pub struct Options {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Judge plugins.
    Run(RunOptions),
    /// List the checks with their clauses.
    List(ListOptions),
}

/// How a report is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For systems that collect test results.
    Junit,
}

/// What to judge.
#[derive(Args, Debug)]
pub struct RunOptions {
    /// The directory of the plugins.
    #[arg(long, value_name = "DIR")]
    pub cni_path: PathBuf,

    /// Only this plugin; may be given again.
    #[arg(long, value_name = "NAME")]
    pub plugin: Vec<String>,

    /// Only in this version of the specification.
    #[arg(long, value_name = "VERSION")]
    pub spec: Option<String>,

    /// Only checks of this id or group; `*` stands for any text.
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,

    /// A configuration with which the plugin works, for a plugin that the suite does not know.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// How the report is written, to standard output.
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    pub report: Form,

    /// Faults that are expected: the run passes if it finds exactly these.
    #[arg(long, value_name = "FILE")]
    pub known: Option<PathBuf>,

    /// Play these checks here; used by the command itself, inside a sandbox.
    #[arg(long, hide = true, value_delimiter = ',')]
    pub inside: Vec<String>,

    /// The configuration, as text; used by the command itself.
    #[arg(long, hide = true)]
    pub inside_config: Option<String>,
}

/// What to list.
#[derive(Args, Debug)]
pub struct ListOptions {
    /// Only checks of this id or group; `*` stands for any text.
    #[arg(long, value_name = "PATTERN")]
    pub only: Option<String>,
}
