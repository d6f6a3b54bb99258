//! A page of the documentation, taken apart.

use std::path::{Path, PathBuf};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// A page.
pub struct Page {
    pub path: PathBuf,
    pub headings: Vec<String>,
    pub tables: Vec<Table>,
    pub blocks: Vec<Block>,
    pub links: Vec<String>,
    /// Everything in it as text.
    pub text: String,
}

/// A table: which heading it stands under, and its cells.
pub struct Table {
    pub under: String,
    pub head: Vec<Cell>,
    pub rows: Vec<Vec<Cell>>,
}

/// A cell: its text, the code in it, where its first link leads.
#[derive(Clone, Default)]
pub struct Cell {
    pub text: String,
    pub code: Vec<String>,
    pub link: Option<String>,
}

/// A block of code: what the fence says about it, and the code.
pub struct Block {
    pub info: String,
    pub code: String,
}

impl Page {
    pub fn read(path: &Path) -> Self {
        let text = std::fs::read_to_string(path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut page = Self {
            path: path.to_owned(),
            headings: Vec::new(),
            tables: Vec::new(),
            blocks: Vec::new(),
            links: Vec::new(),
            text: text.clone(),
        };
        let mut reader = Reader::default();
        for event in Parser::new_ext(&text, Options::ENABLE_TABLES) {
            reader.take(event, &mut page);
        }
        page
    }

    /// The file's name without its ending.
    pub fn name(&self) -> String {
        self.path
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }

    /// The tables of keys.
    pub fn key_tables(&self) -> impl Iterator<Item = &Table> {
        self.tables
            .iter()
            .filter(|table| table.head.first().is_some_and(|cell| cell.text == "key"))
    }

    /// What a link to a heading is called.
    pub fn anchors(&self) -> Vec<String> {
        self.headings
            .iter()
            .map(|heading| anchor(heading))
            .collect()
    }
}

/// The anchor of a heading, as mdBook and GitHub make it.
pub fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter_map(|c| match c {
            ' ' => Some('-'),
            c if c.is_alphanumeric() || c == '-' || c == '_' => Some(c),
            _ => None,
        })
        .collect()
}

/// Every page below `docs`, but for the table of contents, and the README.
pub fn all() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = directory()
        .read_dir()
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .filter(|path| !path.ends_with("SUMMARY.md"))
        .collect();
    paths.sort();
    paths.push(root().join("README.md"));
    paths.iter().map(|path| Page::read(path)).collect()
}

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

pub fn directory() -> PathBuf {
    root().join("docs")
}

/// The plugins of the workspace.
pub fn plugins() -> Vec<String> {
    let names = conformance::workspace::plugins().unwrap();
    assert!(names.len() >= 15, "only {names:?}");
    names
}

/// What is being read.
#[derive(Default)]
struct Reader {
    heading: Option<String>,
    block: Option<Block>,
    cell: Option<Cell>,
    row: Vec<Cell>,
    under: String,
}

impl Reader {
    fn take(&mut self, event: Event<'_>, page: &mut Page) {
        match event {
            Event::Start(Tag::Heading { .. }) => self.heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                self.under = self.heading.take().unwrap();
                page.headings.push(self.under.clone());
            }
            Event::Start(Tag::CodeBlock(kind)) => {
                let info = match kind {
                    CodeBlockKind::Fenced(info) => info.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.block = Some(Block {
                    info,
                    code: String::new(),
                });
            }
            Event::End(TagEnd::CodeBlock) => page.blocks.push(self.block.take().unwrap()),
            Event::Start(Tag::Table(_)) => page.tables.push(Table {
                under: self.under.clone(),
                head: Vec::new(),
                rows: Vec::new(),
            }),
            Event::Start(Tag::TableCell) => self.cell = Some(Cell::default()),
            Event::End(TagEnd::TableCell) => self.row.push(self.cell.take().unwrap()),
            Event::End(TagEnd::TableHead) => {
                page.tables.last_mut().unwrap().head = std::mem::take(&mut self.row);
            }
            Event::End(TagEnd::TableRow) => {
                page.tables
                    .last_mut()
                    .unwrap()
                    .rows
                    .push(std::mem::take(&mut self.row));
            }
            Event::Start(Tag::Link { dest_url, .. }) => {
                page.links.push(dest_url.to_string());
                if let Some(cell) = &mut self.cell {
                    cell.link.get_or_insert(dest_url.into_string());
                }
            }
            Event::Text(text) => self.text(&text),
            Event::Code(code) => {
                if let Some(cell) = &mut self.cell {
                    cell.code.push(code.to_string());
                }
                self.text(&code);
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        let places = [
            self.heading.as_mut(),
            self.block.as_mut().map(|block| &mut block.code),
            self.cell.as_mut().map(|cell| &mut cell.text),
        ];
        for place in places.into_iter().flatten() {
            place.push_str(text);
        }
    }
}
