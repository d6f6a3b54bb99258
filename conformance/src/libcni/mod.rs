//! A runtime's library: loads network lists, executes plugins, remembers attachments.
//!
//! It does what the Go library does and keeps its files readable both ways, except where that is
//! known to hurt:
//!
//! * a failed ADD is taken back, unless the attachment was there before;
//! * DEL goes past a plugin that fails and reports every failure;
//! * an answer in another version is converted before anybody sees it;
//! * names are checked before they become part of a path, and a cache file is trusted only if its
//!   content names the attachment asked for;
//! * one bad file does not hide the networks in the others;
//! * GC detaches with the configuration that was used to attach, and says so when it cannot read
//!   the cache;
//! * a plugin that hangs is killed with all its children, and its standard error is seen at once.

mod add;
mod cache;
mod check;
mod del;
mod error;
mod exec;
mod find;
mod gc;
mod load;
mod outcome;
mod probe;
mod reapply;

#[cfg(test)]
mod testing;

pub use cache::{Cache, CacheError, Cached, Key};
pub use error::{CallError, Error, Result};
pub use exec::RunError;
pub use find::{FindError, find};
pub use load::{LoadError, all, list_from_file, load, plugin_from_file};
pub use reapply::{PassedOver, Reapplied};

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cni_types::conf::Request;
use cni_types::{ContainerId, IfName, Map, NetworkList, NetworkName, PluginConf, Value, json};

/// How long one plugin may take unless [`Cni::deadline`] says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(240);

/// A runtime: where the plugins are, and where attachments are remembered.
#[derive(Clone, Debug)]
pub struct Cni {
    plugin_dirs: Vec<PathBuf>,
    cache: Cache,
    deadline: Duration,
    forward_stderr: bool,
    progress: Option<fn(&Progress<'_>)>,
}

/// How far an operation on many attachments is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// The attachments that are done.
    pub done: usize,
    /// All that it is about.
    pub of: usize,
    /// The container whose turn is next.
    pub container_id: &'a str,
    /// Its interface.
    pub ifname: &'a str,
}

/// One attachment, as the runtime asks for it.
#[derive(Clone, Debug)]
pub struct RuntimeConf {
    /// The container.
    pub container_id: ContainerId,
    /// Its network namespace; may be empty for DEL when it is gone.
    pub netns: PathBuf,
    /// The interface inside it.
    pub ifname: IfName,
    /// The pairs of `CNI_ARGS`.
    pub args: Vec<(String, String)>,
    /// Capability arguments, for all plugins; each gets what its `capabilities` name.
    pub capability_args: Map<String, Value>,
}

impl RuntimeConf {
    /// An attachment without arguments.
    pub fn new(container_id: ContainerId, netns: impl Into<PathBuf>, ifname: IfName) -> Self {
        RuntimeConf {
            container_id,
            netns: netns.into(),
            ifname,
            args: Vec::new(),
            capability_args: Map::new(),
        }
    }
}

/// A command of the protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Command {
    /// Attach.
    Add,
    /// Compare with what was promised.
    Check,
    /// Detach.
    Del,
    /// Free what is not listed.
    Gc,
    /// Could an ADD work?
    Status,
    /// Which versions?
    Version,
    /// Put back what a reload of the packet filter wiped out. Ferrule's own, not the specification's.
    Reapply,
}

impl Command {
    /// The command as in `CNI_COMMAND`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Command::Add => "ADD",
            Command::Check => "CHECK",
            Command::Del => "DEL",
            Command::Gc => "GC",
            Command::Status => "STATUS",
            Command::Version => "VERSION",
            Command::Reapply => "REAPPLY",
        }
    }

    /// The command as error messages name it.
    const fn word(self) -> &'static str {
        match self {
            Command::Add => "add",
            Command::Check => "check",
            Command::Del => "delete",
            Command::Gc => "gc",
            Command::Status => "status",
            Command::Version => "version",
            Command::Reapply => "reapply",
        }
    }
}

impl Cni {
    /// A runtime that finds plugins in these directories, first match wins, and remembers
    /// attachments where every runtime of the host does, in [`Cache::DEFAULT_DIR`].
    pub fn new(plugin_dirs: impl IntoIterator<Item = PathBuf>) -> Self {
        Cni {
            plugin_dirs: plugin_dirs.into_iter().collect(),
            cache: Cache::new(Cache::DEFAULT_DIR),
            deadline: DEADLINE,
            forward_stderr: true,
            progress: None,
        }
    }

    /// Calls this before each attachment that GC or a reapply turns to.
    #[must_use]
    pub fn on_progress(mut self, tell: fn(&Progress<'_>)) -> Self {
        self.progress = Some(tell);
        self
    }

    fn tell(&self, done: usize, of: usize, next: &Cached) {
        if let Some(tell) = self.progress {
            tell(&Progress {
                done,
                of,
                container_id: &next.container_id,
                ifname: &next.ifname,
            });
        }
    }

    /// Remembers attachments under another directory.
    #[must_use]
    pub fn cache_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cache = Cache::new(dir);
        self
    }

