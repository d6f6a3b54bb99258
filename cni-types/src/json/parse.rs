//! Bytes to a lossless value.

use std::borrow::Cow;

use serde_json::Value;

/// The bytes are not one JSON document.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ParseError(#[from] serde_json::Error);

/// Parses one JSON document.
///
/// Invalid UTF-8 and lone surrogate escapes become U+FFFD. A byte order mark, trailing data,
/// comments and nesting deeper than 127 levels are errors. Of a repeated key the last value
/// stays.
///
/// # Errors
///
/// [`ParseError`] with line and column when the bytes are not exactly one document.
pub fn parse(bytes: &[u8]) -> Result<Value, ParseError> {
    Ok(serde_json::from_str(&text(bytes))?)
}

/// The document as text that a JSON library takes.
pub(super) fn text(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    match mend_surrogates(&text) {
        Some(mended) => Cow::Owned(mended),
        None => text,
    }
}

/// Replaces each `\uXXXX` escape that is half of no pair, or returns `None` if there is none.
fn mend_surrogates(text: &str) -> Option<String> {
    let mut mended = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let start = at + found;
        at = match escape(text, start) {
            // A high half followed by a low half is a proper pair.
            Some(0xd800..=0xdbff) if matches!(escape(text, start + 6), Some(0xdc00..=0xdfff)) => {
                start + 12
            }
            Some(0xd800..=0xdfff) => {
                mended.push_str(text.get(copied..start)?);
                mended.push_str("\\ufffd");
                copied = start + 6;
                copied
            }
            Some(_) => start + 6,
            // Any other escape is a backslash and one character, which may be long.
            None => {
                start
                    + 1
                    + text
                        .get(start + 1..)?
                        .chars()
                        .next()
                        .map_or(0, char::len_utf8)
            }
        };
    }
    (copied > 0).then(|| mended + text.get(copied..).unwrap_or_default())
}

/// The code unit of the `\uXXXX` escape that starts at byte `at`.
fn escape(text: &str, at: usize) -> Option<u32> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| !digits.starts_with('+'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(json: &[u8]) -> String {
        parse(json).unwrap().as_str().unwrap().to_owned()
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        assert_eq!(string(br#""\ud800""#), "\u{fffd}");
        assert_eq!(string(br#""a\udc00b""#), "a\u{fffd}b");
        assert_eq!(string(br#""\ud83d\ude00""#), "\u{1f600}");
        assert_eq!(string(br#""\ud800\ud83d\ude00""#), "\u{fffd}\u{1f600}");
        assert_eq!(string(br#""\\ud800""#), "\\ud800");
        assert_eq!(string(br#""\ud800\n\ud800A""#), "\u{fffd}\n\u{fffd}A");
    }

    #[test]
    fn invalid_utf8_becomes_replacement_characters() {
        assert_eq!(string(b"\"a\xffb\""), "a\u{fffd}b");
    }

    #[test]
    fn only_one_plain_document_is_accepted() {
        for bad in [
            &b""[..],
            b"  ",
            b"{}x",
            b"{} {}",
            b"\xef\xbb\xbf{}",
            b"{\"a\":1,}",
            b"//\n{}",
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
        assert!(parse(b" \n{}\t ").is_ok());
    }

    #[test]
    fn nesting_is_bounded() {
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse(("[".repeat(100) + &"]".repeat(100)).as_bytes()).is_ok());
    }

    #[test]
    fn numbers_and_order_are_kept() {
        let text = r#"{"z":12345678901234567890123,"a":1.50,"m":1e+30}"#;
        assert_eq!(
            super::super::to_string(&parse(text.as_bytes()).unwrap()),
            text
        );
    }

    #[test]
    fn an_escape_cut_short_is_an_error() {
        for bad in [
            &br#""\u12"#[..],
            br#""\"#,
            br#""\u+123""#,
            "\"\\é\"".as_bytes(),
        ] {
            assert!(parse(bad).is_err(), "{bad:?}");
        }
    }
}
