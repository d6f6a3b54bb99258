//! The kill table: each plugin is stopped with SIGKILL at each of its system calls in turn.
//!
//! After every kill the chain is cleaned up with less than a runtime usually has: by a DEL that
//! knows nothing but the container's id and the interface's name, or by a GC that does not list it.
//! Then host, container and disk must be as they were, and the same container must be able to
//! attach again.

use conformance::Result;
use conformance::chain::{Attachment, Verb};
use conformance::snapshot::Snapshot;
use serde::{Deserialize, Serialize};

use crate::trace::{Act, Plan};
use crate::world::{Tamper, World};

/// What cleans up after a kill.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Cleaner {
    /// A DEL with only id and ifname.
    Del,
    /// A GC that does not list it.
    Gc,
}

/// One line of the table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    /// The plugin that is killed.
    pub plugin: String,
    /// The command it is killed in.
    pub verb: String,
    /// Whether the container is the first one on the host.
    pub first: bool,
    /// Whether its children are killed with it.
    pub all: bool,
    /// Every how many calls it is killed.
    pub every: usize,
    /// The first call at which it is killed.
    pub from: usize,
}

/// How a line came out.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Tally {
    /// How many times something was done to the plugin.
    pub rounds: usize,
    /// Rounds after which everything was as it should be.
    pub good: usize,
    /// How many calls, messages or cases there are.
    pub of: usize,
    /// What was wrong, with the place where the plugin was.
    pub problems: Vec<String>,
}

/// Kills along one line.
pub fn run(world: &mut World, row: &Row) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut arena = Arena::prepare(world, row.first)?;
    let mut at = row.from.max(1);
    loop {
        let mut fired = false;
        for cleaner in [Cleaner::Del, Cleaner::Gc] {
            let round = Round { row, at, cleaner };
            let (place, problems) = round.play(world, &arena)?;
            let Some(place) = place else { break };
            fired = true;
            tally.rounds += 1;
            if problems.is_empty() {
                tally.good += 1;
            } else {
                let text = problems.join("\n    ");
                tally
                    .problems
                    .push(format!("{place}; then {cleaner:?}:\n    {text}"));
                arena = Arena::prepare(world, row.first)?;
            }
        }
        if !fired {
            tally.of = at.saturating_sub(1);
            return Ok(tally);
        }
        at += row.every;
    }
}

/// The state from which every round starts.
struct Arena {
    start: Snapshot,
    /// A container that lives all the time; none when the victim is the first one.
    neighbour: Option<Attachment>,
}

impl Arena {
    fn prepare(world: &mut World, first: bool) -> Result<Self> {
        if first {
            world.learn_leavings()?;
            return Ok(Self {
                start: world.snapshot()?,
                neighbour: None,
            });
        }
        world.reset()?;
        let neighbour = world.settle()?;
        Ok(Self {
            start: world.snapshot()?,
            neighbour: Some(neighbour),
        })
    }

    /// What is left of a victim.
    fn left(&self, world: &World) -> Result<Vec<String>> {
        match &self.neighbour {
            Some(_) => world.changes(&self.start),
            None => world.beyond_leavings(&self.start, true),
        }
    }
}

struct Round<'a> {
    row: &'a Row,
    at: usize,
    cleaner: Cleaner,
}

impl Round<'_> {
    /// Where the plugin was killed (`None`: it ended before), and what was wrong afterwards.
    fn play(&self, world: &mut World, arena: &Arena) -> Result<(Option<String>, Vec<String>)> {
        if arena.neighbour.is_none() {
            world.reset()?;
        }
        let mut victim = world.victim();
        let place = self.kill(world, &mut victim)?;
        let mut problems = Vec::new();
        if place.is_some() {
            self.clean(world, arena, &victim, &mut problems)?;
            problems.extend(arena.left(world)?);
            problems.extend(world.inside(false)?);
        }
        if problems.is_empty() {
            self.again(world, arena, &mut victim, place.is_none(), &mut problems)?;
        }
        Ok((place, problems))
    }

    /// Runs the chain until the plugin is killed in it.
    fn kill(&self, world: &World, victim: &mut Attachment) -> Result<Option<String>> {
        let act = if self.row.all {
            Act::KillAll
        } else {
            Act::KillCaller
        };
        let tamper = Tamper::new(&self.row.plugin, Plan { act, at: self.at });
        let went = if self.row.verb == Verb::Add.as_str() {
            world.add(victim, Some(&tamper))?
        } else {
            victim.result = world.add(victim, None)?.well("ADD")?.result;
            world.del(victim, Some(&tamper))?
        };
        Ok(went.report.and_then(|report| report.fired))
    }

    fn clean(
        &self,
        world: &World,
        arena: &Arena,
        victim: &Attachment,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        let went = match self.cleaner {
            Cleaner::Del => world.del(&world.forgotten(victim), None)?,
            Cleaner::Gc => {
                let valid: Vec<&Attachment> = arena.neighbour.iter().collect();
                let went = world.gc(&valid)?;
                world.empty_container()?;
                went
            }
        };
        problems.extend(
            went.failed
                .map(|(plugin, answer)| format!("{plugin} failed to clean up: {}", answer.text())),
        );
        Ok(())
    }

    /// The same container attaches again, keeps what it is promised, and leaves.
    fn again(
        &self,
        world: &World,
        arena: &Arena,
        victim: &mut Attachment,
        attached: bool,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        let mut say = |what: &str, failed: Option<(String, conformance::plugin::Answer)>| {
            problems.extend(failed.map(|(plugin, answer)| {
                format!("{what} after that: {plugin} failed: {}", answer.text())
            }));
        };
        if !attached {
            let went = world.add(victim, None)?;
            victim.result = went.result;
            say("ADD", went.failed);
            say("CHECK", world.check(victim)?.failed);
        }
        say("DEL", world.del(victim, None)?.failed);
        problems.extend(arena.left(world)?);
        problems.extend(world.inside(true)?);
        Ok(())
    }
}
