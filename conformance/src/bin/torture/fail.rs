//! The failure table: each system call of a plugin fails in turn, the kernel refuses each of its
//! requests in turn, its children die, it is asked to stop, its answer cannot be written.
//!
//! An ADD either succeeds, and then CHECK confirms it, or it gives an error object, and then
//! everything is as it was. A DEL either succeeds and nothing is left, or it gives an error object
//! and another DEL cleans up.

use std::cell::Cell;
use std::path::PathBuf;

use conformance::Result;
use conformance::chain::{Attachment, Verb, request};
use conformance::plugin::Answer;
use conformance::snapshot::Snapshot;
use nix::errno::Errno;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kill::Tally;
use crate::lists::type_of;
use crate::trace::{Act, Kind, Plan, Report};
use crate::world::{Tamper, World};

/// What goes wrong.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Way {
    /// A system call fails.
    Calls,
    /// The kernel refuses a request.
    Requests,
    /// The IPAM plugin, or a tool, is killed.
    Child,
    /// Somebody asks the plugin to stop.
    Terminate,
    /// The answer cannot be written.
    Stdout,
}

/// All of them.
pub const WAYS: [Way; 5] = [
    Way::Calls,
    Way::Requests,
    Way::Child,
    Way::Terminate,
    Way::Stdout,
];

impl Way {
    /// For the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Requests => "requests",
            Self::Child => "child dies",
            Self::Terminate => "SIGTERM",
            Self::Stdout => "stdout",
        }
    }
}

/// One line of the table.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Row {
    /// The plugin.
    pub plugin: String,
    /// The command.
    pub verb: String,
    /// Whether the container is the first one on the host.
    pub first: bool,
    /// What goes wrong.
    pub way: Way,
    /// Every how many cases it is tried.
    pub every: usize,
    /// The first case that is tried.
    pub from: usize,
}

/// What the kernel says when it refuses a request.
const REFUSALS: [Errno; 4] = [Errno::EPERM, Errno::ENOMEM, Errno::EBUSY, Errno::ENODEV];

/// How a call of a kind can fail.
fn errors(kind: Kind) -> &'static [Errno] {
    match kind {
        Kind::Open => &[Errno::EMFILE, Errno::EACCES],
        Kind::Name => &[Errno::ENOSPC, Errno::EROFS],
        Kind::Read => &[Errno::EIO],
        Kind::Write => &[Errno::ENOSPC, Errno::EIO],
        Kind::Send => &[Errno::ENOBUFS, Errno::EPERM],
        Kind::Receive => &[Errno::ENOBUFS, Errno::EINTR],
        Kind::Descriptor => &[Errno::EMFILE],
        Kind::Option => &[Errno::ENOMEM, Errno::ENOPROTOOPT],
        Kind::Lock => &[Errno::ENOLCK, Errno::EINTR],
        Kind::Namespace => &[Errno::EPERM],
        Kind::Process => &[Errno::EAGAIN, Errno::ENOMEM],
        Kind::Wait => &[Errno::EINTR],
        Kind::Runtime => &[],
    }
}

/// Goes through one line.
pub fn run(world: &mut World, row: &Row) -> Result<Tally> {
    if row.first {
        world.learn_leavings()?;
    }
    let mut stage = Stage::prepare(world, row)?;
    let counted = stage.count(world)?;
    let cases = cases(row, &counted);
    let mut tally = Tally {
        of: cases.len(),
        ..Tally::default()
    };
    // A short line is not passed over.
    let from = row.from.saturating_sub(1) % cases.len().max(1);
    let tried = cases.iter().skip(from).step_by(row.every);
    for case in tried {
        if row.first && tally.rounds > 0 {
            stage = Stage::prepare(world, row)?;
        }
        let (place, problems) = stage.play(world, case)?;
        tally.rounds += 1;
        if problems.is_empty() {
            tally.good += 1;
        } else {
            let place = place.unwrap_or_else(|| format!("{:?}", case.plan));
            tally
                .problems
                .push(format!("{place}:\n    {}", problems.join("\n    ")));
            stage = Stage::prepare(world, row)?;
        }
    }
    Ok(tally)
}

