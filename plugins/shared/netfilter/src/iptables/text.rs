//! The words of a rule, and the text of `iptables-save`.

use std::collections::BTreeMap;

use super::parse;
use super::rule::Stored;

/// The chains of one table with their rules.
pub(crate) type Chains = BTreeMap<String, Vec<Stored>>;

/// Splits a line of `iptables-save` or `iptables -S` into words, undoing its quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(&c) = chars.peek() {
        if c.is_ascii_whitespace() {
            chars.next();
            continue;
        }
        out.push(word(&mut chars));
    }
    out
}

fn word(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut out = String::new();
    let mut quoted = false;
    while let Some(&c) = chars.peek() {
        if !quoted && c.is_ascii_whitespace() {
            break;
        }
        chars.next();
        match c {
            '"' => quoted = !quoted,
            '\\' if quoted => out.extend(chars.next()),
            c => out.push(c),
        }
    }
    out
}

/// One word as `iptables-save` writes it: in double quotes where anything needs them.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.,:/+![]".contains(&b);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    let mut out = String::from("\"");
    for c in word.chars() {
        if matches!(c, '"' | '\\' | '\'') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// The chains of one table in the output of `iptables-save`.
pub(crate) fn parse_save(output: &str, table: &str) -> Chains {
    let mut chains = Chains::new();
    let mut inside = false;
    for line in output.lines() {
        if let Some(name) = line.strip_prefix('*') {
            inside = name.trim() == table;
        } else if inside {
            parse_line(line, &mut chains);
        }
    }
    chains
}

fn parse_line(line: &str, chains: &mut Chains) {
    if let Some(declared) = line.strip_prefix(':') {
        let name = declared.split(' ').next().unwrap_or_default();
        chains.entry(name.to_owned()).or_default();
        return;
    }
    let Some((chain, text)) = line
        .strip_prefix("-A ")
        .map(|l| l.split_once(' ').unwrap_or((l, "")))
    else {
        return;
    };
    let stored = Stored {
        tag: None,
        rule: parse::rule(&words(text)),
        handle: None,
        text: Some(text.to_owned()),
    };
    chains.entry(chain.to_owned()).or_default().push(stored);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn quotes_are_undone() {
        let line = r#"-s 10.1.2.2/32 -m comment --comment "name: \"net1\" id: \"c1\"" -j CNI-x"#;
        assert_eq!(
            words(line),
            [
                "-s",
                "10.1.2.2/32",
                "-m",
                "comment",
                "--comment",
                "name: \"net1\" id: \"c1\"",
                "-j",
                "CNI-x"
            ]
        );
        assert_eq!(words("  a   \"\" b"), ["a", "", "b"]);
        assert_eq!(words("\"open"), ["open"]);
    }

    #[test]
    fn only_the_asked_table_is_read() {
        let save = "# x\n*nat\n:PREROUTING ACCEPT [0:0]\n:A - [0:0]\n-A A -j RETURN\nCOMMIT\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
        let nat = parse_save(save, "nat");
        assert_eq!(
            nat.keys().map(String::as_str).collect::<Vec<_>>(),
            ["A", "PREROUTING"]
        );
        assert_eq!(nat["A"].len(), 1);
        assert_eq!(nat["A"][0].text.as_deref(), Some("-j RETURN"));
        assert!(parse_save(save, "raw").is_empty());
    }

    proptest! {
        #[test]
        fn quoting_round_trips(list in proptest::collection::vec("[ -~]{0,20}", 0..5)) {
            let line = list.iter().map(|w| quoted(w)).collect::<Vec<_>>().join(" ");
            prop_assert_eq!(words(&line), list);
        }

        #[test]
        fn any_text_is_survived(text in "\\PC{0,200}") {
            parse_save(&format!("*nat\n{text}\n-A {text}\n:{text}"), "nat");
        }
    }
}
