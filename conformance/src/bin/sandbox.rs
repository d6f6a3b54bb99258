//! `sandbox COMMAND [ARGUMENT…]`: runs a command in namespaces of its own.

use std::ffi::OsString;
use std::process::ExitCode;

use conformance::sandbox;

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, command)) if first == sandbox::INNER => {
            sandbox::finish(command).map(|never| match never {})
        }
        Some(_) => sandbox::enter(&arguments).map(ExitCode::from),
        None => {
            eprintln!("usage: sandbox COMMAND [ARGUMENT...]");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("sandbox: {error}");
        ExitCode::from(125)
    })
}
