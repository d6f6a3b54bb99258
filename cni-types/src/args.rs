//! `CNI_ARGS`: `KEY=value` pairs joined by semicolons.

use crate::error::{CniError, code};
use std::ffi::OsStr;

/// The pairs of `CNI_ARGS`, in order.
///
/// More lenient than the reference set: a value may contain `=`, empty parts (such as a trailing
/// semicolon leaves) are skipped, and a key that nobody asks for is no error, because it may be
/// meant for another plugin of the chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Args {
    pairs: Vec<(String, String)>,
    malformed: Vec<String>,
}

impl Args {
    /// Reads the variable. Parts without `=` or without a key are set aside, see
    /// [`malformed`](Self::malformed). Bytes that are not UTF-8 become U+FFFD.
    pub fn parse(text: impl AsRef<OsStr>) -> Self {
        let mut args = Args::default();
        for part in text
            .as_ref()
            .to_string_lossy()
            .split(';')
            .filter(|part| !part.is_empty())
        {
            match part.split_once('=') {
                Some((key, value)) if !key.is_empty() => {
                    args.pairs.push((key.into(), value.into()))
                }
                _ => args.malformed.push(part.into()),
            }
        }
        args
    }

    /// The value of `key`, which matches with regard to case; of a repeated key the last one.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.pairs
            .iter()
            .rfind(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// The value of `key` unless it is missing or empty.
    pub fn get_nonempty(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// All pairs in order, repeated ones included.
    pub fn pairs(&self) -> &[(String, String)] {
        &self.pairs
    }

    /// Parts that are no `KEY=value`.
    pub fn malformed(&self) -> &[String] {
        &self.malformed
    }

    /// Refuses malformed parts. For ADD and CHECK; a DEL must never fail for its arguments.
    ///
    /// # Errors
    ///
    /// Code 4, naming the first part that is no pair.
    pub fn require_well_formed(&self) -> Result<(), CniError> {
        match self.malformed.first() {
            None => Ok(()),
            Some(part) => Err(CniError::new(
                code::INVALID_ENVIRONMENT,
                format!("ARGS: invalid pair {part:?}: expected KEY=value"),
            )
            .with_details(
                "CNI_ARGS is KEY=value;KEY=value; known are IP, GATEWAY and MAC, the page of each plugin says which it reads, \
                 and others are ignored",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn pairs_split_at_the_first_equals_sign() {
        let args = Args::parse(";IgnoreUnknown=1;;MAC=aa;J={\"a\":\"b=c\"};MAC=bb;E=;");
        assert_eq!(args.get("MAC"), Some("bb"));
        assert_eq!(args.get("mac"), None);
        assert_eq!(args.get("J"), Some("{\"a\":\"b=c\"}"));
        assert_eq!((args.get("E"), args.get_nonempty("E")), (Some(""), None));
        assert_eq!(args.pairs().len(), 5);
        assert!(args.require_well_formed().is_ok());
        assert_eq!(Args::parse(""), Args::default());
    }

    #[test]
    fn malformed_parts_are_set_aside() {
        let args = Args::parse("A;=x;IP=10.0.0.1");
        assert_eq!(args.malformed(), ["A", "=x"]);
        assert_eq!(args.get("IP"), Some("10.0.0.1"));
        assert_eq!(args.require_well_formed().unwrap_err().code, 4);
    }

    #[test]
    fn bytes_that_are_not_text_are_survived() {
        assert_eq!(
            Args::parse(OsStr::from_bytes(b"A=\xff")).get("A"),
            Some("\u{fffd}")
        );
    }
}
