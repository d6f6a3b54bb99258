//! What the environment and the flags say: directories, the attachment, its arguments.

use std::env;
use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::path::{Component, Path, PathBuf};

use cni_types::{ContainerId, IfName, Map, NetworkList, NetworkName, Value, json};
use conformance::libcni::{Cache, Cni, Key, LoadError, Progress, RuntimeConf, all, load};
use sha2::{Digest, Sha512};

use crate::Error;
use crate::cli::{Cli, Target};
use crate::output::say;

/// A variable that is set and not empty.
fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

/// The runtime that the environment describes.
pub fn runtime(cli: &Cli) -> Cni {
    let cni = Cni::new(plugin_dirs()).cache_dir(cache_dir(cli));
    if cli.progress || io::stderr().is_terminal() {
        cni.on_progress(tell)
    } else {
        cni
    }
}

fn tell(progress: &Progress<'_>) {
    say(&format!(
        "{} of {}: {} {}",
        progress.done + 1,
        progress.of,
        progress.container_id,
        progress.ifname
    ));
}

/// The directories of the plugins.
pub fn plugin_dirs() -> Vec<PathBuf> {
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

/// The directory of the network configurations.
pub fn configurations() -> PathBuf {
    variable("NETCONFPATH")
        .unwrap_or_else(|| "/etc/cni/net.d".into())
        .into()
}

/// The network's configuration. That another file has the same name is said: which of them counts is easily missed.
pub fn configuration(network: &str) -> Result<NetworkList, LoadError> {
    let dir = configurations();
    let list = load(&dir, network)?;
    let mut same = all(&dir)?
        .into_iter()
        .filter(|(_, loaded)| loaded.as_ref().is_ok_and(|list| list.name == network))
        .map(|(path, _)| path.display().to_string());
    let used = same.next().unwrap_or_default();
    let passed: Vec<String> = same.collect();
    if !passed.is_empty() {
        say(&format!(
            "network {network:?} is taken from {used}; the file of the same name is not used: {}",
            passed.join(", ")
        ));
    }
    Ok(list)
}

/// The attachment of `add`, `check` and `del`.
pub fn attachment(cli: &Cli, target: &Target) -> Result<RuntimeConf, Error> {
    let capability_args = capability_args()?;
    let args = arguments()?;
    let ifname = match (&cli.ifname, variable("CNI_IFNAME")) {
        (Some(name), _) => IfName::new(name.as_str()),
        (None, Some(name)) => IfName::from_os(&name),
        (None, None) => IfName::new("eth0"),
    }
    .map_err(cni_types::CniError::from)?;
    let netns = clean(&std::path::absolute(&target.netns)?);
    warn_of_name(&target.netns, &netns);
    let container_id = container_id(&netns)?;
    Ok(RuntimeConf {
        args,
        capability_args,
        ..RuntimeConf::new(container_id, netns, ifname)
    })
}

/// A name where a path belongs leads to a file of the working directory, which is hardly ever meant.
fn warn_of_name(said: &Path, taken: &Path) {
    let is_name = said.components().count() == 1 && !said.is_absolute();
    if is_name && !taken.exists() {
        say(&format!(
            "{} is taken as a path, and there is nothing at {}; the namespace of that name is /run/netns/{}",
            said.display(),
            taken.display(),
            said.display()
        ));
    }
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
    const FORM: &str = "the form is KEY=value;KEY=value, nothing empty, no ; at the end";
    let args = cni_types::Args::parse(variable("CNI_ARGS").unwrap_or_default());
    let empty = args.pairs().iter().find(|(_, value)| value.is_empty());
    match (args.malformed().first(), empty) {
        (Some(part), _) => Err(format!("invalid CNI_ARGS pair {part:?}: {FORM}").into()),
        (None, Some((key, _))) => Err(format!("invalid CNI_ARGS pair \"{key}=\": {FORM}").into()),
        (None, None) => Ok(args.pairs().to_vec()),
    }
}

/// Takes over the arguments of the ADD unless others are given, and tells the list it used.
pub fn recall(
    cni: &Cni,
    network: &str,
    rt: &mut RuntimeConf,
) -> Result<Option<NetworkList>, Error> {
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
