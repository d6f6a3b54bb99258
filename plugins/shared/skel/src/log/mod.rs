//! Log lines on demand.
//!
//! Off unless asked for: by the environment variable `CNI_LOG` (`<path|journal|stderr>[:level]`, or a level alone, which
//! goes to standard error), or by the configuration keys `logFile` (the same places) and `logLevel` (`error`,
//! `warn`, `info` or `debug`). Each step is one line that says when it ended, how long it took, and whose it was, so that "why is this
//! slow" has an answer; see `docs/logs.md` for the fields.
//!
//! Warnings are for the operator and are written to standard error whether or not there is a log.

mod journal;
mod line;
mod target;

use std::fmt::Arguments;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Instant, SystemTime};

pub use line::Context;
pub use target::{Asked, Level, Place};

use line::Line;

/// Where lines go.
enum Sink {
    Stderr,
    File(Mutex<File>),
    Journal(UnixDatagram),
}

struct Logger {
    start: Instant,
    context: Context,
    level: Level,
    sink: Option<Sink>,
    /// Microseconds from the start to the end of the step before.
    before: AtomicU64,
}

static LOGGER: OnceLock<Logger> = OnceLock::new();

/// Sets the log up for this process; only the first call counts.
///
/// A place that cannot be opened falls back to standard error: a log must never fail a call.
pub fn init(start: Instant, context: Context, asked: &Asked) {
    let sink = asked.place.as_ref().map(|place| {
        open(place).unwrap_or_else(|error| {
            tell(&format!(
                "{}: cannot open the log {place}: {error}; it goes to standard error",
                context.plugin
            ));
            Sink::Stderr
        })
    });
    // A second call in one process only happens in tests; the first settings stay.
    let _ = LOGGER.set(Logger {
        start,
        context,
        level: asked.level,
        sink,
        before: AtomicU64::new(0),
    });
    for complaint in &asked.complaints {
        warn(format_args!("{complaint}"));
    }
}

fn open(place: &Place) -> std::io::Result<Sink> {
    match place {
        Place::Stderr => Ok(Sink::Stderr),
        Place::Journal => journal::connect().map(Sink::Journal),
        Place::File(path) => {
            let mut options = OpenOptions::new();
            // Who may read the log learns of every container's addresses.
            options.create(true).append(true).mode(0o640);
            options.open(path).map(|file| Sink::File(Mutex::new(file)))
        }
    }
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

/// Writes a line about the failure of the call, which the answer tells in full. Nothing goes to standard error but the
/// log that was asked for.
pub(crate) fn error(message: Arguments<'_>) {
    if let Some(logger) = LOGGER.get() {
        logger.write(Level::Error, message);
    }
}

/// Whether lines of this level are written anywhere.
pub fn is_on(level: Level) -> bool {
    LOGGER
        .get()
        .is_some_and(|logger| logger.sink.is_some() && level <= logger.level)
}

fn write(level: Level, message: Arguments<'_>) {
    let logger = LOGGER.get();
    let on_stderr = logger.is_some_and(|logger| matches!(logger.sink, Some(Sink::Stderr)));
    if level == Level::Warn && !on_stderr {
        let plugin = logger.map_or("", |logger| logger.context.plugin.as_str());
        let text = message.to_string();
        if plugin.is_empty() || text.starts_with(&format!("{plugin}:")) {
            tell(&text);
        } else {
            tell(&format!("{plugin}: {text}"));
        }
    }
    if let Some(logger) = logger {
        logger.write(level, message);
    }
}

/// One write per line keeps the lines of parallel processes whole. Nothing is left to say it with if this fails.
fn tell(text: &str) {
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

impl Logger {
    fn write(&self, level: Level, message: Arguments<'_>) {
        let Some(sink) = self.sink.as_ref().filter(|_| level <= self.level) else {
            return;
        };
        let at = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let before = self.before.swap(at, Ordering::Relaxed);
        let line = Line {
            now: SystemTime::now(),
            level,
            at,
            took: at.saturating_sub(before),
            context: &self.context,
            message: &message.to_string(),
        };
        let _ = match sink {
            Sink::Stderr => std::io::stderr().write_all(line.text().as_bytes()),
            Sink::File(file) => match file.lock() {
                Ok(mut file) => file.write_all(line.text().as_bytes()),
                Err(_) => Ok(()),
            },
            Sink::Journal(socket) => socket.send(&journal::fields(&line)).map(drop),
        };
    }
}
