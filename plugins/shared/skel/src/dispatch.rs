//! From environment and stdin to one answer.

use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use cni_types::conf::{NetConf, ValidAttachments};
use cni_types::names::{NetnsPath, NetworkName};
use cni_types::result::CniResult;
use cni_types::version::{self, LaterCommand};
use cni_types::{Args, CniError, SpecVersion, code, json};
use serde_json::{Map, Value};

use crate::delegate::Delegate;
use crate::env::{Attachment, Environment, Verb};
use crate::error::{PluginError, ProtocolError, to_object};
use crate::log;
use crate::misspelt;
use crate::plugin::Plugin;
use crate::request::{DelRequest, NetworkRequest, Request};
use crate::undo::Commit;

/// The most that is read of a request, in bytes.
const REQUEST_LIMIT: u64 = 64 << 20;

/// The release of the reference set whose behaviour the plugins match. Programs read it from the about
/// line: Nomad wants at least 0.4.0 (and 1.3.0 before it trusts CHECK), nerdctl at least 1.7.1.
const REFERENCE_RELEASE: &str = "1.9.1";

/// The key of how much is logged.
pub(crate) const LOG_LEVEL: &str = "logLevel";
/// The key of where it is logged.
pub(crate) const LOG_FILE: &str = "logFile";

/// An answer that has not been given yet. Dropping it takes back the changes behind it.
pub struct Reply {
    /// What goes to stdout.
    pub stdout: String,
    /// What goes to stderr.
    pub stderr: String,
    /// The exit status: 0 or 1.
    pub status: u8,
    pub(crate) changes: Option<Box<dyn Commit>>,
}

impl Reply {
    fn success(stdout: String) -> Self {
        Self {
            stdout,
            stderr: String::new(),
            status: 0,
            changes: None,
        }
    }

    pub(crate) fn failure(error: &CniError) -> Self {
        Self {
            stdout: error.to_json(),
            stderr: String::new(),
            status: 1,
            changes: None,
        }
    }

    /// Keeps the changes behind the answer: it has been given.
    pub fn commit(mut self) {
        if let Some(changes) = self.changes.take() {
            changes.commit();
        }
    }
}

/// Answers one call of plugin `P`. Nothing is printed, and the changes of an ADD are taken back unless the
/// reply is committed. A panic in the plugin becomes an error object like any other failure.
pub fn serve<P: Plugin>(env: &Environment, stdin: impl Read) -> Reply {
    let answer = catch_unwind(AssertUnwindSafe(|| answer::<P>(env, stdin)));
    match answer {
        Ok(Ok(reply)) => reply,
        Ok(Err(object)) => Reply::failure(&object),
        Err(panic) => {
            let text = panic
                .downcast_ref::<&str>()
                .map(|s| (*s).to_owned())
                .or_else(|| panic.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "no reason was given".to_owned());
            Reply::failure(&to_object(&ProtocolError::Panicked(text)))
        }
    }
}

fn answer<P: Plugin>(env: &Environment, stdin: impl Read) -> Result<Reply, CniError> {
    let verb = env.verb();
    if env.command.is_empty() {
        return Ok(about::<P>());
    }
    let attachment = env.validate(verb).map_err(|e| to_object(&e))?;
    if verb == Verb::Version {
        return Ok(Reply::success(version_line::<P>()));
    }
    let call = Call::read(env, stdin).map_err(|e| to_object(&e))?;
    call.start_log::<P>(verb, attachment.as_ref());
    log::info(format_args!("the configuration is read"));
    let outcome = match (verb, attachment) {
        (Verb::Add, Some(attachment)) => add::<P>(&call, attachment),
        (Verb::Del, Some(attachment)) => del::<P>(&call, attachment),
        (Verb::Check, Some(attachment)) => check::<P>(&call, attachment),
        (Verb::Reapply, Some(attachment)) => reapply::<P>(&call, attachment),
        (Verb::Gc, _) => gc::<P>(&call),
        (Verb::Status, _) => status::<P>(&call),
        _ => Err(to_object(&ProtocolError::UnknownCommand(
            env.command.to_string_lossy().into_owned(),
        ))),
    };
    match &outcome {
        Ok(_) => log::info(format_args!("{} done", verb.word())),
        Err(object) => log::error(format_args!("{object}")),
    }
    outcome
}

