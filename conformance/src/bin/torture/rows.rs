//! The lines of a table: which there are, each played in a sandbox of its own, and printed.

use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use conformance::error::Context;
use conformance::sandbox::Launcher;
use conformance::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::Choice;
use crate::build;
use crate::fail;
use crate::kill::{self, Tally};
use crate::lists::{List, RARE};
use crate::soak;
use crate::world::World;

/// A line of a table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Job {
    /// The list's name.
    list: String,
    /// What is done.
    work: Work,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
enum Work {
    Kill(kill::Row),
    Fail(fail::Row),
    Soak(soak::Row),
}

impl Job {
    /// Reads a line that [`table`] passed on.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|error| Error::Missing {
            what: format!("a line of a table in {text:?}: {error}"),
        })
    }

    /// Plays it in the sandbox that this process is in.
    pub fn run(&self, plugins: &Path, tracer: &Path) -> Result<Tally> {
        let mut world = World::new(List::named(&self.list)?, plugins, tracer)?;
        match &self.work {
            Work::Kill(row) => kill::run(&mut world, row),
            Work::Fail(row) => fail::run(&mut world, row),
            Work::Soak(row) => soak::run(&mut world, row),
        }
    }

    fn title(&self) -> String {
        match &self.work {
            Work::Kill(row) => format!(
                "{}  {:<9} {}  {:<22} {:<12}",
                self.list,
                row.plugin,
                row.verb,
                if row.first {
                    "first container"
                } else {
                    "beside another one"
                },
                if row.all { "all" } else { "caller only" },
            ),
            Work::Fail(row) => format!(
                "{}  {:<9} {}  {:<22} {:<12}",
                self.list,
                row.plugin,
                row.verb,
                if row.first {
                    "first container"
                } else {
                    "beside another one"
                },
                row.way.word(),
            ),
            Work::Soak(row) => format!(
                "{}  soak of {} s, seed {} (calls: kills; rounds: commands)",
                self.list, row.seconds, row.seed
            ),
        }
    }
}

/// The lines of the kill table.
pub fn kills(choice: &Choice) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    each(choice, |list, plugin, verb| {
        let lines: &[(bool, bool)] = if list.is_for_one() {
            &[(true, true), (true, false)]
        } else {
            &[(false, true), (false, false), (true, true)]
        };
        for &(first, all) in lines {
            // Only a plugin with children can leave one behind.
            if !all && !has_children(list, plugin) {
                continue;
            }
            let row = kill::Row {
                plugin: plugin.to_owned(),
                verb: verb.to_owned(),
                first,
                all,
                every: choice.every.max(1),
                from: choice.from,
            };
            jobs.push(Job {
                list: list.key.to_owned(),
                work: Work::Kill(row),
            });
        }
    })?;
    Ok(jobs)
}

/// The lines of the failure table.
pub fn failures(choice: &Choice) -> Result<Vec<Job>> {
    let mut jobs = Vec::new();
    each(choice, |list, plugin, verb| {
        for way in fail::WAYS {
            if way == fail::Way::Child && !has_children(list, plugin) {
                continue;
            }
            for first in [false, true]
                .into_iter()
                .filter(|first| *first || !list.is_for_one())
            {
                let row = fail::Row {
                    plugin: plugin.to_owned(),
                    verb: verb.to_owned(),
                    first,
                    way,
                    every: choice.every.max(1),
                    from: choice.from,
                };
                jobs.push(Job {
                    list: list.key.to_owned(),
                    work: Work::Fail(row),
                });
            }
        }
    })?;
    Ok(jobs)
}

/// The lines of the soak, one a list.
pub fn soaks(choice: &Choice, minutes: f64, seed: Option<u64>) -> Result<Vec<Job>> {
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default()
            .as_secs()
    };
    let row = soak::Row {
        seconds: Duration::try_from_secs_f64(minutes * 60.0)
            .unwrap_or_default()
            .as_secs(),
        seed: seed.unwrap_or_else(now),
    };
    // There are not as many cards as containers in a soak.
    let lists = choice.lists()?.into_iter();
    let lists = lists.filter(|list| !list.takes_cards() && !list.is_for_one());
    Ok(lists
        .map(|list| Job {
            list: list.key.to_owned(),
            work: Work::Soak(row.clone()),
        })
        .collect())
}

fn has_children(list: &List, plugin: &str) -> bool {
    let asks_ipam = ["bridge", "ptp", "tap", "macvlan", "host-device"].contains(&plugin)
        || RARE.contains(&plugin);
    asks_ipam || (list.iptables && plugin != "loopback")
}

fn each(choice: &Choice, mut take: impl FnMut(&List, &str, &str)) -> Result<()> {
    let chosen = |all: &[String], one: &str| all.is_empty() || all.iter().any(|each| each == one);
    for list in choice.lists()? {
        for plugin in list
            .plugins()?
            .iter()
            .filter(|plugin| chosen(&choice.only, plugin))
        {
            for verb in ["ADD", "DEL"]
                .into_iter()
                .filter(|verb| chosen(&choice.verbs, verb))
            {
                take(&list, plugin, verb);
            }
        }
    }
    Ok(())
}

/// Plays the lines, some at a time, and prints them. The exit status: 1 when anything was wrong.
pub fn table(choice: &Choice, jobs: &[Job]) -> Result<u8> {
    let plugins = build::plugins(choice.plugins.as_deref())?;
    for list in choice.lists()? {
        println!("{}: {}", list.key, list.title);
    }
    println!("\n{:<60} {:>6} {:>7} {:>6}", "", "calls", "rounds", "good");
    let next = Mutex::new(jobs.iter());
    let bad = Mutex::new(0_usize);
    let failures: Mutex<Vec<Error>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..choice.jobs.max(1) {
            scope.spawn(|| {
                while let Some(job) = lock(&next).next() {
                    match play(job, &plugins) {
                        Ok(tally) => *lock(&bad) += print(job, &tally),
                        Err(error) => lock(&failures).push(error),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    for error in &failures {
        eprintln!("torture: {error}");
    }
    let bad = bad.into_inner().unwrap_or_default();
    println!("\n{bad} rounds left something behind or broke a promise.");
    Ok(if !failures.is_empty() {
        2
    } else {
        u8::from(bad > 0)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn play(job: &Job, plugins: &Path) -> Result<Tally> {
    let program = build::own_path()?;
    let line = serde_json::to_string(job).unwrap_or_default();
    let output = Launcher::beside(&program)?
        .command(&program)
        .args(["inside", "--plugins"])
        .arg(plugins)
        .arg(&line)
        .stderr(Stdio::inherit())
        .output()
        .doing(|| "start a sandbox")?;
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said)
        .ok()
        .filter(|_| output.status.success())
        .ok_or_else(|| {
            Error::unexpected(
                format!("a tally of {line}"),
                format!("{} {said}", output.status),
            )
        })
}

fn print(job: &Job, tally: &Tally) -> usize {
    println!(
        "{:<60} {:>6} {:>7} {:>6}",
        job.title(),
        tally.of,
        tally.rounds,
        tally.good
    );
    for problem in &tally.problems {
        println!("  {problem}");
    }
    tally.rounds - tally.good
}
