//! One line for each check and each test, its output if it failed, and the sum.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use conformance::error::{Context, Result};

use crate::libtest::{Outcome, Tests};

/// What was run so far.
#[derive(Debug)]
pub struct Report {
    output: File,
    passed: usize,
    failed: usize,
    skipped: usize,
}

impl Report {
    pub fn new(output: File) -> Self {
        Self {
            output,
            passed: 0,
            failed: 0,
            skipped: 0,
        }
    }

    pub fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.output, "{text}").doing(|| "write to the serial line")
    }

    /// Notes what was not asked for.
    pub fn skip(&mut self, names: &[&str]) -> Result<()> {
        self.skipped += names.len();
        if names.is_empty() {
            return Ok(());
        }
        self.line(&format!("not selected: {}", names.join(" ")))
    }

    /// Runs a command that succeeds if the check passes. With `shown`, what it prints is part of the report.
    pub fn check(&mut self, name: &str, command: &[String], shown: bool) -> Result<()> {
        let started = Instant::now();
        let (program, arguments) = command.split_first().unzip();
        let program = program.map_or("", String::as_str);
        let output = environment(&mut Command::new(program))
            .args(arguments.unwrap_or_default())
            .output();
        let output = output.doing(|| format!("start {program}"))?;
        let passed = output.status.success();
        let word = if passed { "ok" } else { "FAILED" };
        self.passed += usize::from(passed);
        self.failed += usize::from(!passed);
        self.line(&format!("{name} ... {word} ({} ms)", since(started)))?;
        if passed && !shown {
            return Ok(());
        }
        self.quote(&output)
    }

    /// Runs a test program: a line for each of its tests, and its whole output unless all went well.
    pub fn program(&mut self, program: &Path) -> Result<()> {
        let started = Instant::now();
        let output = environment(&mut Command::new(program)).output();
        let output = output.doing(|| format!("start {}", program.display()))?;
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let tests = Tests::read(&String::from_utf8_lossy(&output.stdout));
        for (test, outcome) in &tests.each {
            self.line(&format!("{name} {test} ... {}", outcome.word()))?;
        }
        let failed = tests.number(Outcome::Failed);
        let broken = failed == 0 && (!output.status.success() || !tests.complete());
        self.passed += tests.number(Outcome::Passed);
        self.failed += failed + usize::from(broken);
        self.skipped += tests.number(Outcome::Ignored) + tests.filtered_out;
        self.line(&format!(
            "{name}: {} tests, {} ({} ms)",
            tests.each.len(),
            output.status,
            since(started)
        ))?;
        if failed == 0 && !broken {
            return Ok(());
        }
        self.quote(&output)
    }

    fn quote(&mut self, output: &Output) -> Result<()> {
        for stream in [&output.stdout, &output.stderr] {
            for line in String::from_utf8_lossy(stream).lines() {
                self.line(&format!("    {line}"))?;
            }
        }
        Ok(())
    }

    pub fn summary(&mut self) -> Result<()> {
        let Self {
            passed,
            failed,
            skipped,
            ..
        } = self;
        let line = format!("{passed} passed, {failed} failed, {skipped} skipped");
        self.line(&line)
    }
}

fn since(started: Instant) -> u128 {
    started.elapsed().as_millis()
}

fn environment(command: &mut Command) -> &mut Command {
    command
        .env_clear()
        .env("PATH", "/bin:/sbin:/usr/bin:/usr/sbin")
        .env("HOME", "/root")
        .env("RUST_BACKTRACE", "0")
}