/// Everything that can go wrong in this way with a plugin that makes these calls.
fn cases(row: &Row, counted: &Report) -> Vec<Tamper> {
    let at = |act: Act, at: usize| Tamper::new(&row.plugin, Plan { act, at });
    let calls = || counted.calls.iter().zip(1..);
    match row.way {
        Way::Calls => calls()
            .flat_map(|(call, i)| {
                errors(call.kind())
                    .iter()
                    .map(move |errno| at(Act::Fail(*errno), i))
            })
            .collect(),
        Way::Requests => (1..=counted.messages)
            .flat_map(|i| REFUSALS.map(|errno| at(Act::Refuse(errno), i)))
            .collect(),
        Way::Child => calls()
            .filter(|(call, _)| call.program != row.plugin)
            .map(|(_, i)| at(Act::KillChild, i))
            .collect(),
        Way::Terminate => (1..=counted.count).map(|i| at(Act::Terminate, i)).collect(),
        Way::Stdout if row.verb == Verb::Del.as_str() => Vec::new(),
        Way::Stdout => vec![Tamper {
            stdout: Some(PathBuf::from("/dev/full")),
            ..Tamper::new(&row.plugin, Plan::COUNT)
        }],
    }
}

/// The host with everything that comes before the plugin in its chain.
struct Stage {
    row: Row,
    config: Value,
    victim: Attachment,
    /// What the plugins before this one gave.
    previous: Option<Value>,
    before: Snapshot,
    inside: Vec<String>,
    /// Whether an ADD has succeeded on this stage.
    added_once: Cell<bool>,
}

impl Stage {
    fn prepare(world: &mut World, row: &Row) -> Result<Self> {
        world.reset()?;
        if !row.first {
            world.settle()?;
        }
        let victim = world.victim();
        let mut previous = None;
        let mut config = Value::Null;
        for plugin in world.network.plugins.clone() {
            if type_of(&plugin) == row.plugin {
                config = plugin;
                break;
            }
            let stdin = request(&world.network, &plugin, &victim, previous.as_ref());
            let answer = world.call(Verb::Add, &plugin, &victim, &stdin, None, &mut None)?;
            previous = answer.json();
        }
        Ok(Self {
            row: row.clone(),
            config,
            victim,
            previous,
            before: world.snapshot()?,
            inside: world.inside(true)?,
            added_once: Cell::new(false),
        })
    }

    /// What the plugin does when nothing goes wrong.
    fn count(&mut self, world: &mut World) -> Result<Report> {
        let (_, _, report) = self.act(world, &Tamper::new(&self.row.plugin, Plan::COUNT))?;
        *self = Self::prepare(world, &self.row.clone())?;
        Ok(report.unwrap_or_default())
    }

    fn play(&self, world: &World, case: &Tamper) -> Result<(Option<String>, Vec<String>)> {
        let (answer, result, report) = self.act(world, case)?;
        let place = report.and_then(|report| report.fired);
        let mut problems = judge(&answer, case);
        if self.row.verb == Verb::Add.as_str() {
            if answer.ok() {
                self.keeps_its_word(world, result, &mut problems)?;
            }
        } else if !answer.ok() {
            let answer = self.call(world, Verb::Del, self.previous.as_ref(), None)?.0;
            if !answer.ok() {
                problems.push(format!("another DEL failed: {}", answer.text()));
            }
        }
        let added = answer.ok() || self.row.verb != Verb::Add.as_str();
        let mut left = self.left(world, added)?;
        if !left.is_empty() {
            left.push(format!("the answer was: {}", answer.text()));
        }
        problems.extend(left);
        Ok((place, problems))
    }

