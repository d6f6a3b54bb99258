//! Results as a page of Markdown with plots.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{Cost, Count, Counts, Cycle, Filling, Floor, PacketRates, Rush};
use crate::bench::median;
use crate::error::{Context, Result};

/// Everything that was measured.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// host-local alone.
    pub leases: Vec<LeaseRow>,
    /// Lists among others.
    pub lists: Vec<ListRow>,
    /// Packets through the host.
    pub packets: Vec<PacketRow>,
    /// Many at once.
    pub bursts: Vec<Burst>,
    /// The floor under an ADD.
    pub floor: Vec<Floor>,
}

/// host-local with so many leases.
#[derive(Clone, Debug)]
pub struct LeaseRow {
    /// How the leases lie.
    pub filling: Filling,
    /// How many there are.
    pub count: u32,
    /// Our cycles.
    pub ours: Vec<Cycle>,
    /// The other directory's.
    pub theirs: Vec<Cycle>,
}

/// A list among so many attachments.
#[derive(Clone, Debug, Default)]
pub struct ListRow {
    /// The list's letter.
    pub key: String,
    /// What the list is.
    pub title: String,
    /// How many attachments there are.
    pub size: usize,
    /// Our first cycle on a fresh host, several times; filled in for the smallest size.
    pub ours_first: Vec<Cycle>,
    /// The other directory's.
    pub theirs_first: Vec<Cycle>,
    /// Our cycles.
    pub ours: Vec<Cycle>,
    /// The other directory's; empty if it does not run this list.
    pub theirs: Vec<Cycle>,
    /// What is counted of ours.
    pub our_counts: Counts,
    /// And of theirs.
    pub their_counts: Option<Counts>,
}

/// Packet rates among one and among many attachments.
#[derive(Clone, Debug, Default)]
pub struct PacketRow {
    /// Whose plugins.
    pub kind: String,
    /// The list's letter.
    pub list: String,
    /// How many the many are.
    pub size: usize,
    /// Rates with one.
    pub one: Vec<PacketRates>,
    /// Rates with many.
    pub many: Vec<PacketRates>,
}

/// Many at once.
#[derive(Clone, Debug)]
pub struct Burst {
    /// Whose plugins.
    pub kind: String,
    /// The list's letter.
    pub list: String,
    /// Fresh or used.
    pub host: String,
    /// Attaching.
    pub add: Rush,
    /// Detaching.
    pub del: Rush,
    /// What was wrong afterwards.
    pub faults: Vec<String>,
}

pub(super) type Pick = fn(&Cycle) -> Cost;
type Rate = fn(&PacketRates) -> f64;
type Part = fn(&Floor) -> Duration;

pub(super) const COMMANDS: [(&str, Pick); 3] = [
    ("ADD", |cycle| cycle.add),
    ("CHECK", |cycle| cycle.check),
    ("DEL", |cycle| cycle.del),
];

pub(super) const FILLINGS: [(Filling, &str); 2] = [
    (Filling::Fresh, "fresh"),
    (Filling::NearlyFull, "nearly full"),
];

impl Results {
    /// The page.
    #[must_use]
    pub fn page(&self) -> String {
        let mut page = String::from(HEAD);
        self.list_part(&mut page);
        self.count_part(&mut page);
        self.lease_part(&mut page);
        self.burst_part(&mut page);
        self.packet_part(&mut page);
        self.floor_part(&mut page);
        page
    }

