//! One line for each check, its output if it failed, and the sum.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Instant;

use conformance::error::{Context, Result};

/// What was run so far.
#[derive(Debug)]
pub struct Report {
    output: File,
    passed: u32,
    failed: u32,
}

impl Report {
    pub fn new(output: File) -> Self {
        Self {
            output,
            passed: 0,
            failed: 0,
        }
    }

    pub fn line(&mut self, text: &str) -> Result<()> {
        writeln!(self.output, "{text}").doing(|| "write to the serial line")
    }

    /// Runs a command that succeeds if the check passes.
    pub fn check(&mut self, name: &str, command: &[&str]) -> Result<()> {
        let started = Instant::now();
        let mut words = command.iter();
        let program = words.next().copied().unwrap_or_default();
        let output = environment(&mut Command::new(program)).args(words).output();
        let output = output.doing(|| format!("start {program}"))?;
        self.verdict(name, output.status.success(), &output, started)
    }

    /// Runs a test program: one line for all its tests, or its whole output.
    pub fn program(&mut self, program: &Path) -> Result<()> {
        let started = Instant::now();
        let output = environment(&mut Command::new(program)).output();
        let output = output.doing(|| format!("start {}", program.display()))?;
        let name = program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        self.verdict(&name, output.status.success(), &output, started)
    }

    fn verdict(
        &mut self,
        name: &str,
        passed: bool,
        output: &Output,
        started: Instant,
    ) -> Result<()> {
        let word = if passed { "ok" } else { "FAILED" };
        self.line(&format!(
            "{name} ... {word} ({} ms)",
            started.elapsed().as_millis()
        ))?;
        if passed {
            self.passed += 1;
            return Ok(());
        }
        self.failed += 1;
        for stream in [&output.stdout, &output.stderr] {
            for line in String::from_utf8_lossy(stream).lines() {
                self.line(&format!("    {line}"))?;
            }
        }
        Ok(())
    }

    pub fn summary(&mut self) -> Result<()> {
        let line = format!("{} passed, {} failed", self.passed, self.failed);
        self.line(&line)
    }
}

fn environment(command: &mut Command) -> &mut Command {
    command
        .env_clear()
        .env("PATH", "/bin:/sbin:/usr/bin:/usr/sbin")
        .env("HOME", "/root")
        .env("RUST_BACKTRACE", "0")
}
