//! `peak REPORT PROGRAM [ARGUMENT...]`: runs a program and adds a line to a report: its name, the largest resident
//! size of it and its children in KiB, and their processor time in microseconds, user and system.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;

fn main() -> ExitCode {
    let mut words = std::env::args_os().skip(1);
    let (Some(report), Some(program)) = (words.next(), words.next()) else {
        eprintln!("usage: peak REPORT PROGRAM [ARGUMENT...]");
        return ExitCode::FAILURE;
    };
    match run(Path::new(&report), Path::new(&program), words) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("peak: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(report: &Path, program: &Path, words: impl Iterator<Item = OsString>) -> io::Result<u8> {
    let status = Command::new(program).args(words).status()?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let mut report = OpenOptions::new().create(true).append(true).open(report)?;
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let micros = |time: TimeVal| time.tv_sec() * 1_000_000 + time.tv_usec();
    let (user, system) = (micros(usage.user_time()), micros(usage.system_time()));
    writeln!(report, "{name} {} {user} {system}", usage.max_rss())?;
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(u8::MAX))
}
