//! Keys that a document holds twice, which no parsed value can tell.

use std::collections::BTreeSet;
use std::fmt;

use super::fold::same_key;
use super::parse;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The keys that occur more than once, letter by letter, in an object that is a member of the outermost one. The
/// member matches without regard to case. Nothing for a document that is none.
pub fn repeated_keys(bytes: &[u8], member: &str) -> Vec<String> {
    let text = parse::text(bytes);
    let mut document = serde_json::Deserializer::from_str(&text);
    let found = document.deserialize_any(Outer { member });
    found.unwrap_or_default()
}

/// The outermost object.
struct Outer<'m> {
    member: &'m str,
}

impl<'de> Visitor<'de> for Outer<'_> {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut repeated = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            if same_key(&key, self.member) {
                repeated.extend(map.next_value::<Repeated>()?.0);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(repeated)
    }
}

/// The repeated keys of one object; of anything else none.
struct Repeated(Vec<String>);

impl<'de> Deserialize<'de> for Repeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Inner).map(Self)
    }
}

struct Inner;

impl<'de> Visitor<'de> for Inner {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<String>, A::Error> {
        let mut seen = BTreeSet::new();
        let mut repeated = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value::<IgnoredAny>()?;
            if let Some(key) = seen.replace(key) {
                repeated.insert(key);
            }
        }
        Ok(repeated.into_iter().collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<String>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Vec::new())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_str<E>(self, _: &str) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }

    fn visit_unit<E>(self) -> Result<Vec<String>, E> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_are_found_once_each() {
        let text = br#"{"x":{"a":1,"a":2},"Sysctl":{"a":"1","b":"2","a":"3","a":"1","c":{"b":1,"b":1}},"y":[1,{"a":1}]}"#;
        assert_eq!(repeated_keys(text, "sysctl"), ["a"]);
        assert_eq!(repeated_keys(text, "x"), ["a"]);
        assert!(repeated_keys(text, "y").is_empty());
        assert!(repeated_keys(text, "z").is_empty());
    }

    #[test]
    fn anything_else_has_none() {
        for text in [
            "",
            "{",
            "[]",
            "7",
            r#"{"sysctl":7.5e300}"#,
            r#"{"sysctl":[{"a":1,"a":1}]}"#,
            r#"{"sysctl":"a"}"#,
            r#"{"sysctl":null}"#,
        ] {
            assert!(
                repeated_keys(text.as_bytes(), "sysctl").is_empty(),
                "{text}"
            );
        }
    }
}
