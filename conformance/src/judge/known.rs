//! Verdicts that are known to be bad, and how a run differs from them.

use std::fmt;

use super::case::{Case, Outcome};
use crate::error::{Error, Result};

/// A list of known faults: a line each, `plugin[,plugin...] check[@version,...] why`. `*` is every plugin that was judged by
/// the check. Without versions the fault is in each that was tried. `~check` is a race: it may pass, too. `#` begins a comment.
#[derive(Clone, Debug, Default)]
pub struct Known {
    entries: Vec<Entry>,
}

#[derive(Clone, Debug)]
struct Entry {
    plugins: Vec<String>,
    check: String,
    versions: Vec<String>,
    is_race: bool,
    line: String,
}

/// Where a run and the list differ.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Surprise {
    /// A fault that is not in the list.
    New {
        /// The plugin.
        plugin: String,
        /// The check.
        check: String,
        /// The version.
        version: String,
        /// What was seen.
        reason: String,
    },
    /// A case of the list that passed.
    Mended {
        /// The plugin.
        plugin: String,
        /// The check.
        check: String,
        /// The version.
        version: String,
    },
    /// A line of the list for which nothing was tried.
    Idle {
        /// The line.
        line: String,
    },
}

impl fmt::Display for Surprise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New {
                plugin,
                check,
                version,
                reason,
            } => write!(f, "not in the list: {plugin} {check}@{version}: {reason}"),
            Self::Mended {
                plugin,
                check,
                version,
            } => write!(f, "in the list, but passed: {plugin} {check}@{version}"),
            Self::Idle { line } => write!(f, "in the list, but not tried: {line}"),
        }
    }
}

impl Entry {
    fn names(&self, case: &Case) -> bool {
        let plugin = |one: &String| one == "*" || *one == case.plugin;
        let version = |one: &String| *one == case.version;
        self.check == case.check
            && self.plugins.iter().any(plugin)
            && (self.versions.is_empty() || self.versions.iter().any(version))
    }
}

impl Known {
    /// Reads a list.
    ///
    /// # Errors
    /// When a line gives no plugin, check and reason.
    pub fn parse(text: &str) -> Result<Self> {
        let entries = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .map(entry)
            .collect::<Result<_>>()?;
        Ok(Self { entries })
    }

    /// Whether this case is known to be bad.
    #[must_use]
    pub fn has(&self, case: &Case) -> bool {
        self.entries.iter().any(|entry| entry.names(case))
    }

    /// Whether it may as well pass.
    fn is_race(&self, case: &Case) -> bool {
        let mut named = self.entries.iter().filter(|entry| entry.names(case));
        named.all(|entry| entry.is_race)
    }

    /// Where the cases differ from the list. A line that speaks of plugins or checks of which nothing was tried at all is a
    /// difference, too, if the run was `whole`.
    #[must_use]
    pub fn compare(&self, cases: &[Case], whole: bool) -> Vec<Surprise> {
        let mut surprises = Vec::new();
        for case in cases {
            match (case.outcome, self.has(case)) {
                (Outcome::Fail, false) => surprises.push(Surprise::New {
                    plugin: case.plugin.clone(),
                    check: case.check.clone(),
                    version: case.version.clone(),
                    reason: case.reason.clone(),
                }),
                (Outcome::Pass, true) if !self.is_race(case) => surprises.push(Surprise::Mended {
                    plugin: case.plugin.clone(),
                    check: case.check.clone(),
                    version: case.version.clone(),
                }),
                _ => {}
            }
        }
        if whole {
            let tried = |entry: &&Entry| !cases.iter().any(|case| entry.names(case));
            let idle = self.entries.iter().filter(tried);
            surprises.extend(idle.map(|entry| Surprise::Idle {
                line: entry.line.clone(),
            }));
        }
        surprises
    }
}

fn entry(line: &str) -> Result<Entry> {
    let bad = || Error::Invalid {
        what: format!("known fault {line:?}: expected plugin, check and reason"),
    };
    let mut words = line.splitn(3, char::is_whitespace);
    let (plugins, check) = (words.next().ok_or_else(bad)?, words.next().ok_or_else(bad)?);
    words
        .next()
        .filter(|why| !why.trim().is_empty())
        .ok_or_else(bad)?;
    let list = |text: &str| text.split(',').map(str::to_owned).collect();
    let (check, versions) = match check.split_once('@') {
        Some((check, versions)) => (check, list(versions)),
        None => (check, Vec::new()),
    };
    let (check, is_race) = match check.strip_prefix('~') {
        Some(check) => (check, true),
        None => (check, false),
    };
    Ok(Entry {
        is_race,
        plugins: list(plugins),
        check: check.to_owned(),
        versions,
        line: line.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(plugin: &str, version: &str, outcome: Outcome) -> Case {
        Case {
            plugin: plugin.into(),
            check: "results.shape".into(),
            version: version.into(),
            outcome,
            reason: String::new(),
            steps: Vec::new(),
            milliseconds: 0,
        }
    }

    #[test]
    fn a_run_is_compared_both_ways() {
        let known = Known::parse(
            "# faults\nloopback results.shape@0.4.0 prints another shape\nbridge,ptp results.dns loses it\n",
        )
        .unwrap();
        let cases = [
            case("loopback", "0.4.0", Outcome::Fail),
            case("loopback", "1.0.0", Outcome::Pass),
        ];
        assert_eq!(known.compare(&cases, false), []);
        assert!(matches!(
            known.compare(&cases, true).as_slice(),
            [Surprise::Idle { .. }]
        ));
        let cases = [
            case("loopback", "0.4.0", Outcome::Pass),
            case("loopback", "1.0.0", Outcome::Fail),
        ];
        assert!(matches!(
            known.compare(&cases, false).as_slice(),
            [Surprise::Mended { .. }, Surprise::New { .. }]
        ));
    }

    #[test]
    fn a_line_needs_a_reason() {
        assert!(Known::parse("bridge results.shape").is_err());
        assert!(Known::parse("bridge results.shape because").is_ok());
    }
}
