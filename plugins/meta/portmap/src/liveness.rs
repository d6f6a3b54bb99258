//! Whether the attachment that holds a port still lives.

use std::path::Path;

use cni_types::json;
use netfilter::Holder;
use netlink::{Handle, Netns};
use serde_json::Value;
use skel::log;

/// Where runtimes that use libcni keep what they attached.
const RESULT_CACHE: &str = "/var/lib/cni/results";

/// Whether the holder's container provably lives: its host interface is there, or the namespace that its
/// runtime remembers is. A holder of whom there is no trace is dead; a published port is no proof of life,
/// since it stays when the host loses its containers without a DEL.
pub fn lives(holder: &Holder) -> bool {
    match has_interface(holder) {
        Ok(true) => return true,
        Ok(false) => {}
        Err(error) => {
            // Better to refuse a port than to take it from somebody who uses it.
            log::warn(format_args!("portmap: {error}"));
            return true;
        }
    }
    has_namespace(holder, Path::new(RESULT_CACHE))
}

/// Whether an interface of the host carries the holder's name, as the `bridge` plugin gives it.
fn has_interface(holder: &Holder) -> netlink::Result<bool> {
    // The reference set's rules name no interface, so they have no whole hash either.
    if holder.instance_hash.is_empty() {
        return Ok(false);
    }
    let links = Handle::host()?.links()?;
    Ok(links.iter().any(|link| {
        link.alias
            .as_deref()
            .is_some_and(|alias| alias.starts_with(&holder.instance_hash))
    }))
}

/// Whether a runtime remembers the attachment, with a namespace that exists.
fn has_namespace(holder: &Holder, cache: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(cache) else {
        return false;
    };
    // The container id in a rule's comment may be cut, so the name can only be compared as a beginning.
    let beginning = format!("{}-{}", holder.network, holder.container_id);
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(&beginning))
        .map(|entry| entry.path())
        .filter(|path| path.is_file())
        .filter_map(|path| std::fs::read(path).ok())
        .filter_map(|bytes| json::parse(&bytes).ok())
        .any(|cached| is_of(holder, &cached) && netns_exists(&cached))
}

fn is_of(holder: &Holder, cached: &Value) -> bool {
    let text = |key: &str| {
        json::get(cached, key)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let same_container = if holder.cut {
        text("containerId").starts_with(&holder.container_id)
    } else {
        text("containerId") == holder.container_id
    };
    let same_interface = holder.ifname.is_empty() || text("ifName") == holder.ifname;
    text("networkName") == holder.network && same_interface && same_container
}

fn netns_exists(cached: &Value) -> bool {
    json::get(cached, "netns")
        .and_then(Value::as_str)
        .is_some_and(|path| Netns::open(path).is_ok())
}
