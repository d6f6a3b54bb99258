//! How two moments differ, and whether that is what an attachment may leave.

use std::fmt;

use super::item::Item;

/// What came and what went between two snapshots.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Diff {
    /// Items only the later snapshot has.
    pub added: Vec<Item>,
    /// Items only the earlier snapshot has.
    pub removed: Vec<Item>,
}

/// What may stay on a host after the last container of a network is gone.
#[derive(Clone, Debug)]
pub struct Leavings<'a> {
    /// The network's bridge, which stays with its gateway address.
    pub bridge: &'a str,
    /// Texts that no remaining object may mention: container ids and addresses.
    pub owners: &'a [String],
}

impl Diff {
    pub(super) fn between(earlier: &[Item], later: &[Item]) -> Self {
        Self {
            added: without(later, earlier),
            removed: without(earlier, later),
        }
    }

    /// Nothing changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }

    /// The items that an attachment should not have left, or should not have taken away.
    #[must_use]
    pub fn beyond(&self, allowed: &Leavings<'_>) -> Vec<String> {
        let added = self.added.iter().filter(|item| !allowed.may_stay(item));
        let removed = self
            .removed
            .iter()
            .filter(|item| !self.is_changed_setting(item));
        added
            .map(|item| format!("+ {item}"))
            .chain(removed.map(|item| format!("- {item}")))
            .collect()
    }

    /// A setting with a new value shows as one item gone and one come.
    fn is_changed_setting(&self, gone: &Item) -> bool {
        let Item::Sysctl { key, .. } = gone else {
            return false;
        };
        self.added
            .iter()
            .any(|item| matches!(item, Item::Sysctl { key: one, .. } if one == key))
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for item in &self.removed {
            writeln!(f, "- {item}")?;
        }
        for item in &self.added {
            writeln!(f, "+ {item}")?;
        }
        Ok(())
    }
}

impl Leavings<'_> {
    fn may_stay(&self, item: &Item) -> bool {
        let text = item.to_string();
        if self.owners.iter().any(|owner| text.contains(owner)) {
            return false;
        }
        match item {
            Item::Link { name, .. } => name == self.bridge,
            Item::Address { link, .. } | Item::Route { link, .. } => link == self.bridge,
            Item::Sysctl { key, .. } => self.is_switch(key),
            Item::Table(_) | Item::Set { .. } | Item::Rule { .. } | Item::Object { .. } => true,
            Item::Xtables { .. } => true,
            Item::Chain { name, .. } => !is_container_chain(name),
            Item::File { path, content } => is_store(path, content),
            Item::Element { text, .. } => self.is_guard(text),
            Item::PolicyRule(_) => false,
        }
    }

    /// Forwarding, what the kernel changes together with it, and the bridge's own settings.
    fn is_switch(&self, key: &str) -> bool {
        key.ends_with("/ip_forward")
            || key.ends_with("/forwarding")
            || key.ends_with("conf/all/accept_redirects")
            || key.contains(&format!("/{}/", self.bridge))
    }
}

impl Leavings<'_> {
    /// An element that is the bridge's name and nothing else guards the bridge's own settings.
    fn is_guard(&self, element: &str) -> bool {
        let name: String = self
            .bridge
            .bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let key = element.strip_prefix("key ").unwrap_or(element);
        key.trim_end_matches('0') == name.trim_end_matches('0')
    }
}

/// A chain named after a hash belongs to one container.
fn is_container_chain(name: &str) -> bool {
    name.rsplit('-')
        .next()
        .is_some_and(|last| last.len() >= 16 && last.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Directories, locks, counters and caches stay for the next container.
fn is_store(path: &str, content: &str) -> bool {
    let kind = content.split_once(' ').map_or("", |(_, kind)| kind);
    path.ends_with("lock") || matches!(kind, "directory" | "counter" | "cache")
}

/// The items of `all` that are not in `taken`, each counted as often as it occurs. Both sorted.
fn without(all: &[Item], taken: &[Item]) -> Vec<Item> {
    let mut taken = taken.iter().peekable();
    let mut left = Vec::new();
    for item in all {
        while taken.next_if(|one| *one < item).is_some() {}
        if taken.next_if(|one| *one == item).is_none() {
            left.push(item.clone());
        }
    }
    left
}
