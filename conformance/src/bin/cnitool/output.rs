//! What is printed, and the exit status.

use std::io::{self, Write};
use std::process::ExitCode;

use conformance::libcni;
use serde_json::{Value, json};

use crate::Error;
use crate::cli::Cli;

/// What a command that did its work has to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Fine,
    /// It found something that is not.
    Trouble,
}

impl Verdict {
    /// 0, or 3: neither a failure nor a mistake at the shell.
    pub fn exit_code(self) -> ExitCode {
        match self {
            Self::Fine => ExitCode::SUCCESS,
            Self::Trouble => ExitCode::from(3),
        }
    }
}

/// Prints text.
pub fn text(text: &str) -> Result<(), Error> {
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// Prints a value.
pub fn json(value: &Value) -> Result<(), Error> {
    text(&(cni_types::json::to_pretty(value) + "\n"))
}

/// The end of a command that has nothing to print.
pub fn done(cli: &Cli) -> Result<Verdict, Error> {
    if cli.json {
        json(&json!({"ok": true}))?;
    }
    Ok(Verdict::Fine)
}

/// Tells people something beside the answer. Nothing is left to say it with if this fails.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr(), "cnitool: {text}");
}

/// A failure with what may help.
#[derive(Debug)]
pub struct Hinted {
    /// What failed.
    pub source: libcni::Error,
    /// What may help.
    pub hint: String,
}

impl std::fmt::Display for Hinted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.source, self.hint)
    }
}

impl std::error::Error for Hinted {}

/// Prints why a command failed.
pub fn failure(cli: &Cli, error: &(dyn std::error::Error + 'static)) {
    let _ = writeln!(io::stderr(), "Error: {error}");
    if cli.json {
        let hinted = error.downcast_ref::<Hinted>().map(|hinted| &hinted.source);
        let plugin = hinted
            .or_else(|| error.downcast_ref())
            .and_then(libcni::Error::cni);
        let code = plugin.map_or(Value::Null, |error| error.code.into());
        // The text on standard error has said it already.
        let _ = json(&json!({"ok": false, "error": error.to_string(), "code": code}));
    }
}

/// Columns as wide as what stands in them, two blanks apart.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths);
        let line: Vec<String> = cells
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        text += line.join("  ").trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        let rows = [row(&["A", "LONG", "C"]), row(&["bbb", "x", ""])];
        assert_eq!(table(&rows), "A    LONG  C\nbbb  x\n");
    }
}