    /// Writes the page and its plots.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let put = |name: &str, text: &str| {
            let file = directory.join(name);
            fs::write(&file, text).doing(|| format!("write {}", file.display()))
        };
        put("benchmarks.md", &self.page())?;
        for (name, chart) in self.charts() {
            put(&name, &chart.svg())?;
        }
        Ok(())
    }

    /// Lists by letter, each with its rows by size.
    pub(super) fn by_list(&self) -> BTreeMap<&str, Vec<&ListRow>> {
        let mut lists: BTreeMap<&str, Vec<&ListRow>> = BTreeMap::new();
        for row in &self.lists {
            lists.entry(&row.key).or_default().push(row);
        }
        lists
    }

    fn list_part(&self, page: &mut String) {
        if self.lists.is_empty() {
            return;
        }
        page.push_str(
            "\n## Lists, by the attachments that are there already\n\n\
             | list | there already | command | Ferrule | processor | against the first | reference set | processor | reference / Ferrule |\n\
             |---|---:|---|---:|---:|---:|---:|---:|---:|\n",
        );
        for (key, rows) in self.by_list() {
            for (command, pick) in COMMANDS {
                let fresh = rows.iter().filter(|row| !row.ours_first.is_empty());
                let fresh = fresh.map(|row| {
                    let there = "none, fresh host".to_owned();
                    (there, &row.ours_first, &row.theirs_first)
                });
                let used = rows
                    .iter()
                    .map(|row| (row.size.to_string(), &row.ours, &row.theirs));
                let mut first = None;
                for (there, ours, theirs) in fresh.chain(used) {
                    let (own, other) = (wall(ours, pick), wall(theirs, pick));
                    let first = *first.get_or_insert(own);
                    let _ = writeln!(
                        page,
                        "| {key} | {there} | {command}{} | {} | {} | {:.2} | {}{} | {} | {} |",
                        mark(ours, pick),
                        ms(own),
                        ms(cpu(ours, pick)),
                        ratio(own, first),
                        some(theirs, || ms(other)),
                        mark(theirs, pick),
                        some(theirs, || ms(cpu(theirs, pick))),
                        some(theirs, || format!("{:.1}", ratio(other, own))),
                    );
                }
            }
        }
        for (key, rows) in self.by_list() {
            let title = rows
                .first()
                .map(|row| row.title.as_str())
                .unwrap_or_default();
            let _ = writeln!(
                page,
                "\nList {title}.\n\n![List {key}](benchmark-list-{key}.svg)"
            );
        }
    }

    fn count_part(&self, page: &mut String) {
        if self.lists.is_empty() {
            return;
        }
        page.push_str(
            "\n## Programs, system calls, memory, disk\n\n\
             | list | there already | whose | programs: ADD, CHECK, DEL | system calls: ADD, CHECK, DEL | largest program | on disk |\n\
             |---|---:|---|---|---|---|---:|\n",
        );
        for row in &self.lists {
            let theirs = row
                .their_counts
                .iter()
                .map(|counts| ("reference set", counts));
            for (whose, counts) in std::iter::once(("Ferrule", &row.our_counts)).chain(theirs) {
                let all = [counts.add, counts.check, counts.del];
                let list = |pick: fn(&Count) -> usize| {
                    all.iter()
                        .map(|one| pick(one).to_string())
                        .collect::<Vec<_>>()
                        .join(", ")
                };
                let largest = counts.memory.iter().max_by_key(|(_, kib)| **kib);
                let _ = writeln!(
                    page,
                    "| {} | {} | {whose} | {} | {} | {} | {} KiB in {} |",
                    row.key,
                    row.size,
                    list(|one| one.programs),
                    list(|one| one.calls),
                    largest
                        .map(|(name, kib)| format!(
                            "{name}, {:.1} MiB",
                            f64::from(u32::try_from(*kib).unwrap_or(u32::MAX)) / 1024.0
                        ))
                        .unwrap_or_default(),
                    counts.disk / 1024,
                    counts.files,
                );
            }
        }
    }

    fn lease_part(&self, page: &mut String) {
        if self.leases.is_empty() {
            return;
        }
        page.push_str(
            "\n## host-local alone, by the leases that are there already\n\n\
             | range | leases | command | Ferrule | against the smallest | reference set | reference / Ferrule |\n\
             |---|---:|---|---:|---:|---:|---:|\n",
        );
        for (filling, name) in FILLINGS {
            let rows: Vec<_> = self
                .leases
                .iter()
                .filter(|row| row.filling == filling)
                .collect();
            for (command, pick) in COMMANDS {
                let first = rows
                    .first()
                    .map(|row| wall(&row.ours, pick))
                    .unwrap_or_default();
                for row in &rows {
                    let (own, other) = (wall(&row.ours, pick), wall(&row.theirs, pick));
                    let _ = writeln!(
                        page,
                        "| {name} | {} | {command}{} | {} | {:.2} | {}{} | {:.1} |",
                        row.count,
                        mark(&row.ours, pick),
                        ms(own),
                        ratio(own, first),
                        ms(other),
                        mark(&row.theirs, pick),
                        ratio(other, own)
                    );
                }
            }
        }
        page.push_str("\n![host-local](benchmark-leases.svg)\n");
    }

    fn burst_part(&self, page: &mut String) {
        if self.bursts.is_empty() {
            return;
        }
        page.push_str(
            "\n## Many at once, 32 at a time\n\n\
             | list | whose | host | all attached after | longest ADD | all detached after | longest DEL | failures | faults found |\n\
             |---|---|---|---:|---:|---:|---:|---:|---:|\n",
        );
        let mut details = String::new();
        for burst in &self.bursts {
            let failures = burst.add.failures.len() + burst.del.failures.len();
            let _ = writeln!(
                page,
                "| {} | {} | {} | {:.2} s | {} | {:.2} s | {} | {failures} | {} |",
                burst.list,
                burst.kind,
                burst.host,
                burst.add.took.as_secs_f64(),
                ms(burst.add.longest),
                burst.del.took.as_secs_f64(),
                ms(burst.del.longest),
                burst.faults.len(),
            );
            let first = burst.add.failures.first().or(burst.del.failures.first());
            for text in first.into_iter().chain(burst.faults.first()) {
                let _ = writeln!(
                    details,
                    "\n* list {}, {}, {} host: {}",
                    burst.list,
                    burst.kind,
                    burst.host,
                    cut(text)
                );
            }
        }
        page.push_str(&details);
    }

    fn packet_part(&self, page: &mut String) {
        if self.packets.is_empty() {
            return;
        }
        page.push_str(
            "\n## Packets through the host\n\n\
             Packets a second of processor time. *Flood*: one UDP flow from a container to the outside, masqueraded. *Flows*: a new \
             flow each packet, the same way. *Published*: a new flow each packet, from the outside to a published port. It is the \
             container that came last.\n\n\
             | list | whose | packets | among 1 | among many | many / 1 |\n|---|---|---|---:|---:|---:|\n",
        );
        let picks: [(&str, Rate); 3] = [
            ("flood", |rates| rates.flood),
            ("flows", |rates| rates.flows),
            ("published", |rates| rates.published),
        ];
        for row in &self.packets {
            for (name, pick) in picks {
                let (one, many) = (middle(&row.one, pick), middle(&row.many, pick));
                let _ = writeln!(
                    page,
                    "| {} | {} | {name} | {one:.0} | {many:.0} ({}) | {:.2} |",
                    row.list,
                    row.kind,
                    row.size,
                    many / one.max(1.0)
                );
            }
        }
    }

    fn floor_part(&self, page: &mut String) {
        if self.floor.is_empty() {
            return;
        }
        let times =
            |pick: fn(&Floor) -> Duration| median(&self.floor.iter().map(pick).collect::<Vec<_>>());
        page.push_str(
            "\n## The floor under an ADD\n\n\
             One process makes the kernel objects of list a's ADD and nothing else; five empty static programs are started.\n\n\
             | what | by the clock | processor |\n|---|---:|---:|\n",
        );
        let rows: [(&str, Part, Part); 4] = [
            (
                "kernel objects in one process",
                |f| f.objects.wall,
                |f| f.objects.cpu,
            ),
            ("five empty programs", |f| f.starts.wall, |f| f.starts.cpu),
            ("both: the floor", Floor::wall, Floor::cpu),
            ("ADD of list a", |f| f.add.wall, |f| f.add.cpu),
        ];
        for (name, wall, cpu) in rows {
            let _ = writeln!(
                page,
                "| {name} | {} | {} |",
                ms(times(wall)),
                ms(times(cpu))
            );
        }
        let _ = writeln!(
            page,
            "| ADD / floor | {:.2} | {:.2} |",
            ratio(times(|f| f.add.wall), times(Floor::wall)),
            ratio(times(|f| f.add.cpu), times(Floor::cpu)),
        );
    }
}