fn add<P: Plugin>(call: &Call<'_>, attachment: Attachment) -> Result<Reply, CniError> {
    let request = call
        .accept::<P>()
        .and_then(|version| call.request::<P>(attachment, version))
        .map_err(|e| to_object(&e))?;
    for slip in misspelt::slips_of::<P>(&call.value) {
        log::warn(format_args!(
            "the key {:?} of the configuration is unknown and ignored; {:?} is one that looks like it",
            slip.written, slip.meant
        ));
    }
    let added = P::add(&request).map_err(|e| call.refusal::<P>(&e))?;
    let stdout = added
        .result
        .to_json(request.version)
        .map_err(|e| CniError::new(code::INTERNAL, e.to_string()))?;
    Ok(Reply {
        changes: added.changes,
        ..Reply::success(stdout)
    })
}

fn del<P: Plugin>(call: &Call<'_>, attachment: Attachment) -> Result<Reply, CniError> {
    let version = call.accept::<P>().map_err(|e| to_object(&e))?;
    call.refuse_own_netns(attachment.netns.as_ref())
        .map_err(|e| to_object(&e))?;
    let request = DelRequest {
        network: call.network.clone(),
        version,
        config: call.config_or_default::<P>(),
        container_id: attachment.container_id,
        ifname: attachment.ifname,
        netns: attachment.netns,
        args: call.args.clone(),
        prev_result: call.prev_result(version).unwrap_or_else(|error| {
            log::warn(format_args!("{error}; going on without it"));
            None
        }),
        ipam: call.ipam(version),
        stdin: call.bytes.as_slice().into(),
    };
    P::del(&request).map_err(|e| to_object(&e))?;
    Ok(Reply::success(String::new()))
}

fn check<P: Plugin>(call: &Call<'_>, attachment: Attachment) -> Result<Reply, CniError> {
    let request = call
        .accept_for::<P>(LaterCommand::Check)
        .and_then(|version| call.request::<P>(attachment, version))
        .map_err(|e| to_object(&e))?;
    P::check(&request).map_err(|e| to_object(&e))?;
    Ok(Reply::success(String::new()))
}

fn reapply<P: Plugin>(call: &Call<'_>, attachment: Attachment) -> Result<Reply, CniError> {
    let request = call
        .accept::<P>()
        .and_then(|version| call.request::<P>(attachment, version))
        .map_err(|e| to_object(&e))?;
    P::reapply(&request).map_err(|e| to_object(&e))?;
    Ok(Reply::success(String::new()))
}

fn gc<P: Plugin>(call: &Call<'_>) -> Result<Reply, CniError> {
    let request = call
        .accept_for::<P>(LaterCommand::Gc)
        .and_then(|version| call.network_request::<P>(call.config_or_default::<P>(), version))
        .map_err(|e| to_object(&e))?;
    P::gc(&request).map_err(|e| to_object(&e))?;
    Ok(Reply::success(String::new()))
}

fn status<P: Plugin>(call: &Call<'_>) -> Result<Reply, CniError> {
    let request = call
        .accept_for::<P>(LaterCommand::Status)
        .and_then(|version| call.network_request::<P>(call.config::<P>()?, version))
        .map_err(|e| to_object(&e))?;
    P::status(&request).map_err(|e| call.refusal::<P>(&e))?;
    Ok(Reply::success(String::new()))
}

/// The answer to a call without a command: who we are, on stderr.
fn about<P: Plugin>() -> Reply {
    let versions: Vec<&str> = P::VERSIONS.iter().map(|v| v.as_str()).collect();
    Reply {
        stderr: format!(
            "CNI {} plugin v{REFERENCE_RELEASE}+ferrule.{}\nCNI protocol versions supported: {}\n",
            P::NAME,
            env!("CARGO_PKG_VERSION"),
            versions.join(", ")
        ),
        ..Reply::success(String::new())
    }
}

