//! Whether the page for trouble tells every error that the table of texts has, and no other.

use std::fs;

use super::page::directory;

/// Where anything may stand in a text of the page.
const ANYTHING: char = '…';

/// The errors of the page: first cells of those tables that are about errors.
fn told() -> Vec<String> {
    let page = fs::read_to_string(directory().join("troubleshooting.md")).unwrap();
    let mut about_errors = false;
    let mut told = Vec::new();
    for line in page.lines() {
        match line.strip_prefix("| ") {
            Some(row) if row.starts_with("error |") => about_errors = true,
            Some(row) if about_errors => {
                let cell = row.split(" | ").next().unwrap();
                let text = cell
                    .strip_prefix('`')
                    .and_then(|cell| cell.strip_suffix('`'));
                told.push(
                    text.unwrap_or_else(|| panic!("not in code: {cell}"))
                        .to_owned(),
                );
            }
            Some(_) => {}
            None if line.starts_with('|') => {}
            None => about_errors = false,
        }
    }
    told
}

/// Whether the text is of that form: the parts between dots stand in it, in order, the first and the last at its ends.
fn matches(form: &str, text: &str) -> bool {
    let mut parts = form.split(ANYTHING);
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap()) else {
        return false;
    };
    let Some(last) = form.contains(ANYTHING).then(|| parts.next_back()).flatten() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn every_error_is_told_and_no_other() {
    let told = told();
    let table = include_str!("../messages.txt");
    let texts: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("msg "))
        .collect();
    assert!(texts.len() > 60 && told.len() > 40);
    let untold: Vec<_> = texts
        .iter()
        .filter(|text| !told.iter().any(|form| matches(form, text)))
        .collect();
    let unheard: Vec<_> = told
        .iter()
        .filter(|form| !texts.iter().any(|text| matches(form, text)))
        .collect();
    assert!(
        untold.is_empty() && unheard.is_empty(),
        "not in troubleshooting.md: {untold:#?}; not in messages.txt: {unheard:#?}"
    );
}

#[test]
fn forms_match_what_they_should() {
    assert!(matches("a … c", "a b c"));
    assert!(matches("… b …: d", "x b c: d"));
    assert!(matches("whole", "whole"));
    assert!(!matches("whole", "whole and more"));
    assert!(!matches("a … c", "a b c d"));
    assert!(!matches("a … b … c", "a x c"));
}
