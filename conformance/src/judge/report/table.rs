//! The summary: a row a plugin, a column a group.

use crate::judge::case::{Case, Outcome};
use crate::judge::check::{Group, all};

/// How the cases of one cell ended.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    passed: usize,
    failed: usize,
    skipped: usize,
    errors: usize,
}

impl Cell {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Pass => self.passed += 1,
            Outcome::Fail => self.failed += 1,
            Outcome::NotApplicable => self.skipped += 1,
            Outcome::Error => self.errors += 1,
        }
    }

    fn text(self) -> String {
        if self.passed + self.failed + self.errors == 0 {
            return if self.skipped == 0 { "" } else { "n/a" }.into();
        }
        let mut text = self.passed.to_string();
        if self.failed > 0 {
            text = format!("{text} !{}", self.failed);
        }
        if self.errors > 0 {
            text = format!("{text} ?{}", self.errors);
        }
        text
    }
}

/// The table as lines; the first is its head.
pub fn table(cases: &[Case]) -> Vec<String> {
    let checks = all();
    let group_of = |case: &Case| {
        checks
            .iter()
            .find(|check| check.id == case.check)
            .map(|check| check.group())
    };
    let mut plugins: Vec<&str> = cases.iter().map(|case| case.plugin.as_str()).collect();
    plugins.sort_unstable();
    plugins.dedup();
    let width = plugins
        .iter()
        .map(|name| name.len())
        .max()
        .unwrap_or(0)
        .max(6);
    let mut head = format!("{:<width$}", "plugin");
    for group in Group::ALL {
        head.push_str(&format!(" {:>12}", group.name()));
    }
    let mut lines = vec![head];
    for plugin in plugins {
        let mut line = format!("{plugin:<width$}");
        for group in Group::ALL {
            let mut cell = Cell::default();
            cases
                .iter()
                .filter(|case| case.plugin == plugin && group_of(case) == Some(group))
                .for_each(|case| cell.count(case.outcome));
            line.push_str(&format!(" {:>12}", cell.text()));
        }
        lines.push(line);
    }
    lines
}
