//! The soak: random commands on a changing set of containers, with kills in between.
//!
//! The set grows and shrinks by turns. Every time it has shrunk to nothing, the host must be exactly
//! as it was in the beginning. The same seed gives the same commands in the same order.

use std::time::{Duration, Instant};

use conformance::Result;
use conformance::chain::Attachment;
use conformance::net::Netns;
use conformance::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::dice::Dice;
use crate::kill::Tally;
use crate::trace::{Act, Plan};
use crate::world::{Tamper, Went, World, attachment, forgotten};

/// The most containers at a time.
const CROWD: usize = 10;
/// Calls among which a plugin is killed; some end before.
const CALLS: usize = 450;
/// Commands that are named when something is wrong.
const REMEMBERED: usize = 12;

/// One line of the table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    /// How long, in seconds.
    pub seconds: u64,
    /// Where the random numbers start.
    pub seed: u64,
}

/// What is known of a container.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Nothing of it may be on the host.
    Gone,
    /// ADD succeeded.
    Attached,
    /// A command was killed.
    Unknown,
}

struct Container {
    netns: Option<Netns>,
    attachment: Attachment,
    state: State,
}

/// Runs one line.
pub fn run(world: &mut World, row: &Row) -> Result<Tally> {
    let until = Instant::now() + Duration::from_secs(row.seconds);
    let mut soak = Soak::prepare(world, Dice::new(row.seed))?;
    let mut tally = Tally::default();
    while Instant::now() < until {
        let size = 1 + soak.dice.below(CROWD);
        let problems = soak.wave(world, size, until)?;
        tally.rounds = soak.commands;
        tally.of = soak.kills;
        if !problems.is_empty() {
            let last = soak.last.join("\n    ");
            tally.problems.push(format!(
                "seed {}, command {}:\n    {}\n  after\n    {last}",
                row.seed,
                soak.commands,
                problems.join("\n    "),
            ));
            soak.start_again(world)?;
        }
    }
    tally.good = tally.rounds - tally.problems.len().min(tally.rounds);
    Ok(tally)
}

struct Soak {
    dice: Dice,
    start: Snapshot,
    containers: Vec<Container>,
    plugins: Vec<String>,
    commands: usize,
    kills: usize,
    serial: usize,
    last: Vec<String>,
}

impl Soak {
    fn prepare(world: &mut World, dice: Dice) -> Result<Self> {
        world.reset()?;
        world.settle()?;
        Ok(Self {
            dice,
            start: world.snapshot()?,
            containers: Vec::new(),
            plugins: world.list.plugins()?,
            commands: 0,
            kills: 0,
            serial: 0,
            last: Vec::new(),
        })
    }

    fn start_again(&mut self, world: &mut World) -> Result<()> {
        self.containers.clear();
        world.reset()?;
        world.settle()?;
        self.start = world.snapshot()?;
        Ok(())
    }

