//! The whole measurement, in its order.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::report::{Burst, LeaseRow, ListRow, PacketRow, Results};
use super::worker::{Order, Worker};
use super::{Counts, Cycle, Filling, Floor, PacketRates, Rush};
use crate::error::{Error, Result};
use crate::lists;
use crate::sandbox::Launcher;
use crate::workspace;

/// What is measured, and how thoroughly.
#[derive(Args, Clone, Debug)]
pub struct Plan {
    /// The plugin directory to compare with.
    #[arg(long, value_name = "DIR", default_value = "/usr/lib/cni")]
    pub reference: PathBuf,

    /// Our plugin directory; by default the one that cargo builds into.
    #[arg(long, value_name = "DIR")]
    pub plugins: Option<PathBuf>,

    /// Containers that are attached already.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 100, 1000])]
    pub attachments: Vec<usize>,

    /// Leases that are there already.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 1_000, 10_000, 60_000])]
    pub leases: Vec<u32>,

    /// How often each kind takes its turn.
    #[arg(long, default_value_t = 9)]
    pub rounds: u32,

    /// Containers of the burst.
    #[arg(long, default_value_t = 200)]
    pub burst: usize,

    /// Only these lists: a, b (dual stack, firewall by iptables), c (as b, everything by iptables).
    #[arg(long, value_delimiter = ',', default_values_t = ["a", "b", "c"].map(String::from))]
    pub lists: Vec<String>,

    /// Only these parts.
    #[arg(long, value_enum, value_delimiter = ',')]
    pub only: Vec<Part>,

    /// Where the page and its plots go; by default they are only printed.
    #[arg(long, value_name = "DIR")]
    pub docs: Option<PathBuf>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Part {
    /// host-local alone.
    Leases,
    /// ADD, CHECK and DEL of lists among others, programs, memory, disk.
    Lists,
    /// Packets through the host.
    Packets,
    /// Many at once.
    Burst,
    /// The floor under an ADD.
    Floor,
}

/// A list, and whether the other directory runs it as well.
struct Subject {
    key: &'static str,
    title: &'static str,
    list: String,
    compared: bool,
}

/// Commands at a time in a burst.
const AT_A_TIME: usize = 32;

/// As shipped, with room for more containers.
fn list_a() -> String {
    lists::NOMAD.replace("172.26.66.0/23", "172.26.64.0/20")
}

fn subjects(plan: &Plan) -> Vec<Subject> {
    let b = lists::NOMAD_DUAL.to_owned();
    let by_iptables = b
        .replace(
            "\"ipMasq\":true",
            "\"ipMasq\":true,\"ipMasqBackend\":\"iptables\"",
        )
        .replace("\"snat\":true", "\"snat\":true,\"backend\":\"iptables\"");
    let all = [
        Subject {
            key: "a",
            title: "a: bridge, firewall, portmap",
            list: list_a(),
            compared: true,
        },
        Subject {
            key: "b",
            title: "b: the same, dual stack, firewall by iptables",
            list: b,
            compared: true,
        },
        Subject {
            key: "c",
            title: "c: as b, everything by iptables",
            list: by_iptables,
            compared: false,
        },
    ];
    let wanted = |subject: &Subject| plan.lists.iter().any(|key| key == subject.key);
    all.into_iter().filter(wanted).collect()
}

/// Measures everything that the plan says.
///
/// # Errors
/// When a sandbox cannot be made or a worker ends early; what plugins refuse is in the results.
pub fn run(plan: &Plan) -> Result<Results> {
    let program = workspace::own_path()?;
    let ours = match &plan.plugins {
        Some(directory) => directory.clone(),
        None => {
            workspace::build()?;
            workspace::directory_of(&program)
        }
    };
    let bench = Bench {
        launcher: Launcher::beside(&program)?,
        ours,
        plan,
        program: &program,
    };
    let mut results = Results::default();
    let wanted = |part| plan.only.is_empty() || plan.only.contains(&part);
    if wanted(Part::Leases) {
        results.leases = bench.leases()?;
    }
    if wanted(Part::Floor) {
        results.floor = bench.floor()?;
    }
    if wanted(Part::Burst) {
        results.bursts = bench.bursts()?;
    }
    if wanted(Part::Lists) || wanted(Part::Packets) {
        for subject in subjects(plan) {
            bench.list(
                &subject,
                &mut results,
                wanted(Part::Lists),
                wanted(Part::Packets),
            )?;
        }
    }
    Ok(results)
}

struct Bench<'a> {
    launcher: Launcher,
    ours: PathBuf,
    plan: &'a Plan,
    program: &'a Path,
}

