//! Results as Markdown, for a README.

use std::fmt::Write;
use std::time::Duration;

use super::measure::{Cycle, Lap};
use super::median;
use super::start_up::StartUp;

/// The measurements of one list.
#[derive(Clone, Debug)]
pub struct Row {
    /// What the list is.
    pub title: String,
    /// Our cycles.
    pub ours: Vec<Cycle>,
    /// The other directory's cycles.
    pub theirs: Vec<Cycle>,
    /// Programs that ours start, if they were counted.
    pub our_processes: Option<Cycle>,
    /// Programs that theirs start, if they were counted.
    pub their_processes: Option<Cycle>,
}

type Pick = fn(&Cycle) -> Lap;

const COMMANDS: [(&str, Pick); 3] = [
    ("ADD", |cycle| cycle.add),
    ("CHECK", |cycle| cycle.check),
    ("DEL", |cycle| cycle.del),
];

/// A table of lists and commands.
#[must_use]
pub fn list_table(rows: &[Row]) -> String {
    let mut text = String::from(
        "| list | command | Ferrule | reference set | ratio | programs started |\n\
         |---|---|---|---|---|---|\n",
    );
    let mut failing = Vec::new();
    for row in rows {
        for (command, pick) in COMMANDS {
            let ours = middle(&row.ours, pick);
            let theirs = middle(&row.theirs, pick);
            let mut mark = String::new();
            for (who, cycles) in [("Ferrule", &row.ours), ("the reference set", &row.theirs)] {
                let failed = cycles.iter().filter(|cycle| !pick(cycle).ok).count();
                if failed > 0 {
                    mark.push('*');
                    let all = cycles.len();
                    failing.push(format!(
                        "{command} of {} fails in {who} ({failed} of {all})",
                        row.title
                    ));
                }
            }
            let processes = match (&row.our_processes, &row.their_processes) {
                (Some(ours), Some(theirs)) => {
                    format!(
                        "{} against {}",
                        pick(ours).processes,
                        pick(theirs).processes
                    )
                }
                _ => "not counted".into(),
            };
            // Writing to a string does not fail.
            let _ = writeln!(
                text,
                "| {} | {command} | {} | {}{mark} | {:.1} | {processes} |",
                row.title,
                show(ours),
                show(theirs),
                ratio(theirs, ours),
            );
        }
    }
    for line in failing {
        let _ = writeln!(text, "\n\\* {line}.");
    }
    text
}

/// A table of start-up times.
#[must_use]
pub fn start_up_table(empty: Duration, rows: &[StartUp]) -> String {
    let mut text = format!(
        "| program | Ferrule | reference set | size of ours | of theirs |\n|---|---|---|---|---|\n\
         | (an empty static program) | {} | | | |\n",
        show(empty)
    );
    for row in rows {
        let theirs = row.theirs.map(show).unwrap_or_default();
        let _ = writeln!(
            text,
            "| {} | {} | {theirs} | {} | {} |",
            row.name,
            show(row.ours),
            kib(row.size),
            row.their_size.map(kib).unwrap_or_default()
        );
    }
    let shared = rows
        .iter()
        .filter_map(|row| Some((row.size, row.their_size?)));
    let (ours, theirs) = shared.fold((0, 0), |sum, sizes| (sum.0 + sizes.0, sum.1 + sizes.1));
    let all: u64 = rows.iter().map(|row| row.size).sum();
    let _ = writeln!(
        text,
        "| those that both have | | | {} | {} |\n| all of ours | | | {} | |",
        kib(ours),
        kib(theirs),
        kib(all)
    );
    text
}

fn kib(bytes: u64) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

fn middle(cycles: &[Cycle], pick: Pick) -> Duration {
    median(
        &cycles
            .iter()
            .map(|cycle| pick(cycle).took)
            .collect::<Vec<_>>(),
    )
}

fn ratio(theirs: Duration, ours: Duration) -> f64 {
    theirs.as_secs_f64() / ours.as_secs_f64().max(f64::MIN_POSITIVE)
}

fn show(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
