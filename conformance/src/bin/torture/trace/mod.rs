//! A tracer that stops, kills or deceives a plugin at one chosen system call.
//!
//! It is a program of its own (`torture trace --plan PLAN --report FILE PROGRAM`) that a runtime
//! runs plugins under, as it would run them under strace. Every process that the plugin starts is
//! traced too, and the calls of all of them are counted in the order in which they are made, so
//! that call 217 may be one of the IPAM plugin's. It ends when the last of them has ended, with the
//! exit status of the first.

mod calls;
mod messages;
mod plan;
mod registers;
mod report;
mod tracee;
mod tracer;

pub use calls::Kind;
pub use plan::{Act, Plan};
pub use report::Report;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use conformance::error::Context;
use conformance::{Error, Result};

/// Runs `program` under a plan and writes what became of it to `report`.
///
/// With `stdout`, that file takes what the program prints.
pub fn run(plan: &Plan, report: &Path, stdout: Option<&Path>, program: &Path) -> Result<u8> {
    let (status, said) = tracer::trace(plan, stdout, program)?;
    said.write(report)?;
    Ok(status)
}

/// Becomes `program`, traced by the process that started us.
pub fn become_traced(program: &Path) -> Result<std::convert::Infallible> {
    nix::sys::ptrace::traceme().doing(|| "be traced")?;
    let source = Command::new(program).exec();
    Err(Error::System {
        what: format!("start {}", program.display()),
        source,
    })
}
