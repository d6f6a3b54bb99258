//! Runs the plugins of a network list in a runtime's order, with a runtime's stdin.
//!
//! This is the runtime that judges plugins, not one to build on ([`crate::libcni`] is): it mends
//! nothing. It stops a DEL at the first failure, undoes no failed ADD and remembers nothing on disk,
//! as the runtimes in use do or may do; it lets a test choose the environment, run plugins under a
//! tracer and see the bare answers; and it depends on no type whose decoding is under test.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::error::{Error, Result};
use crate::plugin::{Answer, Call, PluginError, find};

/// A network: a list of plugins, or a single plugin's configuration.
#[derive(Clone, Debug)]
pub struct Network {
    /// Network name.
    pub name: String,
    /// Specification version of the configuration.
    pub version: String,
    /// The plugins' configurations in their order.
    pub plugins: Vec<Value>,
}

impl Network {
    /// Reads a list (`plugins`) or a single configuration (`type`).
    ///
    /// # Errors
    /// [`Error::Malformed`] when it is neither.
    pub fn parse(text: &str) -> Result<Self> {
        let bad = |what: &str| Error::Malformed {
            what: format!("network configuration: {what}"),
        };
        let value: Value = serde_json::from_str(text).map_err(|error| bad(&error.to_string()))?;
        let plugins = match value.get("plugins").and_then(Value::as_array) {
            Some(list) => list.clone(),
            None if value.get("type").is_some() => vec![value.clone()],
            None => return Err(bad("neither plugins nor type")),
        };
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        Ok(Self {
            name: text("name").ok_or_else(|| bad("no name"))?,
            version: text("cniVersion").unwrap_or_else(|| "0.1.0".into()),
            plugins,
        })
    }

    /// Whether the configuration's version has a command; ADD and DEL are in all of them.
    #[must_use]
    pub fn has(&self, verb: Verb) -> bool {
        let since: &[u64] = match verb {
            Verb::Add | Verb::Del => return true,
            Verb::Check => &[0, 4, 0],
            Verb::Gc | Verb::Status => &[1, 1, 0],
        };
        let parts: Vec<u64> = self
            .version
            .split('.')
            .filter_map(|part| part.parse().ok())
            .collect();
        parts.as_slice() >= since
    }
}

/// A command that runs along a whole list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verb {
    /// Attach.
    Add,
    /// Compare with what was promised.
    Check,
    /// Detach, last plugin first.
    Del,
    /// Free what is not in the list of valid attachments.
    Gc,
    /// Could an ADD work?
    Status,
}

impl Verb {
    /// The command as `CNI_COMMAND` has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Check => "CHECK",
            Self::Del => "DEL",
            Self::Gc => "GC",
            Self::Status => "STATUS",
        }
    }
}

/// One attachment of a container to a network, as the runtime remembers it.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Container id.
    pub container_id: String,
    /// Path of the network namespace; empty when it is gone.
    pub netns: PathBuf,
    /// Interface name inside the container.
    pub ifname: String,
    /// `CNI_ARGS`; `None` leaves the variable out.
    pub args: Option<String>,
    /// Capability arguments by capability.
    pub capabilities: Map<String, Value>,
    /// The result of the last ADD.
    pub result: Option<Value>,
}

impl Attachment {
    /// An attachment of `eth0` with no arguments.
    #[must_use]
    pub fn new(container_id: &str, netns: &Path) -> Self {
        Self {
            container_id: container_id.to_owned(),
            netns: netns.to_owned(),
            ifname: "eth0".into(),
            args: None,
            capabilities: Map::new(),
            result: None,
        }
    }

    /// Adds a capability argument, such as `portMappings`.
    #[must_use]
    pub fn capability(mut self, name: &str, value: Value) -> Self {
        self.capabilities.insert(name.to_owned(), value);
        self
    }

    /// Sets `CNI_ARGS`.
    #[must_use]
    pub fn args(mut self, args: &str) -> Self {
        self.args = Some(args.to_owned());
        self
    }

    /// Sets the interface name.
    #[must_use]
    pub fn ifname(mut self, ifname: &str) -> Self {
        self.ifname = ifname.to_owned();
        self
    }
}

