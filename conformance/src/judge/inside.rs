//! The half that runs in a sandbox: plays some checks with one plugin, and prints a case a line.

use std::io::Write;
use std::time::Instant;

use super::case::{Case, Outcome};
use super::check::{Binding, Check, all};
use super::subject::Subject;
use super::trial::{Stage, Trial};
use super::verdict::{Trouble, Verdict, skip};
use crate::error::{Context, Error, Result};

/// Plays these checks, each in the versions it is for, and writes the cases as lines of JSON.
///
/// # Errors
/// When there is no such check, the plugin cannot be executed, or nobody reads the cases.
pub fn inside(
    subject: &Subject,
    ids: &[String],
    only: Option<&str>,
    mut out: impl Write,
) -> Result<()> {
    let supported = subject.versions()?;
    let stage = Stage::default();
    for id in ids {
        let checks = all();
        let check = checks.iter().find(|check| check.id == id);
        let check = check.ok_or_else(|| Error::Missing {
            what: format!("check {id}"),
        })?;
        let mut versions = check.versions.of(&supported, only);
        if versions.is_empty() {
            // Said once, so that nobody takes it for a check that passed.
            versions.push(String::new());
        }
        for version in versions {
            let case = play(subject, &stage, check, &version);
            let line = serde_json::to_string(&case).map_err(|error| Error::Invalid {
                what: format!("case {id}: {error}"),
            })?;
            writeln!(out, "{line}").doing(|| "write a case")?;
        }
    }
    Ok(())
}

fn play(subject: &Subject, stage: &Stage, check: &Check, version: &str) -> Case {
    let started = Instant::now();
    let trial = Trial::new(subject, stage, version);
    let verdict = applies(subject, check, version).and_then(|()| (check.run)(&trial));
    let (outcome, reason) = match verdict {
        Ok(()) => (Outcome::Pass, String::new()),
        Err(trouble) => {
            let outcome = match trouble {
                Trouble::Fault(_) => Outcome::Fail,
                Trouble::NotApplicable(_) => Outcome::NotApplicable,
                Trouble::Harness(_) => Outcome::Error,
            };
            (outcome, trouble.to_string())
        }
    };
    let milliseconds = started.elapsed().as_millis();
    Case {
        plugin: subject.name.clone(),
        check: check.id.to_owned(),
        version: version.to_owned(),
        outcome,
        reason,
        steps: trial.into_steps(),
        milliseconds: u64::try_from(milliseconds).unwrap_or(u64::MAX),
    }
}

fn applies(subject: &Subject, check: &Check, version: &str) -> Verdict {
    if version.is_empty() {
        return skip("the plugin supports no version that has this, or not the one asked for");
    }
    if subject.is_known() {
        return Ok(());
    }
    if check.clause.binding == Binding::Reference {
        return skip("expected only of plugins with a name of the reference set");
    }
    if !check.group().is_generic() {
        return skip("the suite does not know what this plugin is for");
    }
    Ok(())
}
