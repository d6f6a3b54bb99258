//! Legacy xtables rules: the kernel tells only which tables exist.

use std::fs;
use std::io;
use std::process::Command;

use super::item::Item;
use crate::error::{Context, Result};

pub(super) fn read() -> Result<Vec<Item>> {
    let mut items = Vec::new();
    for (family, tool) in [
        ("ip", "iptables-legacy-save"),
        ("ip6", "ip6tables-legacy-save"),
    ] {
        let file = format!("/proc/thread-self/net/{family}_tables_names");
        let tables = match fs::read_to_string(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            other => other.doing(|| format!("read {file}"))?,
        };
        for table in tables.split_whitespace() {
            items.extend(lines(family, tool, table)?);
        }
    }
    Ok(items)
}

fn lines(family: &str, tool: &str, table: &str) -> Result<Vec<Item>> {
    let output = Command::new(tool)
        .args(["-t", table])
        .output()
        .doing(|| format!("table {family} {table} is of legacy xtables; run {tool} to read it"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lasting = |line: &&str| !line.starts_with('#') && !line.is_empty();
    let item = |line: &str| Item::Xtables {
        table: format!("{family} {table}"),
        // Chain declarations carry their counters in brackets.
        line: line.split(" [").next().unwrap_or_default().to_owned(),
    };
    Ok(text.lines().filter(lasting).map(item).collect())
}
