//! Markdown as a manual page, in the macros of man(7). A table becomes a list: it would be too wide for a terminal.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The body of a page. The document's first paragraph is its summary.
pub fn body(name: &str, markdown: &str) -> String {
    let mut writer = Writer {
        name: name.to_owned(),
        ..Writer::default()
    };
    for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
        writer.event(event);
    }
    writer.out
}

#[derive(Default)]
struct Writer {
    name: String,
    out: String,
    /// Text that is gathered: of a paragraph, a heading, a cell.
    text: String,
    head: Vec<String>,
    row: Vec<String>,
    in_code: bool,
    in_list: bool,
    in_table: bool,
    has_title: bool,
}

impl Writer {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text.push_str(&escaped(&text)),
            Event::Code(code) => {
                self.text.push_str("\\fB");
                self.text.push_str(&escaped(&code));
                self.text.push_str("\\fR");
            }
            Event::SoftBreak | Event::HardBreak => {
                self.text.push(if self.in_code { '\n' } else { ' ' });
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::CodeBlock(_) => self.in_code = true,
            Tag::Item => {
                self.flush_paragraph();
                self.in_list = true;
                self.line(".IP \\(bu 2");
            }
            Tag::Table(_) => self.in_table = true,
            Tag::Strong | Tag::Emphasis => self.text.push_str("\\fI"),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => self.heading(level),
            TagEnd::Paragraph if !self.in_table => self.flush_paragraph(),
            TagEnd::Item => {
                self.flush_paragraph();
                self.in_list = false;
            }
            TagEnd::CodeBlock => {
                self.in_code = false;
                let code = std::mem::take(&mut self.text);
                self.line(".PP");
                self.line(".nf");
                for line in code.lines() {
                    self.guarded(line);
                }
                self.line(".fi");
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.text);
                self.row.push(cell.trim().to_owned());
            }
            TagEnd::TableHead => self.head = std::mem::take(&mut self.row),
            TagEnd::TableRow => self.row(),
            TagEnd::Table => {
                self.in_table = false;
                self.line(".PP");
            }
            TagEnd::Strong | TagEnd::Emphasis => self.text.push_str("\\fR"),
            _ => {}
        }
    }

    /// A row: its first cell, and behind it the others. Of a table with several columns each is named, but for the last, which is
    /// the longest and tells itself.
    fn row(&mut self) {
        let row = std::mem::take(&mut self.row);
        let Some((first, rest)) = row.split_first() else {
            return;
        };
        self.line(".TP");
        self.guarded(first);
        let last = rest.len().saturating_sub(1);
        let named = |(index, cell): (usize, &String)| match self.head.get(index + 1) {
            Some(head) if index < last => format!("{head}: {cell}"),
            _ => cell.clone(),
        };
        let cells: Vec<String> = rest.iter().enumerate().map(named).collect();
        self.guarded(&cells.join("; "));
    }

    fn heading(&mut self, level: HeadingLevel) {
        let title = std::mem::take(&mut self.text);
        if level == HeadingLevel::H1 {
            return;
        }
        let command = if level == HeadingLevel::H2 {
            ".SH"
        } else {
            ".SS"
        };
        self.line(&format!("{command} \"{}\"", title.trim().to_uppercase()));
    }

    /// The first paragraph says what the page is about; man -k wants a short form of it on one line.
    fn flush_paragraph(&mut self) {
        let text = std::mem::take(&mut self.text);
        let text = text.trim();
        if text.is_empty() {
            return;
        }
        if !self.has_title {
            self.has_title = true;
            let end = text.find(". ").or_else(|| text.find(": "));
            let summary = end.and_then(|end| text.get(..end)).unwrap_or(text);
            let summary = summary.trim_end_matches('.').to_owned();
            self.line(".SH NAME");
            self.line(&format!("{} \\- {summary}", escaped(&self.name.clone())));
            self.line(".SH DESCRIPTION");
        } else if !self.in_list {
            self.line(".PP");
        }
        self.guarded(text);
    }

    fn guarded(&mut self, text: &str) {
        self.line(&guard(text));
    }

    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }
}

/// A line that begins with a dot or an apostrophe would be a command.
fn guard(text: &str) -> String {
    if text.starts_with(['.', '\'']) {
        return format!("\\&{text}");
    }
    text.to_owned()
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page() {
        let page = body(
            "cni-x",
            "# x\n\nDoes it. Well.\n\n| key | type | meaning |\n|---|---|---|\n| `a-b` | bool | c |\n\n## More\n\n* one\n* .two\n\n```\n.x\n```\n",
        );
        for part in [
            "cni\\-x \\- Does it\n",
            ".TP\n\\fBa\\-b\\fR\ntype: bool; c\n.PP\n",
            ".SH \"MORE\"\n.IP \\(bu 2\none\n.IP \\(bu 2\n\\&.two\n",
            ".nf\n\\&.x\n.fi\n",
        ] {
            assert!(page.contains(part), "{part:?} is not in:\n{page}");
        }
    }
}
