//! Whether the book is whole.

use std::path::Path;

use super::page::{Page, all, directory};

fn contents() -> Page {
    Page::read(&directory().join("SUMMARY.md"))
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let listed = contents().links;
    for page in all() {
        let Ok(name) = page.path.strip_prefix(directory()) else {
            continue;
        };
        let name = name.to_str().unwrap();
        let times = listed.iter().filter(|link| *link == name).count();
        assert_eq!(times, 1, "SUMMARY.md lists {name} {times} times");
    }
}

#[test]
fn links_lead_somewhere() {
    let mut faults = Vec::new();
    for page in all().into_iter().chain([contents()]) {
        for link in &page.links {
            if link.contains("://") {
                continue;
            }
            if let Some(fault) = fault(&page, link) {
                faults.push(format!("{}: {link}: {fault}", page.path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

fn fault(page: &Page, link: &str) -> Option<String> {
    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (link, None),
    };
    let path = if file.is_empty() {
        page.path.clone()
    } else {
        page.path.parent().unwrap_or(Path::new("/")).join(file)
    };
    if !path.exists() {
        return Some("there is no such file".to_owned());
    }
    // The book has nothing but its pages.
    if page.path.starts_with(directory()) && !path.canonicalize().unwrap().starts_with(directory())
    {
        return Some("leads out of the book".to_owned());
    }
    let anchor = anchor?;
    let known = Page::read(&path).anchors();
    (!known.iter().any(|one| one == anchor)).then(|| format!("the page has only {known:?}"))
}
