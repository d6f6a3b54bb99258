//! `cnitool`: attaches namespaces to networks by hand, as a runtime would, and shows what is attached.

mod cli;
mod doctor;
mod inspect;
mod list;
mod output;
mod settings;
mod verbs;

use std::env;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use cli::{Cli, Verb};
use output::Verdict;

type Error = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(&cli) {
        Ok(verdict) => verdict.exit_code(),
        Err(error) => {
            output::failure(&cli, error.as_ref());
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<Verdict, Error> {
    match &cli.verb {
        Verb::Add(target) => verbs::add(cli, target),
        Verb::Check(target) => verbs::check(cli, target),
        Verb::Del(target) => verbs::del(cli, target),
        Verb::Gc { network, all } => verbs::gc(cli, &network.network, *all),
        Verb::Reapply { network } => verbs::reapply(cli, network.as_deref()),
        Verb::Status(network) => verbs::status(cli, &network.network),
        Verb::List { network } => list::list(cli, network.as_deref()),
        Verb::Inspect { id } => inspect::inspect(cli, id),
        Verb::Doctor { network } => doctor::doctor(cli, network.as_deref()),
        Verb::Completion { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "cnitool", &mut text);
            io::stdout().write_all(&text)?;
            Ok(Verdict::Fine)
        }
    }
}

/// Help that was asked for goes to standard output; so does the one for no arguments at all.
fn usage(error: &clap::Error) -> ExitCode {
    let bare = env::args_os().len() < 2;
    let (asked, text) = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => (true, error.to_string()),
        _ if bare => (true, Cli::command().render_help().to_string()),
        _ => (false, error.to_string()),
    };
    let written = if asked {
        io::stdout().write_all(text.as_bytes())
    } else {
        io::stderr().write_all(text.as_bytes())
    };
    if asked && written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
