//! How a check ends when it does not pass.

use std::fmt;

use crate::Error;

/// What a check says: it holds, or why not.
pub type Verdict<T = ()> = std::result::Result<T, Trouble>;

/// Why a check did not pass.
#[derive(Debug)]
pub enum Trouble {
    /// The plugin broke the clause: what was expected, what was seen.
    Fault(String),
    /// It cannot be tried with this plugin or on this machine, and why.
    NotApplicable(String),
    /// The suite itself failed.
    Harness(Error),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            // A plugin that hangs or is no program is the plugin's own fault.
            Error::Timeout { .. } | Error::Plugin(_) | Error::Protocol { .. } => {
                Self::Fault(error.to_string())
            }
            other => Self::Harness(other),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(text) | Self::NotApplicable(text) => f.write_str(text),
            Self::Harness(error) => write!(f, "{error}"),
        }
    }
}

/// A fault.
pub fn fault<T>(text: impl Into<String>) -> Verdict<T> {
    Err(Trouble::Fault(text.into()))
}

/// Not applicable.
pub fn skip<T>(text: impl Into<String>) -> Verdict<T> {
    Err(Trouble::NotApplicable(text.into()))
}

/// A fault unless the condition holds.
pub fn ensure(condition: bool, text: impl FnOnce() -> String) -> Verdict {
    if condition { Ok(()) } else { fault(text()) }
}

/// Turns what the harness found missing (an answer to a packet, a link) into a fault of the plugin.
pub fn expect<T>(what: &str, outcome: crate::Result<T>) -> Verdict<T> {
    outcome.or_else(|error| fault(format!("{what}: {error}")))
}
