//! What log is asked for, and where it goes.

use std::fmt;
use std::path::PathBuf;

use cni_types::nearest::did_you_mean;

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Why the call failed.
    Error,
    /// What an operator should know although the call went on.
    Warn,
    /// The steps of a call.
    Info,
    /// Everything.
    Debug,
}

/// The words for levels, the usual ones first.
const WORDS: [(&str, Level); 6] = [
    ("warn", Level::Warn),
    ("info", Level::Info),
    ("debug", Level::Debug),
    ("error", Level::Error),
    ("warning", Level::Warn),
    ("trace", Level::Debug),
];

impl Level {
    /// Reads one of the words `error`, `warn`, `info`, `debug` in any case; anything else is no level.
    pub fn parse(word: &str) -> Option<Self> {
        let mut words = WORDS.iter();
        let found = words.find(|(known, _)| known.eq_ignore_ascii_case(word))?;
        Some(found.1)
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// Standard error.
    Stderr,
    /// The journal of systemd.
    Journal,
    /// A file, appended to.
    File(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stderr => f.write_str("stderr"),
            Self::Journal => f.write_str("journal"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Place {
    fn parse(word: &str) -> Option<Self> {
        match word {
            "stderr" => Some(Self::Stderr),
            "journal" => Some(Self::Journal),
            path if path.starts_with('/') => Some(Self::File(path.into())),
            _ => None,
        }
    }
}

/// The log that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Where it goes; `None`: there is none.
    pub place: Option<Place>,
    /// How much of it there is.
    pub level: Level,
    /// What was not understood.
    pub complaints: Vec<String>,
}

impl Asked {
    /// From `CNI_LOG`, which counts if it says something, and the keys `logFile` and `logLevel`.
    pub fn read(variable: Option<&str>, file: Option<&str>, level: Option<&str>) -> Self {
        let said = |text: Option<&str>| text.map(str::to_owned).filter(|text| !text.is_empty());
        match said(variable) {
            Some(text) => Self::of_variable(&text),
            None => Self::of_keys(said(file), said(level)),
        }
    }

    fn of_variable(text: &str) -> Self {
        let mut asked = Self {
            place: None,
            level: Level::Info,
            complaints: Vec::new(),
        };
        if let Some(level) = Level::parse(text) {
            asked.place = Some(Place::Stderr);
            asked.level = level;
            return asked;
        }
        let (place, level) = match text.rsplit_once(':') {
            // A colon before a slash is part of a path.
            Some((place, level)) if !level.contains('/') => (place, Some(level)),
            _ => (text, None),
        };
        asked.place = Place::parse(place);
        if asked.place.is_none() {
            asked.complaints.push(if place.contains('/') {
                format!("CNI_LOG {text:?} is not an absolute path: each plugin runs where its runtime does; nothing is logged")
            } else {
                let words = ["journal", "stderr", "error", "warn", "info", "debug"];
                format!(
                    "CNI_LOG {text:?} is not understood{}; the form is <path|journal|stderr>[:error|warn|info|debug] with an absolute path, and nothing is logged",
                    did_you_mean(place, words)
                )
            });
        } else if let Some(level) = level {
            asked.take_level("CNI_LOG", level);
        }
        asked
    }

    fn of_keys(file: Option<String>, level: Option<String>) -> Self {
        let mut asked = Self {
            place: None,
            level: Level::Info,
            complaints: Vec::new(),
        };
        if let Some(file) = &file {
            asked.place = Place::parse(file);
            if asked.place.is_none() {
                asked.complaints.push(format!(
                    "logFile {file:?} is neither an absolute path nor journal or stderr; nothing is logged"
                ));
            }
        } else if level.is_some() {
            asked.place = Some(Place::Stderr);
        }
        if let Some(level) = &level {
            asked.take_level("logLevel", level);
        }
        asked
    }

    fn take_level(&mut self, from: &str, word: &str) {
        match Level::parse(word) {
            Some(level) => self.level = level,
            None => self.complaints.push(format!(
                "{from}: unknown level {word:?}{}; the levels are error, warn, info and debug, and info is taken",
                did_you_mean(word, WORDS.map(|(known, _)| known))
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(text: &str) -> (Option<Place>, Level, usize) {
        let asked = Asked::read(Some(text), Some("/never"), Some("warn"));
        (asked.place, asked.level, asked.complaints.len())
    }

    #[test]
    fn the_variable() {
        let file = |path: &str| Some(Place::File(path.into()));
        for (text, expected) in [
            ("stderr", (Some(Place::Stderr), Level::Info, 0)),
            ("journal:debug", (Some(Place::Journal), Level::Debug, 0)),
            ("/var/log/cni", (file("/var/log/cni"), Level::Info, 0)),
            ("/var/log/cni:WARN", (file("/var/log/cni"), Level::Warn, 0)),
            ("/var/a:b/cni", (file("/var/a:b/cni"), Level::Info, 0)),
            ("/var/log/cni:debgu", (file("/var/log/cni"), Level::Info, 1)),
            ("debug", (Some(Place::Stderr), Level::Debug, 0)),
            ("debgu", (None, Level::Info, 1)),
            ("relative/path", (None, Level::Info, 1)),
            ("", (file("/never"), Level::Warn, 0)),
        ] {
            assert_eq!(variable(text), expected, "{text}");
        }
        let asked = Asked::read(Some("stderr:debgu"), None, None);
        assert!(
            asked.complaints[0].contains("did you mean \"debug\"?")
                && asked.complaints[0].contains("error, warn"),
            "{asked:?}"
        );
        let asked = Asked::read(Some("log/cni.log"), None, None);
        assert!(
            asked.complaints[0].contains("not an absolute path"),
            "{asked:?}"
        );
    }

    #[test]
    fn the_keys() {
        let keys = |file, level| Asked::read(None, file, level);
        assert_eq!(keys(None, None).place, None);
        assert_eq!(keys(None, Some("info")).place, Some(Place::Stderr));
        assert_eq!(keys(Some("journal"), None).place, Some(Place::Journal));
        assert_eq!(keys(Some("/x"), Some("debug")).level, Level::Debug);
        assert_eq!(keys(Some("x"), None).complaints.len(), 1);
        assert_eq!(keys(None, Some("inof")).complaints.len(), 1);
    }
}
