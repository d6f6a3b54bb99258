//! `cnitool`: attaches namespaces to networks by hand, as a runtime would.

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use cni_types::{ContainerId, IfName, Map, NetworkList, NetworkName, Value, json};
use conformance::libcni::{Cache, Cni, Key, LoadError, RuntimeConf, load};
use sha2::{Digest, Sha512};

type Error = Box<dyn std::error::Error>;

const ENVIRONMENT: &str = "Environment:
  NETCONFPATH    directory of the network configurations [default: /etc/cni/net.d]
  CNI_PATH       directories of the plugins, separated by colons
  CNI_ARGS       arguments for the plugins: KEY=value, separated by semicolons
  CAP_ARGS       capability arguments: a JSON object, for instance
                 {\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"}]}
  CNI_IFNAME     interface in the namespace, unless --ifname is given [default: eth0]
  CNI_CACHE_DIR  directory of remembered attachments, unless --cache-dir is given
                 [default: /var/lib/cni]

check and del take the arguments of the add when CNI_ARGS and CAP_ARGS are not set.";

/// Attaches a network namespace to a network, checks, and detaches it.
#[derive(Parser)]
#[command(name = "cnitool", version, after_help = ENVIRONMENT, subcommand_required = true)]
struct Cli {
    /// Interface in the namespace
    #[arg(short, long, global = true, value_name = "NAME")]
    ifname: Option<String>,
    /// Directory of remembered attachments
    #[arg(long, global = true, value_name = "DIR")]
    cache_dir: Option<PathBuf>,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Attach the namespace and print the result
    Add(Target),
    /// Check that the namespace is attached as add left it
    Check(Target),
    /// Detach the namespace
    Del(Target),
    /// Free what attachments left behind whose namespace is gone
    Gc {
        #[command(flatten)]
        network: Network,
        /// Detach the live ones too: every attachment of the network in the cache
        #[arg(long)]
        all: bool,
    },
    /// Put back the rules of all live attachments, after a reload of the packet filter
    Reapply {
        /// Only those of this network
        network: Option<String>,
    },
    /// Ask the plugins whether an add could work
    Status(Network),
}

#[derive(Args)]
struct Target {
    /// Name of the network
    network: String,
    /// Path of the network namespace
    netns: PathBuf,
    #[arg(hide = true)]
    ignored: Vec<OsString>,
}

#[derive(Args)]
struct Network {
    /// Name of the network
    network: String,
    /// Not used; other versions of this tool ask for it
    #[arg(value_name = "NETNS")]
    ignored: Vec<OsString>,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to say it with if this fails.
            let _ = writeln!(io::stderr(), "Error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Help that was asked for goes to standard output; so does the one for no arguments at all.
fn usage(error: &clap::Error) -> ExitCode {
    let bare = env::args_os().len() < 2;
    let (asked, text) = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => (true, error.to_string()),
        _ if bare => (
            true,
            <Cli as clap::CommandFactory>::command()
                .render_help()
                .to_string(),
        ),
        _ => (false, error.to_string()),
    };
    let written = if asked {
        io::stdout().write_all(text.as_bytes())
    } else {
        io::stderr().write_all(text.as_bytes())
    };
    if asked && written.is_ok() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run(cli: &Cli) -> Result<(), Error> {
    let cni = Cni::new(plugin_dirs()).cache_dir(cache_dir(cli));
    match &cli.verb {
        Verb::Add(target) => {
            let list = configuration(&target.network)?;
            let rt = attachment(cli, target)?;
            warn_of_unused(&list, &rt);
            let result = cni.add(&list, &rt)?.unwrap_or_default();
            io::stdout().write_all(json::to_pretty(&result).as_bytes())?;
        }
        Verb::Check(target) => {
            let list = configuration(&target.network)?;
            let mut rt = attachment(cli, target)?;
            recall(&cni, &list.name, &mut rt)?;
            cni.check(&list, &rt)?;
        }
        Verb::Del(target) => {
            let loaded = configuration(&target.network);
            let mut rt = attachment(cli, target)?;
            let remembered = recall(&cni, &target.network, &mut rt)?;
            // A configuration that has gone or broken since must not keep an attachment alive.
            let list = loaded.or_else(|error| remembered.ok_or(error))?;
            cni.del(&list, &rt)?;
        }
        Verb::Gc { network, all } => {
            let list = configuration(&network.network)?;
            let valid = if *all {
                Vec::new()
            } else {
                cni.live_attachments(&list)?
            };
            cni.gc(&list, &valid)?;
        }
        Verb::Reapply { network } => {
            let reapplied = cni.reapply(network.as_deref())?;
            writeln!(
                io::stdout(),
                "{} attachments put back, {} passed over",
                reapplied.done,
                reapplied.skipped
            )?;
        }
        Verb::Status(network) => cni.status(&configuration(&network.network)?)?,
    }
    Ok(())
}

/// Capability arguments go to the plugins that name them among their `capabilities`; those that nobody names would be
/// lost without a word.
fn warn_of_unused(list: &NetworkList, rt: &RuntimeConf) {
    for name in rt.capability_args.keys() {
        let mut takers = list.plugins.iter().flat_map(|plugin| plugin.capabilities());
        if !takers.any(|taken| taken == name) {
            let _ = writeln!(
                io::stderr(),
                "cnitool: no plugin of network {:?} takes {name:?} of CAP_ARGS: none has it in \"capabilities\"",
                list.name
            );
        }
    }
}

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

fn plugin_dirs() -> Vec<PathBuf> {
    variable("CNI_PATH")
        .map(|path| env::split_paths(&path).collect())
        .unwrap_or_default()
}

fn cache_dir(cli: &Cli) -> PathBuf {
    let chosen = cli
        .cache_dir
        .clone()
        .or_else(|| variable("CNI_CACHE_DIR").map(PathBuf::from));
    chosen.unwrap_or_else(|| Cache::DEFAULT_DIR.into())
}

fn configuration(network: &str) -> Result<NetworkList, LoadError> {
    let dir = variable("NETCONFPATH").unwrap_or_else(|| "/etc/cni/net.d".into());
    load(Path::new(&dir), network)
}

fn attachment(cli: &Cli, target: &Target) -> Result<RuntimeConf, Error> {
    let capability_args = capability_args()?;
    let args = arguments()?;
    let ifname = match (&cli.ifname, variable("CNI_IFNAME")) {
        (Some(name), _) => IfName::new(name.as_str()),
        (None, Some(name)) => IfName::from_os(&name),
        (None, None) => IfName::new("eth0"),
    }
    .map_err(cni_types::CniError::from)?;
    let netns = clean(&std::path::absolute(&target.netns)?);
    let container_id = container_id(&netns)?;
    Ok(RuntimeConf {
        args,
        capability_args,
        ..RuntimeConf::new(container_id, netns, ifname)
    })
}

fn capability_args() -> Result<Map<String, Value>, Error> {
    let Some(text) = variable("CAP_ARGS") else {
        return Ok(Map::new());
    };
    let value =
        json::parse(text.as_encoded_bytes()).map_err(|error| format!("CAP_ARGS: {error}"))?;
    json::from_value(&value).map_err(|error| format!("CAP_ARGS: {error}").into())
}

fn arguments() -> Result<Vec<(String, String)>, Error> {
    let args = cni_types::Args::parse(variable("CNI_ARGS").unwrap_or_default());
    let empty = args.pairs().iter().find(|(_, value)| value.is_empty());
    match (args.malformed().first(), empty) {
        (Some(part), _) => Err(format!("invalid CNI_ARGS pair {part:?}").into()),
        (None, Some((key, _))) => Err(format!("invalid CNI_ARGS pair \"{key}=\"").into()),
        (None, None) => Ok(args.pairs().to_vec()),
    }
}

/// Takes over the arguments of the ADD unless others are given, and tells the list it used.
fn recall(cni: &Cni, network: &str, rt: &mut RuntimeConf) -> Result<Option<NetworkList>, Error> {
    let network = NetworkName::new(network).map_err(cni_types::CniError::from)?;
    let key = Key::new(&network, &rt.container_id, &rt.ifname);
    let Some(cached) = cni.cache().get(&key)? else {
        return Ok(None);
    };
    let list = cached.list();
    if variable("CNI_ARGS").is_none() {
        rt.args = cached.args;
    }
    if variable("CAP_ARGS").is_none() {
        rt.capability_args = cached.capability_args;
    }
    Ok(list)
}

/// The path without `.` and `..`, not looking at the file system: the namespace may be gone.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(cleaned.pop()),
            other => cleaned.push(other),
        }
    }
    cleaned
}

/// The same namespace is the same container: `cnitool-` and the beginning of the path's SHA-512.
fn container_id(netns: &Path) -> Result<ContainerId, Error> {
    let digest = Sha512::digest(netns.as_os_str().as_encoded_bytes());
    let hex: String = digest
        .iter()
        .take(10)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    Ok(ContainerId::new(format!("cnitool-{hex}"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_ids_are_those_of_the_other_tool() {
        let netns = clean(Path::new("/var/run/netns/../netns/./cspec1"));
        assert_eq!(netns, Path::new("/var/run/netns/cspec1"));
        let id = container_id(&netns).unwrap();
        assert_eq!(id.as_str(), "cnitool-b8b312668965d6e78b12");
    }
}
