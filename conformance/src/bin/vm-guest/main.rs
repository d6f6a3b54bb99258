//! What runs inside the machine of `vm`: its first process, and each check.
//!
//! As the first process it gets the machine ready, runs every selected check in a sandbox of its own, prints one line for
//! each, and a last one `N passed, N failed, N skipped`, and switches the machine off. With `--check NAME` it is that check.

mod boot;
mod checks;
mod jobs;
mod libtest;
mod report;
mod vlans;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("--check") => check(arguments.get(2).map_or("", String::as_str)),
        Some("--list") => {
            checks::all().for_each(|check| println!("{}", check.name));
            ExitCode::SUCCESS
        }
        _ if std::process::id() == 1 => boot::first_process(),
        _ => {
            eprintln!("vm-guest: --check NAME, --list, or to be the first process of a machine");
            ExitCode::from(2)
        }
    }
}

fn check(name: &str) -> ExitCode {
    let Some(check) = checks::all().find(|check| check.name == name) else {
        eprintln!("no check is called {name}");
        return ExitCode::from(2);
    };
    match (check.run)() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
