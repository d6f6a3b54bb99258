//! Which checks are tried with which plugins, and the trying: each unit in a sandbox of its own, as many at once as there are
//! processors.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use cni_types::SpecVersion;
use serde_json::Value;

use super::case::{Case, Outcome};
use super::check::{Check, all};
use super::subject::plugins_in;
use crate::error::{Context, Error, Result};
use crate::sandbox::Launcher;

/// The exit code of a sandbox that could not be made.
const NO_SANDBOX: i32 = 125;

/// What the caller wants judged.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The directory of the plugins.
    pub directory: PathBuf,
    /// Only these plugins; all of the directory if empty.
    pub plugins: Vec<String>,
    /// Only checks that match: an id, a prefix of one up to a dot, or a pattern with `*`.
    pub only: Option<String>,
    /// Only in this version.
    pub spec: Option<String>,
    /// A configuration with which the plugin works.
    pub config: Option<Value>,
}

/// Checks that are played in one sandbox with one plugin.
#[derive(Clone, Debug)]
struct Unit {
    plugin: String,
    checks: Vec<&'static str>,
}

/// What is going to be tried.
#[derive(Clone, Debug)]
pub struct Plan {
    selection: Selection,
    units: Vec<Unit>,
}

/// Who wants to know how far a run is.
pub trait Events: Sync {
    /// A unit is through: so many of so many, and its cases.
    fn done(&self, units: usize, of: usize, cases: &[Case]);
}

impl Selection {
    /// Whether a check is wanted.
    #[must_use]
    pub fn wants(&self, check: &Check) -> bool {
        self.only.as_ref().is_none_or(|pattern| {
            matches(pattern, check.id) || check.id.starts_with(&format!("{pattern}."))
        })
    }
}

/// Whether a text is what a pattern with `*` describes.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            rest.char_indices()
                .map(|(at, _)| at)
                .chain([rest.len()])
                .any(|at| rest.get(at..).is_some_and(|end| matches(after, end)))
        }),
    }
}

impl Plan {
    /// Plans a run.
    ///
    /// # Errors
    /// When there is no such directory, plugin or check.
    pub fn new(mut selection: Selection) -> Result<Self> {
        selection.directory = selection
            .directory
            .canonicalize()
            .doing(|| format!("plugin directory {}", selection.directory.display()))?;
        let present = plugins_in(&selection.directory)?;
        let wanted = if selection.plugins.is_empty() {
            present.clone()
        } else {
            selection.plugins.clone()
        };
        for plugin in &wanted {
            if !present.contains(plugin) && !selection.directory.join(plugin).is_file() {
                return Err(Error::Missing {
                    what: format!("plugin {plugin} in {}", selection.directory.display()),
                });
            }
        }
        let checks: Vec<&'static Check> = all()
            .into_iter()
            .filter(|check| selection.wants(check))
            .collect();
        if wanted.is_empty() {
            return Err(Error::Missing {
                what: format!("an executable file in {}", selection.directory.display()),
            });
        }
        if checks.is_empty() {
            let pattern = selection.only.as_deref().unwrap_or_default();
            return Err(Error::Missing {
                what: format!("a check called {pattern} (`conformance list` has them all)"),
            });
        }
        if let Some(version) = &selection.spec {
            SpecVersion::from_str(version).map_err(|unknown| Error::Invalid {
                what: format!("version: {unknown}"),
            })?;
        }
        let units = wanted
            .iter()
            .flat_map(|plugin| units_of(plugin, &checks))
            .collect();
        Ok(Self { selection, units })
    }

    /// Plays everything. `program` is this command, which is started again in each sandbox.
    ///
    /// # Errors
    /// When no sandbox can be made. What goes wrong in one of them becomes a case.
    pub fn run(&self, program: &Path, events: &dyn Events) -> Result<Vec<Case>> {
        let launcher = Launcher::beside(program)?;
        let next = AtomicUsize::new(0);
        let done = Mutex::new((0_usize, Vec::new()));
        let workers = thread::available_parallelism().map_or(2, usize::from);
        let work = || -> Result<()> {
            while let Some(unit) = self.units.get(next.fetch_add(1, Ordering::Relaxed)) {
                let cases = self.play(unit, &launcher, program)?;
                let mut done = done.lock().unwrap_or_else(|broken| broken.into_inner());
                done.0 += 1;
                events.done(done.0, self.units.len(), &cases);
                done.1.extend(cases);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().unwrap_or_else(|_| Err(died())))
        })?;
        let mut cases = done
            .into_inner()
            .unwrap_or_else(|broken| broken.into_inner())
            .1;
        let order: Vec<&str> = all().iter().map(|check| check.id).collect();
        cases.sort_by_cached_key(|case: &Case| {
            let at = order.iter().position(|id| *id == case.check);
            (case.plugin.clone(), at, super::check::rank(&case.version))
        });
        Ok(cases)
    }

    fn play(&self, unit: &Unit, launcher: &Launcher, program: &Path) -> Result<Vec<Case>> {
        let mut command = launcher.command(program);
        command.arg("run").arg("--cni-path");
        command.arg(&self.selection.directory);
        command.args(["--plugin", &unit.plugin, "--inside", &unit.checks.join(",")]);
        if let Some(version) = &self.selection.spec {
            command.args(["--spec", version]);
        }
        if let Some(config) = &self.selection.config {
            command.args(["--inside-config", &config.to_string()]);
        }
        cases_of(unit, command)
    }

    /// The directory that is judged.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.selection.directory
    }
}

fn died() -> Error {
    Error::Missing {
        what: "a worker that is still alive".into(),
    }
}

/// One sandbox for those that change nothing, one each for the others.
fn units_of(plugin: &str, checks: &[&'static Check]) -> Vec<Unit> {
    let (together, alone): (Vec<&Check>, Vec<&Check>) = checks
        .iter()
        .partition(|check| check.group().shares_sandbox());
    let unit = |checks: Vec<&'static str>| Unit {
        plugin: plugin.to_owned(),
        checks,
    };
    let mut units = Vec::new();
    if !together.is_empty() {
        units.push(unit(together.iter().map(|check| check.id).collect()));
    }
    units.extend(alone.iter().map(|check| unit(vec![check.id])));
    units
}

/// Runs a unit and reads its cases; a check without one becomes an error.
fn cases_of(unit: &Unit, mut command: Command) -> Result<Vec<Case>> {
    let output = command.output().doing(|| "start a sandbox")?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.code() == Some(NO_SANDBOX) {
        return Err(Error::Missing {
            what: format!("a sandbox to judge in ({said})"),
        });
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut cases: Vec<Case> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    for id in &unit.checks {
        if !cases.iter().any(|case| case.check == *id) {
            cases.push(Case {
                plugin: unit.plugin.clone(),
                check: (*id).to_owned(),
                version: String::new(),
                outcome: Outcome::Error,
                reason: format!("the judge ended early ({}): {said}", output.status),
                steps: Vec::new(),
                milliseconds: 0,
            });
        }
    }
    Ok(cases)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_ids() {
        assert!(matches("a.*", "a.b.c"));
        assert!(matches("*del*", "lifecycle.del-twice"));
        assert!(!matches("del", "lifecycle.del"));
        assert!(!matches("a*c", "a.b"));
    }
}
