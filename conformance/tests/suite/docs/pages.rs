//! Whether each plugin has its page and its place.

use super::page::{Page, directory, plugins, root};

/// What a page on a plugin tells, whatever the plugin.
const SUBJECTS: [&str; 5] = ["ADD", "DEL", "CHECK", "GC", "STATUS"];

#[test]
fn each_plugin_has_a_page_that_tells_everything() {
    for plugin in plugins() {
        let page = Page::read(&directory().join(format!("{plugin}.md")));
        assert_eq!(page.headings.first(), Some(&plugin), "docs/{plugin}.md");
        for subject in SUBJECTS {
            assert!(
                page.text.contains(subject),
                "docs/{plugin}.md says nothing of {subject}"
            );
        }
        let named = format!("\"type\": \"{plugin}\"");
        assert!(
            page.blocks
                .iter()
                .any(|block| block.info.starts_with("json") && block.code.contains(&named)),
            "docs/{plugin}.md has no example with {named}"
        );
    }
}

#[test]
fn each_plugin_is_in_the_readme() {
    let readme = Page::read(&root().join("README.md"));
    let install = readme
        .blocks
        .iter()
        .find_map(|block| block.code.split_once("release/{").map(|(_, rest)| rest))
        .and_then(|rest| rest.split_once('}'))
        .expect("the README tells how to install the plugins")
        .0;
    let mut installed: Vec<&str> = install.split(',').collect();
    installed.sort_unstable();
    assert_eq!(installed, plugins());
    for plugin in plugins() {
        let link = format!("docs/{plugin}.md");
        assert!(
            readme.links.contains(&link),
            "the README has no link to {link}"
        );
    }
}
