//! What a person reads.

use std::io::{self, IsTerminal};

use crate::Result;

/// Colours, where the output is a terminal that wants them.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    coloured: bool,
}

impl Style {
    /// Colours if standard output is a terminal and `NO_COLOR` is unset.
    #[must_use]
    pub fn of_terminal() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Self {
            coloured: wanted && io::stdout().is_terminal(),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.coloured {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    /// Emphasised.
    #[must_use]
    pub fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Secondary.
    #[must_use]
    pub fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    /// What works.
    #[must_use]
    pub fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    /// What does not.
    #[must_use]
    pub fn bad(self, text: &str) -> String {
        self.paint("31;1", text)
    }
}

/// The lines of one list, and whether one of them was a failure.
#[derive(Debug)]
pub struct Report {
    style: Style,
    failures: usize,
}

impl Report {
    pub fn new() -> Self {
        Self {
            style: Style::of_terminal(),
            failures: 0,
        }
    }

    pub fn title(&self, text: &str) {
        println!("\n{}", self.style.bold(&format!("== {text}")));
    }

    pub fn section(&self, text: &str) {
        println!("\n   {}", self.style.bold(text));
    }

    /// Text of several lines that belongs to the line above.
    pub fn aside(&self, text: &str) {
        for line in text.lines() {
            println!("       {}", self.style.dim(line));
        }
    }

    /// A fact that was tried: with what was seen, or why not.
    pub fn fact(&mut self, name: &str, outcome: Result<String>) -> bool {
        match outcome {
            Ok(seen) => {
                println!(
                    "   {}   {name:<53} {}",
                    self.style.good("ok"),
                    self.style.dim(&seen)
                );
                true
            }
            Err(error) => {
                self.failures += 1;
                println!("   {} {name:<53} {error}", self.style.bad("FAIL"));
                false
            }
        }
    }

    /// A fact that cannot be tried here.
    pub fn not_applicable(&self, name: &str, reason: &str) {
        println!(
            "   {}  {name:<53} {}",
            self.style.dim("n/a"),
            self.style.dim(reason)
        );
    }

    pub fn all_well(&self) -> bool {
        self.failures == 0
    }
}
