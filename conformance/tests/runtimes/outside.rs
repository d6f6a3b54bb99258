//! The real machine around a sandbox: nothing of a run may stay on it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const CGROUPS: &str = "/sys/fs/cgroup";

/// What could stay on the machine although namespaces are gone.
#[derive(Debug, Eq, PartialEq)]
pub struct Outside {
    things: BTreeSet<String>,
}

impl Outside {
    pub fn look() -> Self {
        let mut things = BTreeSet::new();
        // Those right below a hierarchy: deeper ones of the system come and go.
        for hierarchy in hierarchies() {
            let groups = directories(&hierarchy);
            things.extend(groups.map(|group| group.display().to_string()));
        }
        for directory in [
            "/dev/shm",
            "/run/netns",
            "/var/lib/cni",
            "/sys/class/net",
            "/run",
        ] {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                things.insert(entry.path().display().to_string());
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(4));
        things.extend(points.map(|point| format!("mount {point}")));
        Self { things }
    }

    /// What is there now and was not.
    pub fn since(&self, earlier: &Self) -> Vec<String> {
        self.things.difference(&earlier.things).cloned().collect()
    }
}

/// The roots of the control groups: one of the second version, or several of the first.
fn hierarchies() -> Vec<PathBuf> {
    let root = PathBuf::from(CGROUPS);
    if root.join("cgroup.controllers").exists() {
        vec![root]
    } else {
        directories(&root).collect()
    }
}

fn directories(of: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    directories.map(|entry| entry.path())
}

/// Removes the control groups of this name in every hierarchy: they belong to no namespace. Their
/// processes are gone with the sandbox.
pub fn remove_cgroups(name: &str) {
    for hierarchy in hierarchies() {
        remove(&hierarchy.join(name));
    }
}

fn remove(group: &Path) {
    for below in directories(group) {
        remove(&below);
    }
    // What cannot be removed is found by the comparison that follows.
    let _ = fs::remove_dir(group);
}
