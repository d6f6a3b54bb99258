//! Log lines on demand.
//!
//! Off unless asked for: by the environment variable `CNI_LOG` (`warn`, `info` or `debug`) or by the
//! configuration keys `logLevel` (the same words) and `logFile` (a path, appended to; without it lines go
//! to stderr). Each line carries the plugin, the verb's attachment and the milliseconds since the start, so
//! that "why is this slow" has an answer. Warnings are always written to stderr when no file is named.

use std::fmt::Arguments;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// What an operator should know although the call went on.
    Warn,
    /// The steps of a call.
    Info,
    /// Everything.
    Debug,
}

impl Level {
    /// Reads one of the words `warn`, `info`, `debug` in any case; anything else is no level.
    pub fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "warn" | "warning" | "error" => Some(Self::Warn),
            "info" => Some(Self::Info),
            "debug" | "trace" => Some(Self::Debug),
            _ => None,
        }
    }
}

struct Logger {
    start: Instant,
    prefix: String,
    level: Level,
    file: Option<Mutex<File>>,
}

static LOGGER: OnceLock<Logger> = OnceLock::new();

/// Sets the log up for this process; only the first call counts.
///
/// A `file` that cannot be opened falls back to stderr: a log must never fail a call.
pub fn init(start: Instant, prefix: String, level: Level, file: Option<&str>) {
    let file = file.and_then(|path| {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .inspect_err(|e| {
                let _ = writeln!(
                    std::io::stderr(),
                    "{prefix}: cannot open logFile {path}: {e}"
                );
            })
            .ok()
    });
    // A second call in one process only happens in tests; the first settings stay.
    let _ = LOGGER.set(Logger {
        start,
        prefix,
        level,
        file: file.map(Mutex::new),
    });
}

/// Writes a line about something that is wrong but did not stop the call.
pub fn warn(message: Arguments<'_>) {
    write(Level::Warn, message);
}

/// Writes a line about a step of the call.
pub fn info(message: Arguments<'_>) {
    write(Level::Info, message);
}

/// Writes a line of detail.
pub fn debug(message: Arguments<'_>) {
    write(Level::Debug, message);
}

fn write(level: Level, message: Arguments<'_>) {
    let Some(logger) = LOGGER.get() else {
        if level == Level::Warn {
            let _ = writeln!(std::io::stderr(), "{message}");
        }
        return;
    };
    if level > logger.level {
        return;
    }
    let line = format!(
        "{} +{:.3}ms: {message}\n",
        logger.prefix,
        logger.start.elapsed().as_secs_f64() * 1000.0
    );
    // One write per line keeps the lines of parallel processes whole.
    let _ = match &logger.file {
        Some(file) => match file.lock() {
            Ok(mut file) => file.write_all(line.as_bytes()),
            Err(_) => Ok(()),
        },
        None => std::io::stderr().write_all(line.as_bytes()),
    };
}
