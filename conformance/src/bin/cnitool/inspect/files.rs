//! Leases of host-local and backups of tuning.

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use cni_types::{PluginConf, Value, json};
use conformance::facts::addresses;
use conformance::libcni::Cached;

use super::Resource;

/// Where host-local keeps the leases of a network, unless the configuration says otherwise.
const LEASES: &str = "/var/lib/cni/networks";
/// Where tuning keeps what interfaces were like, unless the configuration says otherwise.
const BACKUPS: &str = "/run/cni/tuning";
/// The keys by which tuning changes the interface itself.
const CHANGES: [&str; 5] = ["mac", "promisc", "mtu", "allmulti", "txQLen"];

/// The directory of a network's leases, for each plugin with host-local.
pub fn lease_dirs(network: &str, plugins: &[PluginConf]) -> Vec<PathBuf> {
    let mut dirs: Vec<PathBuf> = plugins
        .iter()
        .filter_map(|plugin| {
            let raw = Value::Object(plugin.raw().clone());
            let ipam = json::get(&raw, "ipam")?;
            let text = |key| json::get(ipam, key).and_then(Value::as_str);
            (text("type") == Some("host-local")).then(|| {
                let base = text("dataDir").filter(|dir| !dir.is_empty());
                Path::new(base.unwrap_or(LEASES)).join(network)
            })
        })
        .collect();
    dirs.dedup();
    dirs
}

/// Leases there: address, container, interface. A file of the first generation has no interface.
pub fn read_leases(dir: &Path) -> std::io::Result<Vec<(IpAddr, String, String)>> {
    let mut leases = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(address) = name.and_then(|name| name.parse().ok()) else {
            continue;
        };
        let content = fs::read(&path)?;
        let text = String::from_utf8_lossy(&content);
        let mut lines = text.lines().map(|line| line.trim().to_owned());
        let owner = lines.next().unwrap_or_default();
        leases.push((address, owner, lines.next().unwrap_or_default()));
    }
    leases.sort();
    Ok(leases)
}

/// The attachment's leases: those of its result, and any others that it holds.
pub fn leases(cached: &Cached) -> Vec<Resource> {
    let Some(list) = cached.list() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for dir in lease_dirs(&cached.network, &list.plugins) {
        let wanted: Vec<IpAddr> = addresses(&cached.result)
            .iter()
            .map(|one| one.address.ip())
            .collect();
        let there = match read_leases(&dir) {
            Ok(there) => there,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let what = dir.display().to_string();
                all.push(Resource::unknown("lease", what, error.to_string()));
                continue;
            }
        };
        let own = |lease: &&(IpAddr, String, String)| {
            lease.1 == cached.container_id && (lease.2.is_empty() || lease.2 == cached.ifname)
        };
        let file = |address: &IpAddr| dir.join(address.to_string()).display().to_string();
        for address in &wanted {
            let lease = there.iter().find(|lease| lease.0 == *address);
            let resource = Resource::new("lease", file(address), lease.filter(own).is_some());
            all.push(match lease {
                Some(lease) if !own(&lease) => resource.note(format!("it is {}'s now", lease.1)),
                _ => resource,
            });
        }
        let others = there.iter().filter(own);
        all.extend(
            others
                .filter(|lease| !wanted.contains(&lease.0))
                .map(|lease| {
                    Resource::new("lease", file(&lease.0), true).note("not in the result")
                }),
        );
    }
    all
}

/// What tuning remembers of the interface.
pub fn backups(cached: &Cached) -> Vec<Resource> {
    let Some(list) = cached.list() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for plugin in list
        .plugins
        .iter()
        .filter(|one| one.plugin_type == "tuning")
    {
        let raw = Value::Object(plugin.raw().clone());
        let dir = json::get(&raw, "dataDir").and_then(Value::as_str);
        let dir = Path::new(dir.filter(|dir| !dir.is_empty()).unwrap_or(BACKUPS));
        let name = format!("{}_{}.json", cached.container_id, cached.ifname);
        let file = dir.join(name);
        let given = cached.capability_args.contains_key("mac")
            && plugin.capabilities().any(|name| name == "mac");
        let wanted = given || CHANGES.iter().any(|key| json::get(&raw, key).is_some());
        if wanted || file.exists() {
            let what = file.display().to_string();
            all.push(Resource::new("backup", what, file.exists()));
        }
    }
    all
}