    /// Kills a plugin that takes longer than this.
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = limit;
        self
    }

    /// Does not copy what plugins write to standard error to this process's.
    #[must_use]
    pub fn quiet(mut self) -> Self {
        self.forward_stderr = false;
        self
    }

    /// The remembered attachments.
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// Executes one plugin of a list. The answer is what it printed.
    fn call(
        &self,
        command: Command,
        plugin: &PluginConf,
        attachment: Option<&RuntimeConf>,
        request: &Request<'_>,
    ) -> Result<Vec<u8>> {
        let stdin = json::to_string(&plugin.request(request));
        self.execute(
            command,
            &plugin.plugin_type,
            &environment(attachment),
            stdin.as_bytes(),
        )
        .map_err(|source| Error::Plugin {
            plugin: plugin.plugin_type.clone(),
            name: plugin.name.clone(),
            command,
            source,
        })
    }

    fn execute(
        &self,
        command: Command,
        plugin: &str,
        environment: &[(&'static str, OsString)],
        stdin: &[u8],
    ) -> std::result::Result<Vec<u8>, CallError> {
        let program = find(plugin, &self.plugin_dirs)?;
        let mut all = vec![
            ("CNI_COMMAND", OsString::from(command.as_str())),
            ("CNI_PATH", join(&self.plugin_dirs)),
        ];
        all.extend_from_slice(environment);
        let output = exec::Invocation {
            program: &program,
            environment: &all,
            stdin,
            deadline: self.deadline,
            forward_stderr: self.forward_stderr,
        }
        .run()?;
        Ok(outcome::judge(output)?)
    }
}

/// The variables that name the attachment; all of them, empty where there is nothing to say.
fn environment(attachment: Option<&RuntimeConf>) -> Vec<(&'static str, OsString)> {
    let values = attachment.map(|rt| {
        let pairs: Vec<String> = rt
            .args
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        (
            rt.container_id.as_str().into(),
            rt.netns.clone().into_os_string(),
            rt.ifname.as_str().into(),
            pairs.join(";").into(),
        )
    });
    let (id, netns, ifname, args): (OsString, OsString, OsString, OsString) =
        values.unwrap_or_default();
    vec![
        ("CNI_CONTAINERID", id),
        ("CNI_NETNS", netns),
        ("CNI_IFNAME", ifname),
        ("CNI_ARGS", args),
    ]
}

/// `CNI_PATH`. A directory with a colon in its name cannot be said there, so none is refused.
fn join(dirs: &[PathBuf]) -> OsString {
    let dirs: Vec<&Path> = dirs.iter().map(PathBuf::as_path).collect();
    let mut path = OsString::new();
    for (index, dir) in dirs.iter().enumerate() {
        if index > 0 {
            path.push(":");
        }
        path.push(dir);
    }
    path
}

/// The request of a list's plugins for one attachment.
fn attachment_request<'a>(
    list: &'a NetworkList,
    rt: &'a RuntimeConf,
    prev_result: Option<&'a Value>,
) -> Request<'a> {
    Request {
        prev_result,
        capability_args: Some(&rt.capability_args),
        ..list_request(list)
    }
}

fn list_request(list: &NetworkList) -> Request<'_> {
    Request {
        name: &list.name,
        cni_version: &list.cni_version,
        ..Request::default()
    }
}

fn network_name(list: &NetworkList) -> Result<NetworkName> {
    Ok(NetworkName::new(list.name.as_str())?)
}

#[cfg(test)]
mod tests {
    use super::testing::Bench;
    use super::*;
    use serde_json::json;

    #[test]
    fn no_call_outlives_its_deadline() {
        let bench = Bench::new();
        for command in ["ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION"] {
            bench.hangs("one", command);
        }
        bench.write_cache_file("net-c1-eth0", r#"{"cniVersion":"1.1.0"}"#);
        let cni = bench.cni().deadline(Duration::from_millis(100));
        let list = bench.list(json!({"cniVersion": "1.1.0", "plugins": [{"type": "one"}]}));
        let rt = bench.attachment();
        let errors = [
            cni.add(&list, &rt).unwrap_err(),
            cni.check(&list, &rt).unwrap_err(),
            cni.del(&list, &rt).unwrap_err(),
            cni.gc(&list, &[]).unwrap_err(),
            cni.status(&list).unwrap_err(),
            cni.validate(&list).unwrap_err(),
        ];
        for (error, word) in errors
            .iter()
            .zip(["add", "check", "delete", "gc", "status", "version"])
        {
            let error = error.to_string();
            assert!(
                error.starts_with(&format!("plugin type=\"one\" failed ({word}): ")),
                "{error}"
            );
            assert!(
                error.ends_with("did not end within 100ms and was killed"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_single_configuration_runs_as_a_list_of_one() {
        let bench = Bench::new();
        bench.answers(
            "one",
            "ADD",
            r#"{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.2/8"}}"#,
        );
        let conf = br#"{"cniVersion":"0.2.0","name":"net","type":"one","args":{"org.x":{"a":1}}}"#;
        let list = NetworkList::from_single(PluginConf::parse(conf).unwrap());
        let result = bench
            .cni()
            .add(&list, &bench.attachment())
            .unwrap()
            .unwrap();
        assert_eq!(result["ip4"]["ip"], "10.0.0.2/8");
        assert_eq!(
            bench.stdin("one", "ADD")["args"],
            json!({"org.x": {"a": 1}})
        );
        assert_eq!(
            bench.cached().unwrap().list().unwrap().plugins,
            list.plugins
        );
        bench.cni().del(&list, &bench.attachment()).unwrap();
        assert!(bench.cached().is_none());
    }

    #[test]
    fn interfaces_of_one_container_are_attachments_of_their_own() {
        let bench = Bench::new();
        bench.answers("one", "ADD", "{}");
        let list = bench.list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "one"}]}));
        let mut rt = bench.attachment();
        bench.cni().add(&list, &rt).unwrap();
        rt.ifname = IfName::new("eth1").unwrap();
        bench.cni().add(&list, &rt).unwrap();
        assert_eq!(bench.cache_files(), ["net-c1-eth0", "net-c1-eth1"]);
        bench.cni().del(&list, &rt).unwrap();
        assert_eq!(bench.cache_files(), ["net-c1-eth0"]);
    }
}
