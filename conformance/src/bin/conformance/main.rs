//! `conformance`: says of a directory of CNI plugins, clause by clause, where it keeps to the specification.

mod list;
mod options;
mod progress;
mod run;

use std::process::ExitCode;

use clap::Parser;
use conformance::Result;

use options::{Command, Options};

/// The judgement could not be made.
const COULD_NOT_RUN: u8 = 2;

fn main() -> ExitCode {
    let outcome: Result<ExitCode> = match Options::parse().command {
        Command::Run(options) => run::run(&options),
        Command::List(options) => {
            list::list(&options);
            Ok(ExitCode::SUCCESS)
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("conformance: {error}");
        ExitCode::from(COULD_NOT_RUN)
    })
}
