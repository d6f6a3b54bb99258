//! The report for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::table::table;
use super::{Run, repeat};
use crate::demo::Style;
use crate::judge::case::{Case, Outcome};
use crate::judge::check::all;

/// Every fault with what was run and seen; what could not be tried, by reason; the table.
#[must_use]
pub fn text(run: &Run<'_>, style: Style) -> String {
    let mut out = String::new();
    for case in run.cases {
        match case.outcome {
            Outcome::Fail if run.known.has(case) => {}
            Outcome::Fail | Outcome::Error => bad(&mut out, run, case, style),
            Outcome::Pass | Outcome::NotApplicable => {}
        }
    }
    not_tried(&mut out, run.cases, style);
    let _ = writeln!(out);
    for (number, line) in table(run.cases).into_iter().enumerate() {
        let line = if number == 0 { style.bold(&line) } else { line };
        let _ = writeln!(out, "{line}");
    }
    let _ = writeln!(
        out,
        "{}",
        style.dim("(where it says 12 !3 ?1, twelve passed, three failed, one could not be judged)")
    );
    let _ = writeln!(out, "\n{}", last_line(run, style));
    out
}

fn bad(out: &mut String, run: &Run<'_>, case: &Case, style: Style) {
    let checks = all();
    let check = checks.iter().find(|check| check.id == case.check);
    let word = if case.outcome == Outcome::Fail {
        "FAIL"
    } else {
        "ERROR"
    };
    let _ = writeln!(
        out,
        "\n{} {} {} ({})",
        style.bad(word),
        style.bold(&case.plugin),
        style.bold(&case.check),
        case.version
    );
    if let Some(check) = check {
        let _ = writeln!(out, "  clause  {}: {}", check.clause, check.title);
    }
    let _ = writeln!(out, "  seen    {}", case.reason);
    if let Some(step) = case.steps.last() {
        let _ = writeln!(out, "  run     {}", style.dim(&step.command));
        if !step.stdin.is_empty() {
            let _ = writeln!(out, "  stdin   {}", style.dim(&step.stdin));
        }
        let _ = writeln!(out, "  answer  {}", style.dim(&step.seen));
    }
    let _ = writeln!(out, "  repeat  {}", style.dim(&repeat(run, case)));
}

/// How often each reason was given, plugin by plugin.
fn not_tried(out: &mut String, cases: &[Case], style: Style) {
    let mut reasons: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for case in cases {
        if case.outcome == Outcome::NotApplicable {
            *reasons.entry((&case.plugin, &case.reason)).or_default() += 1;
        }
    }
    if reasons.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{}", style.bold("Not tried"));
    for ((plugin, reason), number) in reasons {
        let _ = writeln!(out, "  {plugin}: {number} because {reason}");
    }
}

fn last_line(run: &Run<'_>, style: Style) -> String {
    let count = |outcome| {
        run.cases
            .iter()
            .filter(|case| case.outcome == outcome)
            .count()
    };
    let known = run
        .cases
        .iter()
        .filter(|case| case.outcome == Outcome::Fail && run.known.has(case))
        .count();
    let (failed, errors) = (count(Outcome::Fail), count(Outcome::Error));
    let line = format!(
        "{} passed, {failed} failed ({known} of them known), {errors} could not be judged, {} not applicable",
        count(Outcome::Pass),
        count(Outcome::NotApplicable)
    );
    if failed == known && errors == 0 {
        style.good(&line)
    } else {
        style.bad(&line)
    }
}