/// The answer to VERSION. It needs no JSON library: podman asks it of every plugin at every command.
fn version_line<P: Plugin>() -> String {
    let versions: Vec<String> = P::VERSIONS
        .iter()
        .map(|v| format!("\"{}\"", v.as_str()))
        .collect();
    format!(
        "{{\"cniVersion\":\"{}\",\"supportedVersions\":[{}]}}\n",
        SpecVersion::CURRENT.as_str(),
        versions.join(",")
    )
}

/// The answer to `--keys`: an object of the keys that the plugin reads, each with what its value is.
pub(crate) fn keys<P: Plugin>() -> Reply {
    let all = misspelt::keys_of::<P>().into_iter();
    let all = all.map(|key| (key.path, key.kind));
    let object: Map<String, Value> = all.map(|(path, kind)| (path, kind.into())).collect();
    Reply::success(json::to_pretty(&Value::Object(object)))
}

/// A call whose configuration has been read.
struct Call<'e> {
    env: &'e Environment,
    started: Instant,
    bytes: Vec<u8>,
    value: Value,
    network: NetworkName,
    args: Args,
}

impl<'e> Call<'e> {
    fn read(env: &'e Environment, stdin: impl Read) -> Result<Self, ProtocolError> {
        let started = Instant::now();
        let mut bytes = Vec::new();
        stdin
            .take(REQUEST_LIMIT + 1)
            .read_to_end(&mut bytes)
            .map_err(ProtocolError::Stdin)?;
        if bytes.len() as u64 > REQUEST_LIMIT {
            return Err(ProtocolError::StdinTooLong(REQUEST_LIMIT));
        }
        let value = json::parse(&bytes).map_err(|e| ProtocolError::NotConfig(e.to_string()))?;
        let network = network_name(&value)?;
        Ok(Self {
            env,
            started,
            bytes,
            value,
            network,
            args: Args::parse(&env.args),
        })
    }

    fn start_log<P: Plugin>(&self, verb: Verb, attachment: Option<&Attachment>) {
        let variable =
            |name| std::env::var_os(name).map(|text| text.to_string_lossy().into_owned());
        let asked = log::Asked::read(
            variable("CNI_LOG").as_deref(),
            self.text(LOG_FILE).as_deref(),
            self.text(LOG_LEVEL).as_deref(),
        );
        let context = log::Context {
            plugin: P::NAME.to_owned(),
            command: verb.word().to_owned(),
            network: self.network.to_string(),
            container: attachment
                .map(|one| one.container_id.to_string())
                .unwrap_or_default(),
            ifname: attachment
                .map(|one| one.ifname.to_string())
                .unwrap_or_default(),
            trace: variable("TRACEPARENT").unwrap_or_default(),
        };
        log::init(self.started, context, &asked);
        if log::is_on(log::Level::Debug) {
            P::trace(log::debug);
        }
    }

    /// The error object of a plugin. Where it finds fault with the configuration, a slip of the pen may be why, and most
    /// runtimes do not show what is written to standard error.
    fn refusal<P: Plugin>(&self, error: &dyn PluginError) -> CniError {
        let mut object = to_object(error);
        if object.code != code::INVALID_NETWORK_CONFIG {
            return object;
        }
        for slip in misspelt::slips_of::<P>(&self.value) {
            let known = format!("{:?}", slip.written);
            if !object.details.contains(&known) {
                let note = format!("the key {known} is unknown, was {:?} meant?", slip.meant);
                let before = std::mem::take(&mut object.details);
                let all = [note, before];
                let said: Vec<String> = all.into_iter().filter(|part| !part.is_empty()).collect();
                object.details = said.join("; ");
            }
        }
        object
    }

    fn text(&self, key: &str) -> Option<String> {
        json::get(&self.value, key)
            .and_then(Value::as_str)
            .map(str::to_owned)
    }

    /// `cniVersion` as it is written; empty means 0.1.0.
    fn asked_version(&self) -> Result<&str, ProtocolError> {
        match json::get(&self.value, "cniVersion") {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(ProtocolError::BadVersion),
        }
    }

    /// ADD and DEL: the version must be one of the plugin's, letter by letter.
    fn accept<P: Plugin>(&self) -> Result<SpecVersion, ProtocolError> {
        version::accept(self.asked_version()?, P::VERSIONS).map_err(ProtocolError::Version)
    }

