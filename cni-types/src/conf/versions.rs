//! Which version a network list is used with.

use crate::json::kind;
use crate::version::{LooseVersion, SpecVersion, VersionSyntax};
use serde_json::Value;

/// `cniVersions` is not usable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionsError {
    /// Not a list.
    #[error("invalid type for cniVersions: expected an array, found {0}")]
    NotAList(&'static str),
    /// An entry that is not text.
    #[error("invalid type for cniVersions index {0}: expected a string, found {1}")]
    EntryType(usize, &'static str),
    /// An entry that is no version.
    #[error("invalid cniVersions entry at index {0}: {1}")]
    Entry(usize, VersionSyntax),
    /// `cniVersion` beside the list is no version.
    #[error("invalid cniVersion: {0}")]
    Single(#[from] VersionSyntax),
    /// Nothing that this implementation speaks.
    #[error(
        "no supported version: cniVersion is {single:?}, cniVersions are {list:?}, supported are 0.1.0 to 1.1.0"
    )]
    NoneFits {
        /// The value of `cniVersion`.
        single: String,
        /// The values of `cniVersions`.
        list: Vec<String>,
    },
}

/// The version to use: the newest published one out of both keys. Without `cniVersions`, or with
/// an empty list, it is `cniVersion` as written.
///
/// The reference set falls back to 0.1.0 when it knows none of the versions; that would call
/// plugins with a version the author never meant, so it is an error here.
pub(super) fn select(single: &str, list: Option<&Value>) -> Result<String, VersionsError> {
    let Some(list) = list else {
        return Ok(single.to_owned());
    };
    let entries = list.as_array().ok_or(VersionsError::NotAList(kind(list)))?;
    if entries.is_empty() {
        return Ok(single.to_owned());
    }
    let mut candidates = Vec::with_capacity(entries.len() + 1);
    let mut texts = Vec::with_capacity(entries.len());
    for (index, entry) in entries.iter().enumerate() {
        let text = entry
            .as_str()
            .ok_or(VersionsError::EntryType(index, kind(entry)))?;
        let version: LooseVersion = text.parse().map_err(|e| VersionsError::Entry(index, e))?;
        candidates.push(version);
        texts.push(text.to_owned());
    }
    if !single.is_empty() {
        candidates.push(single.parse()?);
    }
    SpecVersion::ALL
        .into_iter()
        .rfind(|version| candidates.contains(&(*version).into()))
        .map(|version| version.as_str().to_owned())
        .ok_or_else(|| VersionsError::NoneFits {
            single: single.to_owned(),
            list: texts,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_newest_known_version_wins() {
        let pick = |single: &str, list: Value| select(single, Some(&list)).unwrap();
        assert_eq!(pick("", json!(["1.0.0", "1.1.0", "0.4.0"])), "1.1.0");
        assert_eq!(pick("0.3.1", json!(["0.4.0", "0.2.0"])), "0.4.0");
        assert_eq!(pick("1.1.0", json!(["0.4.0"])), "1.1.0");
        assert_eq!(pick("9.9.9", json!(["0.4.0", "9.0.0"])), "0.4.0");
        assert_eq!(pick("", json!(["1.0.1", "1.0", "0.4.0"])), "1.0.0");
        assert_eq!(pick("", json!([""])), "0.1.0");
        assert_eq!(pick("0.3.1", json!([])), "0.3.1");
        assert_eq!(select("7.7.7", None).unwrap(), "7.7.7");
    }

    #[test]
    fn what_cannot_be_chosen_is_an_error() {
        for (single, list) in [
            ("9.9.9", json!(["8.0.0"])),
            ("", json!(["2.0.0"])),
            ("", json!(["x"])),
            ("x", json!(["1.0.0"])),
            ("", json!([1])),
            ("", json!(null)),
            ("", json!("1.0.0")),
        ] {
            assert!(select(single, Some(&list)).is_err(), "{single} {list}");
        }
    }
}
