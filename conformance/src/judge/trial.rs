//! The place where one check is played, and the record of what was seen there.

use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::case::Step;
use super::place::{Place, merge};
use super::standin::Standins;
use super::subject::Subject;
use super::verdict::Verdict;
use crate::chain::standard_path;
use crate::error::{Error, Result};
use crate::net::{Host, Rtnl};
use crate::plugin::{Answer, Call};
use crate::snapshot::Snapshot;

/// How long any command may take. Generous: the reference set waits up to ten seconds for IPv6.
const DEADLINE: Duration = Duration::from_secs(20);

/// How many of the last calls of a check are reported, and how much of each.
const KEPT_STEPS: usize = 6;
const KEPT_TEXT: usize = 1500;

/// What all trials of a sandbox share; made when first needed.
#[derive(Debug, Default)]
pub(super) struct Stage {
    host: OnceCell<Host>,
    standins: OnceCell<Standins>,
    trials: Cell<u8>,
    chained: Cell<Option<bool>>,
}

impl Stage {
    fn host(&self) -> Result<&Host> {
        if self.host.get().is_none() {
            let _ = self.host.set(Host::new()?);
        }
        self.host.get().ok_or_else(|| missing("the host"))
    }

    fn standins(&self) -> Result<&Standins> {
        if self.standins.get().is_none() {
            let _ = self.standins.set(Standins::write()?);
        }
        self.standins.get().ok_or_else(|| missing("the stand-ins"))
    }
}

fn missing(what: &str) -> Error {
    Error::Missing { what: what.into() }
}

/// One check being tried with one plugin in one version.
#[derive(Debug)]
pub struct Trial<'a> {
    pub(super) subject: &'a Subject,
    pub(super) version: String,
    pub(super) place: Place,
    pub(super) containers: Cell<u8>,
    stage: &'a Stage,
    steps: RefCell<Vec<Step>>,
}

/// A call that is being put together.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    env: Vec<(String, OsString)>,
    stdin: Vec<u8>,
    program: PathBuf,
}

impl Ask {
    /// Sets a variable.
    pub fn set(mut self, key: &str, value: impl AsRef<OsStr>) -> Self {
        self = self.unset(key);
        self.env.push((key.to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Takes a variable away.
    pub fn unset(mut self, key: &str) -> Self {
        self.env.retain(|(one, _)| one != key);
        self
    }

    /// Sets what the plugin reads.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = bytes.into();
        self
    }

    /// The plugin reads this document.
    pub fn config(self, config: &Value) -> Self {
        self.stdin(config.to_string())
    }

    pub(super) fn environment(&self) -> &[(String, OsString)] {
        &self.env
    }

    pub(super) fn program(&self) -> &PathBuf {
        &self.program
    }

    pub(super) fn call(&self) -> Call {
        let call = Call::new(&self.program).stdin(self.stdin.clone());
        self.env
            .iter()
            .fold(call.deadline(DEADLINE), |call, (key, value)| {
                call.env(key, value)
            })
    }

    pub(super) fn step(&self, seen: String) -> Step {
        let env = self
            .env
            .iter()
            .filter(|(key, _)| key != "PATH")
            .map(|(key, value)| format!("{key}={}", quoted(&value.to_string_lossy())));
        let env: Vec<String> = env.collect();
        Step {
            command: format!(
                "env -i PATH=\"$PATH\" {} {}",
                env.join(" "),
                self.program.display()
            ),
            stdin: cut(&String::from_utf8_lossy(&self.stdin)),
            seen: cut(&seen),
        }
    }
}

/// A word as a shell reads it.
fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=,".contains(c);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(KEPT_TEXT) {
        Some((at, _)) => format!(
            "{} [... {} bytes in all]",
            text.get(..at).unwrap_or_default(),
            text.len()
        ),
        None => text.to_owned(),
    }
}

impl<'a> Trial<'a> {
    pub(super) fn new(subject: &'a Subject, stage: &'a Stage, version: &str) -> Self {
        let number = stage.trials.get();
        stage.trials.set(number.wrapping_add(1));
        Self {
            subject,
            version: version.to_owned(),
            place: Place { number },
            containers: Cell::new(0),
            stage,
            steps: RefCell::default(),
        }
    }

    pub(super) fn host(&self) -> Result<&'a Host> {
        self.stage.host()
    }

    pub(super) fn rtnl(&self) -> Result<&'a Rtnl> {
        Ok(self.stage.host()?.rtnl())
    }

    pub(super) fn standins(&self) -> Result<&'a Standins> {
        self.stage.standins()
    }

    /// Whether the plugin follows others, if that was found out already.
    pub(super) fn chained(&self) -> Option<bool> {
        self.stage.chained.get()
    }

    /// It was found out.
    pub(super) fn set_chained(&self, follows: bool) {
        self.stage.chained.set(Some(follows));
    }

    pub(super) fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::take(self.stage.host()?)
    }

    /// Whether the version is at least this one.
    pub(super) fn at_least(&self, version: &str) -> bool {
        super::check::rank(&self.version) >= super::check::rank(version)
    }

    /// A configuration with what every plugin needs, and what this one needs in addition.
    pub(super) fn config(&self) -> Value {
        let mut config = json!({"cniVersion": self.version, "name": self.place.network(), "type": self.subject.name});
        if let Some(given) = &self.subject.config {
            merge(&mut config, given);
            merge(
                &mut config,
                &json!({"cniVersion": self.version, "type": self.subject.name}),
            );
        } else {
            merge(&mut config, &(self.subject.profile().keys)(self.place));
        }
        config
    }

    /// A call with all variables, for an attachment whose namespace does not exist.
    pub(super) fn ask(&self, verb: &str) -> Ask {
        self.ask_of(self.subject.program(), verb)
    }

    /// The same call of another program.
    pub(super) fn ask_of(&self, program: PathBuf, verb: &str) -> Ask {
        let mut path = vec![self.subject.directory.clone()];
        if let Some(standins) = self.stage.standins.get() {
            path.insert(0, standins.directory());
        }
        let path = std::env::join_paths(path).unwrap_or_default();
        let ask = Ask {
            env: Vec::new(),
            stdin: Vec::new(),
            program,
        };
        ask.set("PATH", standard_path())
            .set("CNI_COMMAND", verb)
            .set("CNI_CONTAINERID", "judged")
            .set("CNI_NETNS", "/run/netns/missing")
            .set("CNI_IFNAME", "eth0")
            .set("CNI_PATH", path)
            .config(&self.config())
    }

    /// Makes the call.
    pub(super) fn send(&self, ask: &Ask) -> Verdict<Answer> {
        match ask.call().run() {
            Ok(answer) => {
                self.note(ask, &answer.text());
                Ok(answer)
            }
            Err(error) => {
                self.note(ask, &error.to_string());
                Err(error.into())
            }
        }
    }

    /// Records a call.
    pub(super) fn note(&self, ask: &Ask, seen: &str) {
        let mut steps = self.steps.borrow_mut();
        if steps.len() == KEPT_STEPS {
            steps.remove(0);
        }
        steps.push(ask.step(seen.to_owned()));
    }

    /// What was run and seen.
    pub(super) fn into_steps(self) -> Vec<Step> {
        self.steps.into_inner()
    }
}
