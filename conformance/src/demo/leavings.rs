//! What stays for the next container, in a few lines.

use crate::snapshot::{Diff, Item};

/// Describes what was added, a line for each kind of thing.
pub fn describe(diff: &Diff) -> String {
    let mut lines = Vec::new();
    for (title, pick) in KINDS {
        let found: Vec<String> = diff.added.iter().filter_map(pick).collect();
        if !found.is_empty() {
            lines.push(format!("{title}: {}", found.join(", ")));
        }
    }
    for (title, counts) in COUNTED {
        let number = diff.added.iter().filter(|item| counts(item)).count();
        if number > 0 {
            lines.push(format!("{title}: {number}"));
        }
    }
    lines.join("\n")
}

type Pick = fn(&Item) -> Option<String>;

const KINDS: [(&str, Pick); 6] = [
    ("bridge", |item| match item {
        Item::Link { name, .. } => Some(name.clone()),
        _ => None,
    }),
    ("addresses", |item| match item {
        Item::Address { address, .. } => address.split(' ').next().map(str::to_owned),
        _ => None,
    }),
    ("settings", |item| match item {
        Item::Sysctl { key, value } => Some(format!("{key} = {value}")),
        _ => None,
    }),
    ("tables", |item| match item {
        Item::Table(name) => Some(name.clone()),
        _ => None,
    }),
    ("top chains", |item| match item {
        Item::Chain { table, name, .. } => Some(format!("{table} {name}")),
        _ => None,
    }),
    ("files", |item| match item {
        Item::File { path, .. } => Some(path.clone()),
        _ => None,
    }),
];

type Counts = fn(&Item) -> bool;

const COUNTED: [(&str, Counts); 3] = [
    ("routes of the bridge", |item| {
        matches!(item, Item::Route { .. })
    }),
    ("rules of the top chains", |item| {
        matches!(item, Item::Rule { .. } | Item::Xtables { .. })
    }),
    ("empty sets", |item| matches!(item, Item::Set { .. })),
];