    /// Lets the set grow to a size and shrink to nothing; what was wrong on the way.
    fn wave(&mut self, world: &World, size: usize, until: Instant) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let mut growing = true;
        self.last.clear();
        while problems.is_empty() {
            let alive = self.with(|state| state != State::Gone).len();
            growing &= alive < size && Instant::now() < until;
            if !growing && alive == 0 {
                break;
            }
            self.step(world, growing, &mut problems)?;
        }
        self.containers.clear();
        if problems.is_empty() {
            problems = world.changes(&self.start)?;
        }
        Ok(problems)
    }

    fn step(&mut self, world: &World, growing: bool, problems: &mut Vec<String>) -> Result<()> {
        self.commands += 1;
        match self.dice.below(10) {
            0 => self.collect(world, problems),
            1 | 2 => self.check(world, problems),
            3 if growing => self.lose(),
            4..=7 if growing => self.add(world, problems),
            8 | 9 if growing => self.del(world, problems),
            _ if growing => self.add(world, problems),
            _ => self.del(world, problems),
        }
    }

    /// The containers in such a state.
    fn with(&self, test: impl Fn(State) -> bool) -> Vec<usize> {
        let all = self.containers.iter().enumerate();
        all.filter(|(_, one)| test(one.state))
            .map(|(i, _)| i)
            .collect()
    }

    /// A kill at a random call of a random plugin, now and then.
    fn kill(&mut self) -> Option<Tamper> {
        if !self.dice.once_in(5) {
            return None;
        }
        let at = 1 + self.dice.below(CALLS);
        let act = if self.dice.once_in(2) {
            Act::KillAll
        } else {
            Act::KillCaller
        };
        let plugin = self.dice.pick(&self.plugins)?.clone();
        Some(Tamper::new(&plugin, Plan { act, at }))
    }

    fn note(&mut self, what: &str, id: &str, went: Option<&Went>) {
        let killed = went.and_then(|went| went.report.as_ref()?.fired.clone());
        self.kills += usize::from(killed.is_some());
        let how = killed.map(|place| format!(", {place}")).unwrap_or_default();
        self.last.push(format!("{what} {id}{how}"));
        let old = self.last.len().saturating_sub(REMEMBERED);
        let recent = self.last.split_off(old);
        // What was killed is of interest to the end of the wave.
        self.last.retain(|line| line.contains("kill"));
        self.last.extend(recent);
    }

    fn add(&mut self, world: &World, problems: &mut Vec<String>) -> Result<()> {
        self.serial += 1;
        let id = format!("5d3c0ff3-9a5e-4b1c-0000-{:012}", self.serial);
        let netns = world.host.container(&id)?;
        // A port is free again once nothing of its last owner is left.
        let port = u16::try_from(10_000 + self.serial % 20_000).unwrap_or(10_000);
        let mut one = attachment(&id, netns.path(), port);
        let tamper = self.kill();
        let went = world.add(&one, tamper.as_ref())?;
        self.note("ADD", &id, Some(&went));
        let killed = was_killed(&went);
        if !killed {
            problems.extend(complaint("ADD", &went));
        }
        one.result = went.result.filter(|_| went.failed.is_none());
        self.containers.push(Container {
            netns: Some(netns),
            state: if one.result.is_some() {
                State::Attached
            } else {
                State::Unknown
            },
            attachment: one,
        });
        Ok(())
    }

    fn del(&mut self, world: &World, problems: &mut Vec<String>) -> Result<()> {
        let alive = self.with(|state| state != State::Gone);
        let Some(index) = self.dice.pick(&alive).copied() else {
            return Ok(());
        };
        let tamper = self.kill();
        let remembers = self.dice.once_in(2);
        let Some(container) = self.containers.get(index) else {
            return Ok(());
        };
        let mut known = container.attachment.clone();
        if container.netns.is_none() || !remembers {
            known = forgotten(&known);
        }
        let went = world.del(&known, tamper.as_ref())?;
        self.note("DEL", &known.container_id, Some(&went));
        if was_killed(&went) {
            self.set(index, State::Unknown);
            return Ok(());
        }
        problems.extend(complaint("DEL", &went));
        self.set(index, State::Gone);
        let left = world.snapshot()?;
        let left = left.mentioning(&known.container_id);
        problems.extend(left.into_iter().map(|item| format!("DEL left {item}")));
        Ok(())
    }

    fn set(&mut self, index: usize, state: State) {
        if let Some(container) = self.containers.get_mut(index) {
            container.state = state;
        }
    }

    fn check(&mut self, world: &World, problems: &mut Vec<String>) -> Result<()> {
        let attached: Vec<usize> = self
            .with(|state| state == State::Attached)
            .into_iter()
            .filter(|i| {
                self.containers
                    .get(*i)
                    .is_some_and(|one| one.netns.is_some())
            })
            .collect();
        let Some(container) = self
            .dice
            .pick(&attached)
            .and_then(|i| self.containers.get(*i))
        else {
            return Ok(());
        };
        let went = world.check(&container.attachment)?;
        problems.extend(complaint("CHECK", &went));
        let id = container.attachment.container_id.clone();
        self.note("CHECK", &id, None);
        Ok(())
    }

    /// A container's namespace goes away without a word, as in a crash.
    fn lose(&mut self) -> Result<()> {
        let attached = self.with(|state| state == State::Attached);
        let picked = self.dice.pick(&attached).copied();
        if let Some(container) = picked.and_then(|i| self.containers.get_mut(i)) {
            container.netns = None;
            let id = container.attachment.container_id.clone();
            self.note("lost", &id, None);
        }
        Ok(())
    }

    /// GC that lists what is attached: the rest is gone then.
    fn collect(&mut self, world: &World, problems: &mut Vec<String>) -> Result<()> {
        let live = |one: &&Container| one.state == State::Attached && one.netns.is_some();
        let neighbour = world.neighbour();
        let mut valid: Vec<&Attachment> = vec![&neighbour];
        valid.extend(
            self.containers
                .iter()
                .filter(live)
                .map(|one| &one.attachment),
        );
        let went = world.gc(&valid)?;
        problems.extend(complaint("GC", &went));
        self.note("GC", "", None);
        let snapshot = world.snapshot()?;
        for container in &mut self.containers {
            if container.state == State::Attached && container.netns.is_some() {
                continue;
            }
            container.state = State::Gone;
            let left = snapshot.mentioning(&container.attachment.container_id);
            problems.extend(left.into_iter().map(|item| format!("GC left {item}")));
        }
        Ok(())
    }
}

fn was_killed(went: &Went) -> bool {
    went.failed.is_some()
        && went
            .report
            .as_ref()
            .is_some_and(|report| report.fired.is_some())
}

fn complaint(what: &str, went: &Went) -> Option<String> {
    let (plugin, answer) = went.failed.as_ref()?;
    Some(format!("{what}: {plugin} failed: {}", answer.text()))
}