impl Bench<'_> {
    fn worker(&self, plugins: &Path, list: &str) -> Result<Worker> {
        Worker::start(&self.launcher, self.program, plugins, list)
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.program.with_file_name(name)
    }

    fn leases(&self) -> Result<Vec<LeaseRow>> {
        let mut rows = Vec::new();
        let mut worker = self.worker(&self.ours, lists::NOMAD)?;
        for filling in [Filling::Fresh, Filling::NearlyFull] {
            for count in &self.plan.leases {
                eprintln!("host-local with {count} leases, {filling:?} ...");
                let order = Order::Leases {
                    plugins: vec![self.ours.clone(), self.plan.reference.clone()],
                    count: *count,
                    filling,
                    rounds: self.plan.rounds,
                };
                let mut measured: Vec<Vec<Cycle>> = worker.order(&order)?;
                rows.push(LeaseRow {
                    filling,
                    count: *count,
                    theirs: measured.pop().unwrap_or_default(),
                    ours: measured.pop().unwrap_or_default(),
                });
            }
        }
        Ok(rows)
    }

    fn floor(&self) -> Result<Vec<Floor>> {
        eprintln!("the floor ...");
        let mut worker = self.worker(&self.ours, &list_a())?;
        must(worker.order(&Order::Grow {
            size: 1,
            parallel: 1,
        })?)?;
        worker.order(&Order::Floor {
            program: self.beside("floor"),
            empty: self.beside("noop"),
            rounds: self.plan.rounds * 3,
        })
    }

    /// Many at once: on a fresh host, gone again, and once more on a host that was used.
    fn bursts(&self) -> Result<Vec<Burst>> {
        let mut bursts = Vec::new();
        for subject in subjects(self.plan) {
            let mut kinds = vec![("Ferrule", &self.ours)];
            if subject.compared {
                kinds.push(("reference set", &self.plan.reference));
            }
            for (kind, plugins) in kinds {
                eprintln!(
                    "{} attachments at once, list {}, {kind} ...",
                    self.plan.burst, subject.key
                );
                let mut worker = self.worker(plugins, &subject.list)?;
                for host in ["fresh", "used"] {
                    let add: Rush = worker.order(&Order::Grow {
                        size: self.plan.burst,
                        parallel: AT_A_TIME,
                    })?;
                    let mut faults: Vec<String> = worker.order(&Order::Judge)?;
                    let del: Rush = worker.order(&Order::Shrink {
                        size: 0,
                        parallel: AT_A_TIME,
                    })?;
                    faults.extend(worker.order::<Vec<String>>(&Order::Judge)?);
                    bursts.push(Burst {
                        kind: kind.to_owned(),
                        list: subject.key.to_owned(),
                        host: host.to_owned(),
                        add,
                        del,
                        faults,
                    });
                }
            }
        }
        Ok(bursts)
    }

    fn list(
        &self,
        subject: &Subject,
        results: &mut Results,
        cycles: bool,
        packets: bool,
    ) -> Result<()> {
        let first = match cycles {
            true => self.first_cycles(subject)?,
            false => ListRow::default(),
        };
        let mut ours = self.worker(&self.ours, &subject.list)?;
        let mut theirs = match subject.compared {
            true => Some(self.worker(&self.plan.reference, &subject.list)?),
            false => None,
        };
        for size in &self.plan.attachments {
            eprintln!("list {} with {size} attachments ...", subject.key);
            must(ours.order(&Order::Grow {
                size: *size,
                parallel: 2,
            })?)?;
            if let Some(theirs) = &mut theirs {
                must(theirs.order(&Order::Grow {
                    size: *size,
                    parallel: 2,
                })?)?;
            }
            if cycles {
                let row = self.cycles(subject, *size, &mut ours, theirs.as_mut())?;
                results
                    .lists
                    .push(match Some(size) == self.plan.attachments.first() {
                        true => ListRow {
                            ours_first: first.ours.clone(),
                            theirs_first: first.theirs.clone(),
                            ..row
                        },
                        false => row,
                    });
            }
        }
        if packets {
            results
                .packets
                .push(self.packets(subject, "Ferrule", &self.ours, &mut ours)?);
            if let Some(theirs) = &mut theirs {
                let row = self.packets(subject, "reference set", &self.plan.reference, theirs)?;
                results.packets.push(row);
            }
        }
        Ok(())
    }

    /// The first cycle on a fresh host, on as many hosts as there are rounds.
    fn first_cycles(&self, subject: &Subject) -> Result<ListRow> {
        eprintln!("list {} on a fresh host ...", subject.key);
        let cycle = Order::Cycle {
            wrapper: Vec::new(),
        };
        let mut row = ListRow::default();
        for _ in 0..self.plan.rounds {
            let mut ours = self.worker(&self.ours, &subject.list)?;
            row.ours.push(ours.order(&cycle)?);
            if subject.compared {
                let mut theirs = self.worker(&self.plan.reference, &subject.list)?;
                row.theirs.push(theirs.order(&cycle)?);
            }
        }
        Ok(row)
    }

    fn cycles(
        &self,
        subject: &Subject,
        size: usize,
        ours: &mut Worker,
        mut theirs: Option<&mut Worker>,
    ) -> Result<ListRow> {
        let mut row = ListRow {
            key: subject.key.to_owned(),
            title: subject.title.to_owned(),
            size,
            ..ListRow::default()
        };
        let cycle = Order::Cycle {
            wrapper: Vec::new(),
        };
        for round in 0..=self.plan.rounds {
            let own: Cycle = ours.order(&cycle)?;
            let other: Option<Cycle> = match &mut theirs {
                Some(theirs) => Some(theirs.order(&cycle)?),
                None => None,
            };
            // The first on a fresh host makes what all share.
            if round > 0 {
                row.ours.push(own);
                row.theirs.extend(other);
            }
        }
        let count = Order::Count {
            peak: self.beside("peak"),
        };
        row.our_counts = ours.order::<Counts>(&count)?;
        if let Some(theirs) = theirs {
            row.their_counts = Some(theirs.order::<Counts>(&count)?);
        }
        Ok(row)
    }

    /// The host with all its containers against one with a single container, in turn.
    fn packets(
        &self,
        subject: &Subject,
        kind: &str,
        plugins: &Path,
        many: &mut Worker,
    ) -> Result<PacketRow> {
        eprintln!("packets, list {}, {kind} ...", subject.key);
        let mut single = self.worker(plugins, &subject.list)?;
        must(single.order(&Order::Grow {
            size: 1,
            parallel: 1,
        })?)?;
        let mut row = PacketRow {
            kind: kind.to_owned(),
            list: subject.key.to_owned(),
            size: self.plan.attachments.iter().copied().max().unwrap_or(0),
            ..PacketRow::default()
        };
        for round in 0..=self.plan.rounds {
            let one: PacketRates = single.order(&Order::Packets)?;
            let all: PacketRates = many.order(&Order::Packets)?;
            if round > 0 {
                row.one.push(one);
                row.many.push(all);
            }
        }
        Ok(row)
    }
}

/// Containers that the measurement stands on must be there.
fn must(rush: Rush) -> Result<()> {
    match rush.failures.first() {
        None => Ok(()),
        Some(first) => Err(Error::unexpected(
            "every container to be attached",
            format!("{} failures, the first: {first}", rush.failures.len()),
        )),
    }
}
