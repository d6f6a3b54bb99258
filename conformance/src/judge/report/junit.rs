//! The report for systems that collect test results, in the form that JUnit made common.

use std::fmt::Write;

use super::{Run, repeat};
use crate::judge::case::{Case, Outcome};

/// A suite a plugin, a test case a check and version. Known faults count as skipped.
#[must_use]
pub fn junit(run: &Run<'_>) -> String {
    let mut plugins: Vec<&str> = run.cases.iter().map(|case| case.plugin.as_str()).collect();
    plugins.sort_unstable();
    plugins.dedup();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for plugin in plugins {
        let cases: Vec<&Case> = run
            .cases
            .iter()
            .filter(|case| case.plugin == plugin)
            .collect();
        let count = |outcome| {
            cases
                .iter()
                .filter(|case| effective(run, case) == outcome)
                .count()
        };
        let _ = writeln!(
            out,
            "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
            escaped(plugin),
            cases.len(),
            count(Outcome::Fail),
            count(Outcome::Error),
            count(Outcome::NotApplicable)
        );
        for case in cases {
            one(&mut out, run, case);
        }
        out.push_str("</testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn effective(run: &Run<'_>, case: &Case) -> Outcome {
    if case.outcome == Outcome::Fail && run.known.has(case) {
        Outcome::NotApplicable
    } else {
        case.outcome
    }
}

fn one(out: &mut String, run: &Run<'_>, case: &Case) {
    let seconds = std::time::Duration::from_millis(case.milliseconds).as_secs_f64();
    let _ = write!(
        out,
        "<testcase classname=\"{}\" name=\"{}@{}\" time=\"{seconds:.3}\">",
        escaped(&case.plugin),
        escaped(&case.check),
        escaped(&case.version)
    );
    let reason = escaped(&case.reason);
    let _ = match effective(run, case) {
        Outcome::Pass => Ok(()),
        Outcome::Fail => write!(
            out,
            "<failure message=\"{reason}\">{}</failure>",
            escaped(&body(run, case))
        ),
        Outcome::Error => write!(
            out,
            "<error message=\"{reason}\">{}</error>",
            escaped(&body(run, case))
        ),
        Outcome::NotApplicable => write!(out, "<skipped message=\"{reason}\"/>"),
    };
    out.push_str("</testcase>\n");
}

fn body(run: &Run<'_>, case: &Case) -> String {
    let steps: Vec<String> = case
        .steps
        .iter()
        .map(|step| format!("{}\n{}\n{}", step.command, step.stdin, step.seen))
        .collect();
    format!("{}\n\n{}", repeat(run, case), steps.join("\n\n"))
}

/// Text as XML 1.0 can hold it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
