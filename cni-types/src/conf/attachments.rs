//! The list of attachments that a GC must leave alone.

use crate::json::{self, DecodeError};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashSet;

/// The key of the specification.
pub(crate) const KEY: &str = "cni.dev/valid-attachments";
/// The key that older runtimes use; libcni sends both.
pub(crate) const OLD_KEY: &str = "cni.dev/attachments";

/// One interface of one container in a network.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(default)]
pub struct Attachment {
    /// The container's id.
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// The interface in the container.
    pub ifname: String,
}

/// The attachments to keep. A runtime that gave no list at all wants nothing collected; one that
/// gave an empty list (or `null`, as CRI-O does) has no attachments any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ValidAttachments {
    /// Neither key was there.
    #[default]
    Absent,
    /// The attachments under either key.
    List(Vec<Attachment>),
}

impl ValidAttachments {
    /// Reads both keys of a request. What either lists is kept.
    ///
    /// # Errors
    ///
    /// A value of the wrong type, or an entry without container id or interface: better no
    /// collection than a wrong one.
    pub fn decode(request: &Value) -> Result<Self, DecodeError> {
        let mut list = None;
        let mut seen = HashSet::new();
        let pairs = request.as_object().into_iter().flatten();
        for (key, value) in
            pairs.filter(|(key, _)| [KEY, OLD_KEY].iter().any(|k| json::same_key(key, k)))
        {
            let entries: Vec<Attachment> = json::from_value(value).map_err(|e| e.in_key(key))?;
            if let Some(bad) = entries.iter().position(Attachment::is_incomplete) {
                let error: DecodeError = serde::de::Error::custom("needs containerID and ifname");
                return Err(error.in_index(bad).in_key(key));
            }
            let list = list.get_or_insert_with(Vec::new);
            list.extend(
                entries
                    .into_iter()
                    .filter(|entry| seen.insert(entry.clone())),
            );
        }
        Ok(list.map_or(ValidAttachments::Absent, ValidAttachments::List))
    }
}

impl Attachment {
    fn is_incomplete(&self) -> bool {
        self.container_id.is_empty() || self.ifname.is_empty()
    }

    pub(crate) fn encode(&self) -> Value {
        json!({"containerID": self.container_id, "ifname": self.ifname})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(id: &str) -> Attachment {
        Attachment {
            container_id: id.into(),
            ifname: "eth0".into(),
        }
    }

    #[test]
    fn absent_is_not_empty() {
        let decode = |value| ValidAttachments::decode(&value).unwrap();
        assert_eq!(decode(json!({})), ValidAttachments::Absent);
        for empty in [json!(null), json!([])] {
            assert_eq!(decode(json!({KEY: empty})), ValidAttachments::List(vec![]));
            assert_eq!(
                decode(json!({OLD_KEY: empty})),
                ValidAttachments::List(vec![])
            );
        }
    }

    #[test]
    fn both_keys_count() {
        let entry = |id: &str| json!({"containerID": id, "ifName": "eth0"});
        let value = json!({KEY: [entry("a")], OLD_KEY: [entry("b"), entry("a")]});
        let valid = ValidAttachments::decode(&value).unwrap();
        assert_eq!(
            valid,
            ValidAttachments::List(vec![attachment("a"), attachment("b")])
        );
        let value = json!({KEY: null, OLD_KEY: [entry("b")]});
        let valid = ValidAttachments::decode(&value).unwrap();
        assert_eq!(valid, ValidAttachments::List(vec![attachment("b")]));
    }

    #[test]
    fn doubt_is_an_error() {
        for bad in [
            json!("x"),
            json!([{}]),
            json!([null]),
            json!([{"containerID": "a"}]),
            json!({}),
        ] {
            assert!(
                ValidAttachments::decode(&json!({KEY: bad})).is_err(),
                "{bad}"
            );
        }
    }
}
