//! `doctor`: looks for what keeps attachments from working, and says what to do about it.
//!
//! It changes nothing. What a plugin knows about its own needs is asked with STATUS; what no plugin can see alone
//! (other people's packet filters, attachments whose owner is gone) is looked at here.

mod attachments;
mod filter;
mod kernel;
mod networks;

use std::path::PathBuf;

use cni_types::{NetworkList, PluginConf, Value, json};
use conformance::libcni::{Cached, Cni, LoadError, all};
use conformance::snapshot::{Item, Snapshot};
use serde_json::json;

use crate::Error;
use crate::cli::Cli;
use crate::output::{self, Verdict};
use crate::settings::{configurations, runtime};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something does not work.
    Fault,
    /// Something may not work, or is left over.
    Warning,
    /// How things are.
    Note,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One thing that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    level: Level,
    subject: String,
    problem: String,
    cure: String,
}

impl Finding {
    /// Something that does not work.
    pub fn fault(
        subject: impl Into<String>,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Fault,
            subject: subject.into(),
            problem: problem.into(),
            cure: cure.into(),
        }
    }

    /// Something that may not work.
    pub fn warning(
        subject: impl Into<String>,
        problem: impl Into<String>,
        cure: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warning,
            ..Self::fault(subject, problem, cure)
        }
    }

    /// How things are.
    pub fn note(subject: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            level: Level::Note,
            ..Self::fault(subject, what, "")
        }
    }

    fn object(&self) -> Value {
        json!({"level": self.level.word(), "subject": self.subject, "problem": self.problem, "cure": self.cure})
    }

    fn text(&self) -> String {
        let head = format!("{:7}  ", self.level.word());
        let mut text = format!("{head}{}: {}\n", self.subject, self.problem);
        if !self.cure.is_empty() {
            text += &format!("{:9}-> {}\n", "", self.cure);
        }
        text
    }
}

/// What is looked at.
pub struct Host {
    cni: Cni,
    files: Vec<(PathBuf, Result<NetworkList, LoadError>)>,
    attachments: Vec<Cached>,
    /// Rules of nftables and of legacy iptables, as far as they can be read.
    items: Vec<Item>,
}

impl Host {
    /// The networks that can be used.
    fn lists(&self) -> impl Iterator<Item = &NetworkList> {
        self.files
            .iter()
            .filter_map(|(_, loaded)| loaded.as_ref().ok())
    }

    /// Every plugin of these networks and of the live attachments.
    fn plugins(&self) -> Vec<PluginConf> {
        let remembered: Vec<NetworkList> = self.live().filter_map(Cached::list).collect();
        let all = self.lists().chain(&remembered);
        all.flat_map(|list| list.plugins.clone()).collect()
    }

    fn live(&self) -> impl Iterator<Item = &Cached> {
        self.attachments.iter().filter(|cached| cached.may_live())
    }
}

pub fn doctor(cli: &Cli, network: Option<&str>) -> Result<Verdict, Error> {
    let mut findings = Vec::new();
    let host = look(cli, network, &mut findings)?;
    findings.extend(kernel::examine(&host));
    findings.extend(filter::examine(&host));
    findings.extend(networks::examine(&host));
    findings.extend(attachments::examine(&host));
    findings.sort_by_key(|finding| finding.level);
    let count = |level| findings.iter().filter(|one| one.level == level).count();
    let (faults, warnings) = (count(Level::Fault), count(Level::Warning));
    if cli.json {
        let all: Vec<Value> = findings.iter().map(Finding::object).collect();
        output::json(&json!({"ok": faults == 0, "findings": all}))?;
    } else {
        let mut text: String = findings.iter().map(Finding::text).collect();
        text += &format!("{faults} faults, {warnings} warnings\n");
        output::text(&text)?;
    }
    Ok(if faults == 0 {
        Verdict::Fine
    } else {
        Verdict::Trouble
    })
}

fn look(cli: &Cli, network: Option<&str>, findings: &mut Vec<Finding>) -> Result<Host, Error> {
    let cni = runtime(cli).quiet();
    let mut files = all(&configurations())?;
    let mut attachments = cni.cache().attachments()?;
    if let Some(name) = network {
        files.retain(|(_, loaded)| loaded.as_ref().map_or(true, |list| list.name == name));
        attachments.retain(|cached| cached.network == name);
    }
    let mut items = Vec::new();
    match Snapshot::nftables() {
        Ok(snapshot) => items.extend(snapshot.items().to_vec()),
        Err(error) => findings.push(Finding::warning(
            "nftables",
            format!("the rules cannot be read: {error}"),
            "run doctor as root, in the host's network namespace",
        )),
    }
    match Snapshot::xtables() {
        Ok(snapshot) => items.extend(snapshot.items().to_vec()),
        Err(error) => findings.push(Finding::warning(
            "legacy iptables",
            format!("there are rules that cannot be read: {error}"),
            "run doctor as root, with iptables-legacy-save installed",
        )),
    }
    Ok(Host {
        cni,
        files,
        attachments,
        items,
    })
}

/// The text that a plugin's configuration has under a key.
fn text(plugin: &PluginConf, key: &str) -> Option<String> {
    let raw = Value::Object(plugin.raw().clone());
    let value = json::get(&raw, key)?.as_str()?;
    (!value.is_empty()).then(|| value.to_owned())
}
