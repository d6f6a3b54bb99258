//! Results as plots.

use super::Filling;
use super::report::{COMMANDS, FILLINGS, Results, value};
use super::svg::{Chart, Series};

impl Results {
    /// The plots, with the names of their files.
    pub(super) fn charts(&self) -> Vec<(String, Chart)> {
        let mut charts = Vec::new();
        for (key, rows) in self.by_list() {
            let title = rows
                .first()
                .map(|row| row.title.clone())
                .unwrap_or_default();
            let lines = |theirs: bool| {
                COMMANDS
                    .iter()
                    .enumerate()
                    .map(move |(colour, (command, pick))| (colour, command, *pick, theirs))
            };
            let series = lines(false)
                .chain(lines(true))
                .map(|(colour, command, pick, theirs)| Series {
                    name: format!(
                        "{command}, {}",
                        if theirs { "reference" } else { "Ferrule" }
                    ),
                    values: rows
                        .iter()
                        .map(|row| value(if theirs { &row.theirs } else { &row.ours }, pick))
                        .collect(),
                    dashed: theirs,
                    colour,
                });
            let chart = Chart {
                title: format!("List {title}"),
                across: "attachments already there".into(),
                up: "milliseconds".into(),
                positions: rows.iter().map(|row| row.size.to_string()).collect(),
                series: series
                    .filter(|one| one.values.iter().any(Option::is_some))
                    .collect(),
            };
            charts.push((format!("benchmark-list-{key}.svg"), chart));
        }
        charts.extend(self.lease_chart());
        charts
    }

    fn lease_chart(&self) -> Option<(String, Chart)> {
        let of = |filling: Filling| self.leases.iter().filter(move |row| row.filling == filling);
        let mut series = Vec::new();
        for (dashed, who) in [(false, "Ferrule"), (true, "reference")] {
            for (colour, (filling, name)) in FILLINGS.into_iter().enumerate() {
                series.push(Series {
                    name: format!("ADD {name}, {who}"),
                    values: of(filling)
                        .map(|row| {
                            value(if dashed { &row.theirs } else { &row.ours }, |cycle| {
                                cycle.add
                            })
                        })
                        .collect(),
                    dashed,
                    colour,
                });
            }
        }
        let positions: Vec<String> = of(Filling::Fresh)
            .map(|row| row.count.to_string())
            .collect();
        let chart = Chart {
            title: "host-local alone".into(),
            across: "leases already there".into(),
            up: "milliseconds".into(),
            positions,
            series,
        };
        (!self.leases.is_empty()).then(|| ("benchmark-leases.svg".to_owned(), chart))
    }
}
