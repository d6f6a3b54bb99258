//! Files below the directories in which plugins and runtimes keep state.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::item::Item;
use crate::error::{Context, Result};

/// Our own furniture, and namespaces that the caller made.
const OURS: [&str; 3] = ["/run/sandbox", "/run/netns", "/run/resolvconf"];

pub(super) fn read(directory: &Path) -> Result<Vec<Item>> {
    let mut items = Vec::new();
    walk(directory, &mut items)?;
    Ok(items)
}

fn walk(directory: &Path, items: &mut Vec<Item>) -> Result<()> {
    let listing = || format!("list {}", directory.display());
    for entry in fs::read_dir(directory).doing(listing)? {
        let path = entry.doing(listing)?.path();
        if OURS.iter().any(|ours| path.starts_with(ours)) {
            continue;
        }
        let meta = fs::symlink_metadata(&path).doing(|| format!("look at {}", path.display()))?;
        let mode = meta.permissions().mode() & 0o7777;
        let kind = if meta.is_dir() {
            "directory".to_owned()
        } else if meta.is_file() {
            content(&path)?
        } else {
            format!("special file {:o}", meta.mode() >> 12)
        };
        let content = format!("{mode:04o} {kind}");
        items.push(Item::File {
            path: path.display().to_string(),
            content,
        });
        if meta.is_dir() {
            walk(&path, items)?;
        }
    }
    Ok(())
}

fn content(path: &Path) -> Result<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // host-local's round-robin counter moves with every ADD; that is its purpose. An index beside
    // the leases is a cache of them.
    if name.starts_with("last_reserved_ip.") {
        return Ok("counter".into());
    }
    if name.starts_with('.') || name.contains("index") {
        return Ok("cache".into());
    }
    let bytes = match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return Ok("unreadable".into());
        }
        other => other.doing(|| format!("read {}", path.display()))?,
    };
    Ok(match std::str::from_utf8(&bytes) {
        Ok(text) if text.len() <= 200 => format!("{text:?}"),
        _ => {
            let digest = Sha256::digest(&bytes);
            let short: String = digest
                .iter()
                .take(8)
                .map(|byte| format!("{byte:02x}"))
                .collect();
            format!("{} bytes, sha256 {short}", bytes.len())
        }
    })
}
