//! A value to text, with the reference set's indent and escapes.

use serde_json::{Map, Value};
use std::fmt::Write;

/// Compact text without a trailing newline. `<`, `>`, `&`, U+2028 and U+2029 are escaped.
pub fn to_string(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, None);
    out
}

/// Text indented by four spaces, without a trailing newline; empty containers are `{}` and `[]`.
/// Escapes are those of [`to_string`].
pub fn to_pretty(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, Some(0));
    out
}

/// The same value with the keys of every object in bytewise order.
pub fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.iter().collect();
            keys.sort_by_key(|(key, _)| key.as_bytes());
            Value::Object(
                keys.into_iter()
                    .map(|(k, v)| (k.clone(), sorted(v)))
                    .collect(),
            )
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

fn write_value(out: &mut String, value: &Value, depth: Option<usize>) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number.to_string()),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => write_array(out, items, depth),
        Value::Object(map) => write_object(out, map, depth),
    }
}

fn write_array(out: &mut String, items: &[Value], depth: Option<usize>) {
    let inner = depth.map(|depth| depth + 1);
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        new_line(out, inner);
        write_value(out, item, inner);
    }
    if !items.is_empty() {
        new_line(out, depth);
    }
    out.push(']');
}

fn write_object(out: &mut String, map: &Map<String, Value>, depth: Option<usize>) {
    let inner = depth.map(|depth| depth + 1);
    out.push('{');
    for (index, (key, value)) in map.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        new_line(out, inner);
        write_text(out, key);
        out.push_str(if depth.is_some() { ": " } else { ":" });
        write_value(out, value, inner);
    }
    if !map.is_empty() {
        new_line(out, depth);
    }
    out.push('}');
}

fn new_line(out: &mut String, depth: Option<usize>) {
    if let Some(depth) = depth {
        out.push('\n');
        for _ in 0..depth {
            out.push_str("    ");
        }
    }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a String cannot fail.
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn escapes() {
        let text = "<>&\u{2028}\u{2029}\u{1}\u{7f}\n\"\\é";
        let printed = "\"\\u003c\\u003e\\u0026\\u2028\\u2029\\u0001\u{7f}\\n\\\"\\\\é\"";
        assert_eq!(to_string(&json!(text)), printed);
        assert_eq!(
            super::super::parse(printed.as_bytes()).unwrap(),
            json!(text)
        );
    }

    #[test]
    fn four_spaces() {
        let value = json!({"b": [1, {"c": {}}], "a": []});
        let want = "{\n    \"b\": [\n        1,\n        {\n            \"c\": {}\n        }\n    ],\n    \"a\": []\n}";
        assert_eq!(to_pretty(&value), want);
        assert_eq!(to_string(&sorted(&value)), r#"{"a":[],"b":[1,{"c":{}}]}"#);
    }
}
