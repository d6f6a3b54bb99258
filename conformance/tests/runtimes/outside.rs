//! The real machine around a sandbox: nothing of a run may stay on it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

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
        for hierarchy in fs::read_dir(CGROUPS).into_iter().flatten().flatten() {
            let groups = fs::read_dir(hierarchy.path())
                .into_iter()
                .flatten()
                .flatten();
            let groups = groups.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            things.extend(groups.map(|entry| entry.path().display().to_string()));
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

fn cgroups(directory: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.insert(entry.path().display().to_string());
            cgroups(&entry.path(), found);
        }
    }
}

/// Removes the control groups of this name in every hierarchy: they belong to no namespace. Their
/// processes are gone with the sandbox.
pub fn remove_cgroups(name: &str) {
    let hierarchies = fs::read_dir(CGROUPS).into_iter().flatten().flatten();
    for hierarchy in hierarchies
        .map(|entry| entry.path())
        .chain([CGROUPS.into()])
    {
        let mut below = BTreeSet::new();
        cgroups(&hierarchy.join(name), &mut below);
        // Children sort behind their parents.
        for directory in below.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
        let _ = fs::remove_dir(hierarchy.join(name));
    }
}