    /// ADD or DEL with something going wrong.
    fn act(&self, world: &World, case: &Tamper) -> Result<(Answer, Option<Value>, Option<Report>)> {
        if self.row.verb == Verb::Add.as_str() {
            let (answer, report) =
                self.call(world, Verb::Add, self.previous.as_ref(), Some(case))?;
            let result = answer.json();
            return Ok((answer, result, report));
        }
        let (answer, _) = self.call(world, Verb::Add, self.previous.as_ref(), None)?;
        let result = answer.json();
        let (answer, report) = self.call(world, Verb::Del, result.as_ref(), Some(case))?;
        Ok((answer, result, report))
    }

    /// An ADD that succeeded: CHECK confirms it, and DEL takes it away.
    fn keeps_its_word(
        &self,
        world: &World,
        result: Option<Value>,
        problems: &mut Vec<String>,
    ) -> Result<()> {
        for verb in [Verb::Check, Verb::Del] {
            let (answer, _) = self.call(world, verb, result.as_ref(), None)?;
            if !answer.ok() {
                problems.push(format!(
                    "{} after a success: {}",
                    verb.as_str(),
                    answer.text()
                ));
            }
        }
        Ok(())
    }

    fn left(&self, world: &World, added: bool) -> Result<Vec<String>> {
        let owner = std::slice::from_ref(&self.victim.container_id);
        let mut left = if self.row.first {
            let bridge = added || self.previous.is_some();
            world.beyond_leavings(&self.before, bridge)?
        } else {
            world.changes(&self.before)?
        };
        if self.row.first || added {
            // It may have taken another backend, whose empty tables stay then.
            let strange = world.beyond(&self.before, owner)?;
            left.retain(|line| strange.contains(line) || line.starts_with("+ link"));
        }
        if added {
            self.added_once.set(true);
        }
        if self.row.plugin == "portmap" && self.added_once.get() {
            // Hairpin mode goes with the port, which stays as long as the stage does.
            left.retain(|line| !line.contains("HairpinMode"));
        }
        let inside = world.inside(true)?;
        if inside != self.inside {
            left.push(format!(
                "in the container: {:?} instead of {:?}",
                inside, self.inside
            ));
        }
        Ok(left)
    }

    fn call(
        &self,
        world: &World,
        verb: Verb,
        previous: Option<&Value>,
        case: Option<&Tamper>,
    ) -> Result<(Answer, Option<Report>)> {
        let stdin = request(&world.network, &self.config, &self.victim, previous);
        let mut report = None;
        let answer = world.call(verb, &self.config, &self.victim, &stdin, case, &mut report)?;
        Ok((answer, report))
    }
}

/// Whether an answer is one: success with a result object or nothing at all, or an error object.
fn judge(answer: &Answer, case: &Tamper) -> Vec<String> {
    let error = answer.error();
    let said = || answer.text();
    if answer.ok() {
        let fits = answer.stdout.is_empty() || answer.json().is_some_and(|value| value.is_object());
        return (!fits)
            .then(|| format!("success with junk: {}", said()))
            .into_iter()
            .collect();
    }
    match error {
        Some(error) if error.msg.contains("failed unexpectedly") => {
            vec![format!("a panic: {}", said())]
        }
        Some(_) => Vec::new(),
        None if is_mute(answer) => Vec::new(),
        None if is_untouched(answer, case) => Vec::new(),
        None => vec![format!("no error object: {}", said())],
    }
}

/// Whether the answer itself could not be written, as the plugin says on standard error.
fn is_mute(answer: &Answer) -> bool {
    let said = String::from_utf8_lossy(&answer.stderr);
    answer.status.code() == Some(1) && said.contains("cannot write the answer")
}

/// Whether the plugin was stopped before it had begun, as any program is.
fn is_untouched(answer: &Answer, case: &Tamper) -> bool {
    case.plan.act == Act::Terminate && answer.status.code() == Some(128 + Signal::SIGTERM as i32)
}
