//! The report for programs.

use serde_json::{Value, json as object};

use super::{Run, repeat};
use crate::judge::check::all;

/// Everything: each case with its clause, what was run, what was seen, and the command to repeat it.
#[must_use]
pub fn json(run: &Run<'_>) -> String {
    let checks = all();
    let cases: Vec<Value> = run
        .cases
        .iter()
        .map(|case| {
            let check = checks.iter().find(|check| check.id == case.check);
            object!({
                "plugin": case.plugin,
                "check": case.check,
                "group": check.map(|check| check.group().name()),
                "title": check.map(|check| check.title),
                "clause": check.map(|check| check.clause.to_string()),
                "version": case.version,
                "outcome": case.outcome,
                "known": run.known.has(case),
                "reason": case.reason,
                "steps": case.steps,
                "milliseconds": case.milliseconds,
                "repeat": repeat(run, case),
            })
        })
        .collect();
    let whole = object!({"directory": run.directory, "cases": cases});
    serde_json::to_string_pretty(&whole).unwrap_or_default()
}
