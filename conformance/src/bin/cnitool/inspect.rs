//! `inspect`: what there is on the host for an attachment, resource by resource, and what is missing.
//!
//! What should be there follows from the remembered configuration and result; what is there is read from the kernel and
//! from files. Whether all of it is as it should be is CHECK's to say, which is asked at the end.

mod files;
mod links;
mod rules;

use std::path::Path;

pub use files::{lease_dirs, read_leases};
pub use links::owner;

use conformance::libcni::{Cached, Cni, Error as CniError};
use serde_json::{Value, json};

use crate::Error;
use crate::cli::Cli;
use crate::list;
use crate::output::{self, Verdict, table};
use crate::settings::{plugin_dirs, runtime};

/// Whether a resource is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is there, as it should be or besides.
    Present,
    /// It should be there, and is not.
    Missing,
    /// It cannot be told.
    Unknown,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Missing => "missing",
            Self::Unknown => "unknown",
        }
    }
}

/// One thing that an attachment has on the host.
#[derive(Clone, Debug)]
pub struct Resource {
    /// `lease`, `link`, `rule`, and so on.
    pub kind: &'static str,
    /// Its name.
    pub what: String,
    /// Whether it is there.
    pub state: State,
    /// What else there is to say.
    pub note: String,
}

impl Resource {
    /// A resource that is there or not.
    pub fn new(kind: &'static str, what: impl Into<String>, there: bool) -> Self {
        let state = if there {
            State::Present
        } else {
            State::Missing
        };
        Self {
            kind,
            what: what.into(),
            state,
            note: String::new(),
        }
    }

    /// A resource that cannot be looked at.
    pub fn unknown(kind: &'static str, what: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            state: State::Unknown,
            note: why.into(),
            ..Self::new(kind, what, true)
        }
    }

    /// The same with something to say.
    #[must_use]
    pub fn note(self, note: impl Into<String>) -> Self {
        Self {
            note: note.into(),
            ..self
        }
    }

    fn object(&self) -> Value {
        json!({"kind": self.kind, "what": self.what, "state": self.state.word(), "note": self.note})
    }
}

pub fn inspect(cli: &Cli, id: &str) -> Result<Verdict, Error> {
    let found = find(cli, id)?;
    let mut reports = Vec::new();
    let mut verdict = Verdict::Fine;
    for cached in &found {
        let resources = resources(cached);
        let check = check(cli, cached);
        let missing = resources.iter().any(|one| one.state == State::Missing);
        if missing || matches!(check, Check::Failed(_)) {
            verdict = Verdict::Trouble;
        }
        reports.push((cached, resources, check));
    }
    if cli.json {
        output::json(&reports.iter().map(report_object).collect())?;
    } else {
        let texts: Vec<String> = reports.iter().map(report_text).collect();
        output::text(&texts.join("\n"))?;
    }
    Ok(verdict)
}

type Report<'a> = (&'a Cached, Vec<Resource>, Check);

fn report_object((cached, resources, check): &Report<'_>) -> Value {
    let mut object = list::object(cached);
    let resources: Vec<Value> = resources.iter().map(Resource::object).collect();
    if let Value::Object(map) = &mut object {
        map.insert("resources".to_owned(), resources.into());
        map.insert("check".to_owned(), check.object());
    }
    object
}

fn report_text((cached, resources, check): &Report<'_>) -> String {
    let mut text = format!(
        "{} {} of network {}, {}\n",
        cached.container_id,
        cached.ifname,
        cached.network,
        list::state(cached)
    );
    let row = |one: &Resource| {
        vec![
            format!("  {}", one.state.word()),
            one.kind.to_owned(),
            one.what.clone(),
            one.note.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = resources.iter().map(row).collect();
    text += &table(&rows);
    text += &format!("  check: {check}\n");
    text
}

/// The attachments meant: by container id, by its beginning if only one container begins so, by the namespace's path
/// or its name.
fn find(cli: &Cli, id: &str) -> Result<Vec<Cached>, Error> {
    let mut all = runtime(cli).cache().attachments()?;
    all.retain(|cached| {
        cli.ifname
            .as_ref()
            .is_none_or(|name| *name == cached.ifname)
    });
    let is_netns = |cached: &Cached| {
        let path = cached.netns.as_path();
        path == Path::new(id) || path.file_name().is_some_and(|name| name == id)
    };
    let exact: Vec<Cached> = all
        .iter()
        .filter(|cached| cached.container_id == id || is_netns(cached))
        .cloned()
        .collect();
    if !exact.is_empty() {
        return Ok(exact);
    }
    all.retain(|cached| cached.container_id.starts_with(id));
    match all.first() {
        None => Err(format!(
            "no attachment in the cache is of a container {id:?}, or of a namespace of that path or name; cnitool list shows them all"
        )
        .into()),
        Some(first) if all.iter().all(|one| one.container_id == first.container_id) => Ok(all),
        Some(_) => {
            let names: Vec<&str> = all.iter().map(|one| one.container_id.as_str()).collect();
            Err(format!("several containers begin with {id:?}: {}", names.join(", ")).into())
        }
    }
}

fn resources(cached: &Cached) -> Vec<Resource> {
    let netns = cached.netns.display().to_string();
    let namespace = if netns.is_empty() {
        Resource::unknown("namespace", "-", "its runtime has not remembered it")
    } else {
        Resource::new("namespace", netns, cached.may_live())
    };
    let mut all = vec![namespace];
    all.extend(files::leases(cached));
    all.extend(links::all(cached));
    all.extend(rules::all(cached));
    all.extend(files::backups(cached));
    all
}

/// What CHECK says.
pub enum Check {
    /// It is.
    Passed,
    /// It is not, or a plugin cannot tell.
    Failed(String),
    /// There was nobody to ask, or nothing to ask about.
    NotAsked(&'static str),
}

impl Check {
    fn object(&self) -> Value {
        match self {
            Self::Passed => json!({"passed": true}),
            Self::Failed(why) => json!({"passed": false, "error": why}),
            Self::NotAsked(why) => json!({"passed": null, "error": why}),
        }
    }
}

impl std::fmt::Display for Check {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed(why) => write!(f, "failed: {why}"),
            Self::NotAsked(why) => write!(f, "not asked: {why}"),
        }
    }
}

fn check(cli: &Cli, cached: &Cached) -> Check {
    check_with(&runtime(cli).quiet(), cached)
}

/// Asks the plugins of an attachment whether it is as its ADD left it.
pub fn check_with(cni: &Cni, cached: &Cached) -> Check {
    if plugin_dirs().is_empty() {
        return Check::NotAsked("CNI_PATH does not name the plugins");
    }
    let (Some(list), Ok(rt)) = (cached.list(), cached.runtime_conf()) else {
        return Check::NotAsked("its configuration is not remembered");
    };
    if cached.netns.as_os_str().is_empty() {
        return Check::NotAsked("its runtime has not remembered its namespace");
    }
    if !cached.may_live() {
        return Check::NotAsked("its namespace is gone");
    }
    match cni.check(&list, &rt) {
        Ok(()) => Check::Passed,
        Err(CniError::NoCheck(_)) => Check::NotAsked("its version has no CHECK"),
        Err(error) => Check::Failed(error.to_string()),
    }
}

/// A key of a plugin's configuration, as a flag.
pub fn flag(plugin: &cni_types::PluginConf, key: &str) -> bool {
    let raw = Value::Object(plugin.raw().clone());
    cni_types::json::get(&raw, key).and_then(Value::as_bool) == Some(true)
}