const HEAD: &str = "# Benchmarks\n\n\
    Written by `cargo bench-cni all --docs docs`: our plugins against those of Debian's `containernetworking-plugins`, in one run on \
    one machine, each kind on a host of its own in namespaces of its own, taking turns. Times are medians: by the clock from \
    starting the first plugin of a list until the last one is gone, and the processor time of all programs that ran for it.\n";

fn wall(cycles: &[Cycle], pick: Pick) -> Duration {
    median(
        &cycles
            .iter()
            .map(|cycle| pick(cycle).wall)
            .collect::<Vec<_>>(),
    )
}

fn cpu(cycles: &[Cycle], pick: Pick) -> Duration {
    median(
        &cycles
            .iter()
            .map(|cycle| pick(cycle).cpu)
            .collect::<Vec<_>>(),
    )
}

pub(super) fn value(cycles: &[Cycle], pick: Pick) -> Option<f64> {
    (!cycles.is_empty()).then(|| wall(cycles, pick).as_secs_f64() * 1e3)
}

fn mark(cycles: &[Cycle], pick: Pick) -> String {
    let failed = cycles.iter().filter(|cycle| !pick(cycle).ok).count();
    if failed == 0 {
        return String::new();
    }
    format!(" ({failed} of {} failed)", cycles.len())
}

fn some(cycles: &[Cycle], text: impl FnOnce() -> String) -> String {
    if cycles.is_empty() {
        String::new()
    } else {
        text()
    }
}

fn middle(rates: &[PacketRates], pick: Rate) -> f64 {
    let mut sorted: Vec<f64> = rates.iter().map(pick).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(1e-9)
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

fn cut(text: &str) -> String {
    text.chars().take(240).collect()
}
