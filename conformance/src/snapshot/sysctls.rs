//! The network settings of the thread's namespace.
//!
//! A setting of one interface is listed only where it differs from `default`, so that an
//! interface alone does not bring hundreds of lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::item::Item;
use crate::error::{Context, Result};

const ROOT: &str = "/proc/sys";

/// Values that move by themselves or follow from the interface; neighbour timers have no default
/// to compare with outside the first namespace.
const PASSING: [&str; 3] = ["nf_conntrack_count", "/mtu", "/neigh/"];

pub(super) fn read() -> Result<Vec<Item>> {
    let mut values = BTreeMap::new();
    for area in ["net/ipv4", "net/ipv6", "net/netfilter", "net/bridge"] {
        let directory = Path::new(ROOT).join(area);
        if directory.is_dir() {
            walk(&directory, area, &mut values)?;
        }
    }
    let lasting = |(key, value): (&String, &String)| {
        let default = default_of(key).and_then(|key| values.get(&key));
        (default != Some(value)).then(|| Item::Sysctl {
            key: key.clone(),
            value: value.clone(),
        })
    };
    Ok(values.iter().filter_map(lasting).collect())
}

fn walk(directory: &Path, key: &str, values: &mut BTreeMap<String, String>) -> Result<()> {
    let listing = || format!("list {}", directory.display());
    for entry in fs::read_dir(directory).doing(listing)? {
        let entry = entry.doing(listing)?;
        let path = entry.path();
        let key = format!("{key}/{}", entry.file_name().to_string_lossy());
        if path.is_dir() {
            walk(&path, &key, values)?;
        } else if !PASSING.iter().any(|name| key.contains(name)) {
            // Some settings can only be written, some cannot be read before they were written.
            let value = fs::read_to_string(&path).unwrap_or_else(|_| "unreadable".into());
            values.insert(key, value.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
    Ok(())
}

/// The key of the default for an interface's setting; none for the defaults themselves.
fn default_of(key: &str) -> Option<String> {
    let mut parts: Vec<&str> = key.split('/').collect();
    let group = parts.iter().position(|part| *part == "conf")?;
    let interface = parts.get_mut(group + 1)?;
    if *interface == "all" || *interface == "default" {
        return None;
    }
    *interface = "default";
    Some(parts.join("/"))
}