/// A plugin of a list that failed, and how.
#[derive(Debug)]
pub struct Failure {
    /// Name of the plugin.
    pub plugin: String,
    /// The command.
    pub verb: Verb,
    /// The error object, when there was a proper one.
    pub error: Option<PluginError>,
    /// Everything the plugin said.
    pub answer: Answer,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} failed: ", self.verb.as_str(), self.plugin)?;
        match &self.error {
            Some(error) if error.details.is_empty() => {
                write!(f, "{} (code {})", error.msg, error.code)
            }
            Some(error) => write!(f, "{}; {} (code {})", error.msg, error.details, error.code),
            None => write!(f, "{}", self.answer.text()),
        }
    }
}

/// Executes lists with the plugins of some directories.
#[derive(Clone, Debug)]
pub struct Runtime {
    directories: Vec<PathBuf>,
    path: OsString,
    wrapper: Vec<OsString>,
    deadline: Duration,
}

impl Runtime {
    /// A runtime that looks for plugins here. Plugins get [`standard_path`].
    #[must_use]
    pub fn new(directory: &Path) -> Self {
        Self {
            directories: vec![directory.to_owned()],
            path: standard_path(),
            wrapper: Vec::new(),
            deadline: crate::plugin::DEADLINE,
        }
    }

    /// Gives plugins another `PATH`.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<OsString>) -> Self {
        self.path = path.into();
        self
    }

    /// Runs every plugin under another program.
    #[must_use]
    pub fn under(mut self, wrapper: &[OsString]) -> Self {
        self.wrapper = wrapper.to_vec();
        self
    }

    /// Runs ADD along the list; the attachment remembers the result.
    ///
    /// # Errors
    /// [`Error::Plugin`] of the first plugin that fails. As a runtime would, it leaves undoing to
    /// a later [`Runtime::del`].
    pub fn add(&self, network: &Network, attachment: &mut Attachment) -> Result<Value> {
        let mut previous: Option<Value> = None;
        for plugin in &network.plugins {
            let stdin = request(network, plugin, attachment, previous.as_ref());
            let answer = self.execute(Verb::Add, plugin, attachment, &stdin)?;
            let result = answer
                .json()
                .filter(Value::is_object)
                .ok_or_else(|| Error::Protocol {
                    plugin: type_of(plugin).to_owned(),
                    verb: Verb::Add.as_str().into(),
                    what: format!("no result object: {}", answer.text()),
                })?;
            previous = Some(result);
        }
        attachment.result.clone_from(&previous);
        previous.ok_or_else(|| Error::Missing {
            what: "a plugin in the list".into(),
        })
    }

    /// Runs CHECK along the list.
    ///
    /// # Errors
    /// [`Error::Plugin`] of the first plugin that fails.
    pub fn check(&self, network: &Network, attachment: &Attachment) -> Result<()> {
        for plugin in &network.plugins {
            let stdin = request(network, plugin, attachment, attachment.result.as_ref());
            self.execute(Verb::Check, plugin, attachment, &stdin)?;
        }
        Ok(())
    }

    /// Runs DEL along the list, last plugin first, and stops at the first failure as runtimes do.
    ///
    /// # Errors
    /// [`Error::Plugin`] of the first plugin that fails.
    pub fn del(&self, network: &Network, attachment: &Attachment) -> Result<()> {
        for plugin in network.plugins.iter().rev() {
            let stdin = request(network, plugin, attachment, attachment.result.as_ref());
            self.execute(Verb::Del, plugin, attachment, &stdin)?;
        }
        Ok(())
    }

    /// Runs GC along the list; `None` sends no list of valid attachments at all.
    ///
    /// # Errors
    /// [`Error::Plugin`] of the first plugin that fails.
    pub fn gc(&self, network: &Network, valid: Option<&[&Attachment]>) -> Result<()> {
        let valid = valid.map(|list| {
            let entry =
                |one: &&Attachment| json!({"containerID": one.container_id, "ifname": one.ifname});
            Value::Array(list.iter().map(entry).collect())
        });
        for plugin in &network.plugins {
            let mut stdin = base(network, plugin);
            if let Some(list) = &valid {
                stdin.insert("cni.dev/valid-attachments".into(), list.clone());
                stdin.insert("cni.dev/attachments".into(), list.clone());
            }
            self.execute_without_attachment(Verb::Gc, plugin, &Value::Object(stdin))?;
        }
        Ok(())
    }

    /// Runs STATUS along the list.
    ///
    /// # Errors
    /// [`Error::Plugin`] of the first plugin that is not ready.
    pub fn status(&self, network: &Network) -> Result<()> {
        for plugin in &network.plugins {
            let stdin = Value::Object(base(network, plugin));
            self.execute_without_attachment(Verb::Status, plugin, &stdin)?;
        }
        Ok(())
    }

    /// A call of one plugin with the environment of an attachment, for tests that want to see the
    /// bare answer.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such plugin.
    pub fn call(&self, plugin: &str, verb: &str, attachment: &Attachment) -> Result<Call> {
        let call = self
            .bare(plugin, verb)?
            .env("CNI_CONTAINERID", &attachment.container_id)
            .env("CNI_IFNAME", &attachment.ifname)
            .env("CNI_NETNS", &attachment.netns);
        Ok(match &attachment.args {
            Some(args) => call.env("CNI_ARGS", args),
            None => call,
        })
    }

    /// A call of one plugin that names no attachment.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is no such plugin.
    pub fn bare(&self, plugin: &str, verb: &str) -> Result<Call> {
        let program = find(plugin, &self.directories)?;
        let path = std::env::join_paths(&self.directories).map_err(|error| Error::Malformed {
            what: format!("plugin directory: {error}"),
        })?;
        Ok(Call::new(program)
            .under(&self.wrapper)
            .deadline(self.deadline)
            .env("PATH", &self.path)
            .env("CNI_COMMAND", verb)
            .env("CNI_PATH", path))
    }

    fn execute(
        &self,
        verb: Verb,
        plugin: &Value,
        attachment: &Attachment,
        stdin: &Value,
    ) -> Result<Answer> {
        let name = type_of(plugin);
        let call = self.call(name, verb.as_str(), attachment)?;
        judge(name, verb, call.stdin(stdin.to_string()).run()?)
    }

    fn execute_without_attachment(
        &self,
        verb: Verb,
        plugin: &Value,
        stdin: &Value,
    ) -> Result<Answer> {
        let name = type_of(plugin);
        let call = self.bare(name, verb.as_str())?;
        judge(name, verb, call.stdin(stdin.to_string()).run()?)
    }
}