    /// CHECK, GC and STATUS: the version must also be one of those that have the command.
    fn accept_for<P: Plugin>(&self, command: LaterCommand) -> Result<SpecVersion, ProtocolError> {
        version::accept_for(command, self.asked_version()?, P::VERSIONS)
            .map_err(ProtocolError::Version)
    }

    fn config<P: Plugin>(&self) -> Result<P::Config, ProtocolError> {
        json::from_value(&self.value).map_err(ProtocolError::BadConfig)
    }

    fn config_or_default<P: Plugin>(&self) -> P::Config {
        self.config::<P>().unwrap_or_else(|error| {
            log::warn(format_args!("{error}; cleaning up without it"));
            P::Config::default()
        })
    }

    fn prev_result(&self, version: SpecVersion) -> Result<Option<CniResult>, ProtocolError> {
        match json::get(&self.value, "prevResult") {
            None | Some(Value::Null) => Ok(None),
            Some(value) => CniResult::decode(value, version)
                .map(|(_, result)| Some(result))
                .map_err(ProtocolError::BadPrevResult),
        }
    }

    fn ipam(&self, version: SpecVersion) -> Option<Delegate> {
        let ipam = json::get(&self.value, "ipam")?;
        let plugin = json::get(ipam, "type")?
            .as_str()
            .filter(|name| !name.is_empty())?;
        Some(Delegate::new(
            plugin,
            self.env.plugin_dirs(),
            self.bytes.clone(),
            version,
        ))
    }

    fn refuse_own_netns(&self, netns: Option<&NetnsPath>) -> Result<(), ProtocolError> {
        let Some(netns) = netns.filter(|_| !self.env.allows_own_netns()) else {
            return Ok(());
        };
        // A path that cannot be looked at is none of ours; the plugin reports or tolerates it.
        let Ok(theirs) = std::fs::metadata(netns.as_path()) else {
            return Ok(());
        };
        let ours =
            std::fs::metadata("/proc/thread-self/ns/net").map_err(|_| ProtocolError::OwnNetns)?;
        if (ours.dev(), ours.ino()) == (theirs.dev(), theirs.ino()) {
            return Err(ProtocolError::OwnNetns);
        }
        Ok(())
    }

    fn request<P: Plugin>(
        &self,
        attachment: Attachment,
        version: SpecVersion,
    ) -> Result<Request<P::Config>, ProtocolError> {
        NetConf::decode(&self.value).map_err(ProtocolError::BadConfig)?;
        self.refuse_own_netns(attachment.netns.as_ref())?;
        let netns = attachment
            .netns
            .ok_or_else(|| ProtocolError::MissingVariables(vec!["CNI_NETNS"]))?;
        Ok(Request {
            network: self.network.clone(),
            version,
            config: self.config::<P>()?,
            container_id: attachment.container_id,
            ifname: attachment.ifname,
            netns,
            args: self.args.clone(),
            prev_result: self.prev_result(version)?,
            ipam: self.ipam(version),
            stdin: self.bytes.as_slice().into(),
        })
    }

    fn network_request<P: Plugin>(
        &self,
        config: P::Config,
        version: SpecVersion,
    ) -> Result<NetworkRequest<P::Config>, ProtocolError> {
        Ok(NetworkRequest {
            network: self.network.clone(),
            version,
            config,
            valid: ValidAttachments::decode(&self.value).map_err(ProtocolError::BadConfig)?,
            ipam: self.ipam(version),
        })
    }
}

fn network_name(value: &Value) -> Result<NetworkName, ProtocolError> {
    if value.is_null() {
        return Err(ProtocolError::NoNetworkName);
    }
    if !value.is_object() {
        return Err(ProtocolError::NotConfig("it is not an object".to_owned()));
    }
    match json::get(value, "name") {
        None | Some(Value::Null) => Err(ProtocolError::NoNetworkName),
        Some(Value::String(name)) if name.is_empty() => Err(ProtocolError::NoNetworkName),
        Some(Value::String(name)) => NetworkName::new(name.as_str()).map_err(ProtocolError::Name),
        Some(_) => Err(ProtocolError::NotConfig("name is not a string".to_owned())),
    }
}
