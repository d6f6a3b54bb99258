//! The daemon's flags: the reference set's, in the manner of Go's `flag` package.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::SOCKET;
use crate::exchange::Timing;

/// What the daemon was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flags {
    /// Where to write the process's number.
    pub pidfile: Option<PathBuf>,
    /// What to put before the path of the socket and of every namespace.
    pub prefix: String,
    /// Where to listen.
    pub socket: String,
    /// Ask servers to answer by broadcast.
    pub broadcast: bool,
    /// How long things are waited for.
    pub timing: Timing,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            pidfile: None,
            prefix: String::new(),
            socket: SOCKET.to_owned(),
            broadcast: false,
            timing: Timing::default(),
        }
    }
}

/// What `-help` says.
pub const USAGE: &str = "usage: dhcp daemon [flags]
  -broadcast            ask DHCP servers to answer by broadcast
  -hostprefix PREFIX    put this before the path of the socket and of every namespace
  -pidfile FILE         write the process's number to this file (an absolute path)
  -resendmax DURATION   the longest pause between two packets (default 62s)
  -resendtimeout DURATION
                        how long an address may take altogether (default 208s)
  -socketpath FILE      where to listen (default /run/cni/dhcp.sock)
  -timeout DURATION     how long the answer to a request may take (default 10s)
";

/// Flags that cannot be understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlagError {
    /// The help was asked for.
    #[error("help")]
    Help,
    /// Nobody knows it.
    #[error("{0:?} is not a flag")]
    Unknown(String),
    /// It needs a value.
    #[error("flag -{0} needs a value")]
    NoValue(String),
    /// Its value makes no sense.
    #[error("invalid value {value:?} for flag -{flag}: expected {expected}")]
    Value {
        /// The flag.
        flag: String,
        /// What was given.
        value: String,
        /// What was expected.
        expected: &'static str,
    },
}

impl Flags {
    /// Reads them: `-flag value`, `-flag=value`, each with one or two dashes.
    ///
    /// # Errors
    /// [`FlagError`].
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, FlagError> {
        let mut flags = Self::default();
        let mut arguments = arguments
            .into_iter()
            .map(|argument| argument.to_string_lossy().into_owned());
        while let Some(argument) = arguments.next() {
            let named = argument
                .strip_prefix("--")
                .or_else(|| argument.strip_prefix('-'))
                .ok_or_else(|| FlagError::Unknown(argument.clone()))?;
            let (name, value) = match named.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (named, None),
            };
            match name {
                "h" | "help" => return Err(FlagError::Help),
                "broadcast" => flags.broadcast = boolean(value)?,
                "pidfile" | "hostprefix" | "socketpath" | "timeout" | "resendmax"
                | "resendtimeout" => {
                    let value = value
                        .or_else(|| arguments.next())
                        .ok_or_else(|| FlagError::NoValue(name.to_owned()))?;
                    flags.set(name, value)?;
                }
                _ => return Err(FlagError::Unknown(argument)),
            }
        }
        Ok(flags)
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), FlagError> {
        match name {
            "pidfile" => {
                let path = PathBuf::from(&value);
                if !value.is_empty() && !path.is_absolute() {
                    return Err(invalid(name, value, "an absolute path"));
                }
                self.pidfile = (!value.is_empty()).then_some(path);
            }
            "hostprefix" => self.prefix = value,
            "socketpath" => self.socket = value,
            _ => {
                let duration = duration(&value)
                    .filter(|duration| !duration.is_zero())
                    .ok_or_else(|| invalid(name, value, "a duration such as 10s or 1m30s"))?;
                match name {
                    "timeout" => self.timing.answer = duration,
                    "resendmax" => self.timing.pause = duration,
                    _ => self.timing.whole = duration,
                }
            }
        }
        Ok(())
    }

    /// The socket's path as seen from here.
    pub fn socket(&self) -> PathBuf {
        format!("{}{}", self.prefix, self.socket).into()
    }
}

fn invalid(flag: &str, value: String, expected: &'static str) -> FlagError {
    FlagError::Value {
        flag: flag.to_owned(),
        value,
        expected,
    }
}

fn boolean(value: Option<String>) -> Result<bool, FlagError> {
    match value.as_deref() {
        None | Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(true),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(false),
        Some(other) => Err(invalid("broadcast", other.to_owned(), "true or false")),
    }
}

/// A duration as Go spells it: numbers with units.
fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1e-9),
        ("us", 1e-6),
        ("µs", 1e-6),
        ("ms", 1e-3),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
    ];
    let (mut rest, mut total) = (text, 0.0);
    if text == "0" {
        return Some(Duration::ZERO);
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, behind) = rest.split_at(end);
        let end = behind
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(end);
        let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total += number.parse::<f64>().ok()? * factor;
        rest = behind;
    }
    (!text.is_empty())
        .then(|| Duration::try_from_secs_f64(total).ok())
        .flatten()
        // Whatever is longer might as well be for ever.
        .map(|duration| duration.min(Duration::from_secs(366 * 24 * 3600)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Flags, FlagError> {
        Flags::parse(text.split_whitespace().map(OsString::from))
    }

    #[test]
    fn all_flags_in_all_spellings() {
        assert_eq!(parse(""), Ok(Flags::default()));
        let flags = parse(
            "-pidfile /run/x.pid --hostprefix=/host -socketpath=/run/s --broadcast -timeout 1m2.5s -resendmax=500ms -resendtimeout 1h",
        )
        .unwrap();
        assert_eq!(flags.pidfile, Some("/run/x.pid".into()));
        assert_eq!(flags.socket(), PathBuf::from("/host/run/s"));
        assert!(flags.broadcast);
        assert_eq!(flags.timing.answer, Duration::from_millis(62_500));
        assert_eq!(flags.timing.pause, Duration::from_millis(500));
        assert_eq!(flags.timing.whole, Duration::from_secs(3600));
        assert!(!parse("-broadcast=false").unwrap().broadcast);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "daemon",
            "-nonsense",
            "-timeout",
            "-timeout 5",
            "-timeout s",
            "-timeout 0s",
            "-timeout -5s",
            "-timeout=",
            "-resendmax 1x",
            "-broadcast=5",
            "-pidfile relative",
            "-help",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