fn judge(plugin: &str, verb: Verb, answer: Answer) -> Result<Answer> {
    if answer.ok() {
        return Ok(answer);
    }
    let error = answer.error();
    Err(Error::Plugin(Box::new(Failure {
        plugin: plugin.to_owned(),
        verb,
        error,
        answer,
    })))
}

fn type_of(plugin: &Value) -> &str {
    plugin
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// The plugin's own configuration under the network's name and version.
fn base(network: &Network, plugin: &Value) -> Map<String, Value> {
    let mut config = plugin.as_object().cloned().unwrap_or_default();
    config.insert("name".into(), network.name.clone().into());
    config.insert("cniVersion".into(), network.version.clone().into());
    config
}

/// What a plugin reads on standard input for ADD, CHECK and DEL.
#[must_use]
pub fn request(
    network: &Network,
    plugin: &Value,
    attachment: &Attachment,
    previous: Option<&Value>,
) -> Value {
    let mut config = base(network, plugin);
    let wanted = |name: &String| {
        plugin
            .pointer(&format!("/capabilities/{name}"))
            .and_then(Value::as_bool)
            == Some(true)
    };
    let runtime: Map<String, Value> = attachment
        .capabilities
        .iter()
        .filter(|(name, _)| wanted(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !runtime.is_empty() {
        config.insert("runtimeConfig".into(), Value::Object(runtime));
    }
    if let Some(previous) = previous {
        config.insert("prevResult".into(), previous.clone());
    }
    Value::Object(config)
}

/// The search path of a system service: this process's own, and the directories of the system's
/// tools, which an ordinary user's shell may leave out.
#[must_use]
pub fn standard_path() -> OsString {
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    path.push(":/usr/local/sbin:/usr/sbin:/sbin");
    path
}

/// The file a program's name stands for on a search path.
#[must_use]
pub fn find_tool(name: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    std::env::split_paths(path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file())
}
