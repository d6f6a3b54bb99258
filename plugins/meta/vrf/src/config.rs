//! The `vrf` plugin's configuration.

use serde::Deserialize;

use crate::error::Error;

/// The keys that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "lowercase", default)]
pub struct Config {
    /// The VRF that the interface is put into.
    pub vrfname: String,
    /// The VRF's routing table; 0 leaves the choice to the plugin.
    pub table: i64,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The VRF's name.
    pub name: String,
    /// Its table, if it matters.
    pub table: Option<u32>,
}

impl Config {
    /// What the configuration asks for.
    ///
    /// # Errors
    /// When a value is not good.
    pub fn wanted(&self) -> Result<Wanted, Error> {
        if self.vrfname.is_empty() {
            return Err(Error::NoName);
        }
        netlink::check_name(&self.vrfname).map_err(Error::Name)?;
        let table = u32::try_from(self.table).map_err(|_| Error::Table(self.table))?;
        Ok(Wanted {
            name: self.vrfname.clone(),
            table: Some(table).filter(|table| *table != 0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Result<Wanted, Error> {
        let value = cni_types::json::parse(text.as_bytes()).unwrap();
        let config: Config = cni_types::json::from_value(&value).unwrap();
        config.wanted()
    }

    #[test]
    fn names_and_tables() {
        for (text, table) in [
            (r#"{"vrfname":"blue"}"#, None),
            (r#"{"VRFName":"blue","table":null}"#, None),
            (r#"{"vrfname":"blue","table":0}"#, None),
            (r#"{"vrfname":"blue","table":4294967295}"#, Some(u32::MAX)),
        ] {
            let found = wanted(text).unwrap();
            assert_eq!(
                (found.name.as_str(), found.table),
                ("blue", table),
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be() {
        for text in [
            "{}",
            r#"{"vrfname":""}"#,
            r#"{"vrfname":null}"#,
            r#"{"vrfname":"a name of more than 15 bytes"}"#,
            r#"{"vrfname":"a/b"}"#,
            r#"{"vrfname":".."}"#,
            r#"{"vrfname":"blue","table":-1}"#,
            r#"{"vrfname":"blue","table":4294967296}"#,
        ] {
            let error = wanted(text).unwrap_err();
            assert_eq!(skel::PluginError::code(&error), 7, "{text}");
        }
    }
}
