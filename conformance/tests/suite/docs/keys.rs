//! Whether the pages tell every key of every plugin, and no other.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::super::support;
use super::page::{Cell, Page, Table, directory, plugins};
use conformance::plugin::{Call, find};

/// The page of what is the same everywhere.
const COMMON: &str = "configuration.md";

/// What a plugin's decoder takes: by key, what the value is.
fn taken(plugin: &str) -> Map<String, Value> {
    let program = find(plugin, &[support::plugins()]).unwrap();
    let output = std::process::Command::new(&program)
        .arg("--keys")
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", program.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Keys as a page has them: by key, what its type is.
type Documented = BTreeMap<String, String>;

fn rows(table: &Table) -> impl Iterator<Item = (&String, &Vec<Cell>)> {
    table
        .rows
        .iter()
        .flat_map(|row| row[0].code.iter().map(move |key| (key, row)))
}

/// The keys of a table; where the type is a link to a table of the common page, those below it as well.
fn documented(table: &Table, common: &Page, place: &str, into: &mut Documented) {
    let head: Vec<&str> = table.head.iter().map(|cell| cell.text.as_str()).collect();
    assert_eq!(head, ["key", "type", "default", "meaning"], "{place}");
    for (key, row) in rows(table) {
        for cell in row {
            assert!(!cell.text.is_empty(), "{place}: a cell of {key} is empty");
        }
        let kind = row[1].text.clone();
        assert!(
            into.insert(key.clone(), kind).is_none(),
            "{place}: {key} twice"
        );
        let Some(section) = row[1]
            .link
            .as_ref()
            .and_then(|link| link.strip_prefix("configuration.md#"))
        else {
            continue;
        };
        let below = section_of(common, section);
        for (inner, row) in rows(below) {
            into.insert(format!("{key}.{inner}"), row[1].text.clone());
        }
    }
}

fn section_of<'p>(common: &'p Page, anchor: &str) -> &'p Table {
    common
        .key_tables()
        .find(|table| super::page::anchor(&table.under) == anchor)
        .unwrap_or_else(|| panic!("{COMMON} has no table under #{anchor}"))
}

/// Whether the page has the key itself, or says what any key of the object is.
fn is_told(key: &str, documented: &Documented) -> bool {
    documented.contains_key(key)
        || key.rsplit_once('.').is_some_and(|(object, _)| {
            documented
                .get(object)
                .is_some_and(|kind| kind.starts_with("object of"))
        })
}

/// Whether the plugin takes the key, or keys below it.
fn is_taken(key: &str, taken: &Map<String, Value>) -> bool {
    let inside = |one: &String| {
        one.strip_prefix(key)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    };
    taken.keys().any(inside)
}

#[test]
fn every_key_is_told_and_no_other() {
    let common = Page::read(&directory().join(COMMON));
    let mut faults = Vec::new();
    for plugin in plugins() {
        let place = format!("docs/{plugin}.md");
        let page = Page::read(&directory().join(format!("{plugin}.md")));
        let mut told = Documented::new();
        documented(
            section_of(&common, "every-plugin"),
            &common,
            COMMON,
            &mut told,
        );
        for table in page.key_tables() {
            documented(table, &common, &place, &mut told);
        }
        let taken = taken(&plugin);
        for (key, kind) in &taken {
            let kind = kind.as_str().unwrap();
            if !is_told(key, &told) {
                faults.push(format!("{place}: {key} ({kind}) is missing"));
            }
            let wrong = told
                .get(key)
                .filter(|told| kind != "any" && !told.starts_with(kind));
            if let Some(wrong) = wrong {
                faults.push(format!("{place}: {key} is {kind}, not {wrong}"));
            }
        }
        for key in told.keys().filter(|key| !is_taken(key, &taken)) {
            faults.push(format!("{place}: the plugin does not read {key}"));
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Keys of `runtimeConfig` come by a capability of that name, which a page must tell.
#[test]
fn every_capability_is_told() {
    for plugin in plugins() {
        let page = Page::read(&directory().join(format!("{plugin}.md")));
        for key in taken(&plugin).keys() {
            let Some(rest) = key.strip_prefix("runtimeConfig.") else {
                continue;
            };
            let capability = rest.split(['.', '[']).next().unwrap();
            let words = format!("apability `{capability}`");
            assert!(page.text.contains(&words), "docs/{plugin}.md: no c{words}");
        }
    }
}

/// `--keys` is for people and tools; it must not come between a runtime and the plugin.
#[test]
fn other_arguments_change_nothing() {
    let program = find("bridge", &[support::plugins()]).unwrap();
    let version = Call::new(&program)
        .env("CNI_COMMAND", "VERSION")
        .run()
        .unwrap();
    let output = std::process::Command::new(&program)
        .arg("keys")
        .env_clear()
        .env("CNI_COMMAND", "VERSION")
        .output()
        .unwrap();
    assert_eq!(output.stdout, version.stdout);
}
