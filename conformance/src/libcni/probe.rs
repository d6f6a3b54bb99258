//! Asking plugins for the versions they speak.

use super::{CallError, Cni, Command, Error, Result};
use cni_types::{NetworkList, SpecVersion, Value, json};
use std::collections::BTreeSet;
use std::ffi::OsString;

impl Cni {
    /// The versions a plugin says it supports. One that does not know the question speaks 0.1.0.
    ///
    /// # Errors
    ///
    /// When the plugin cannot be executed, or its answer is none.
    pub fn versions(&self, plugin: &str) -> Result<Vec<String>> {
        let dummy = || OsString::from("dummy");
        let environment = [
            ("CNI_CONTAINERID", OsString::new()),
            ("CNI_NETNS", dummy()),
            ("CNI_IFNAME", dummy()),
            ("CNI_ARGS", OsString::new()),
        ];
        let stdin = format!(r#"{{"cniVersion":"{}"}}"#, SpecVersion::CURRENT);
        match self.execute(Command::Version, plugin, &environment, stdin.as_bytes()) {
            Ok(printed) => decode(&printed).map_err(|problem| Error::VersionInfo {
                plugin: plugin.to_owned(),
                problem,
            }),
            Err(CallError::Failed(error)) if error.msg == "unknown CNI_COMMAND: VERSION" => {
                Ok(vec![SpecVersion::V0_1_0.to_string()])
            }
            Err(source) => Err(Error::Plugin {
                plugin: plugin.to_owned(),
                name: String::new(),
                command: Command::Version,
                source,
            }),
        }
    }

    /// Whether every plugin of the list is there and speaks the list's version.
    ///
    /// The answer is the union of the capabilities that are switched on.
    ///
    /// # Errors
    ///
    /// Every plugin that does not.
    pub fn validate(&self, list: &NetworkList) -> Result<BTreeSet<String>> {
        let version = match list.cni_version.as_str() {
            "" => SpecVersion::IMPLIED.as_str(),
            text => text,
        };
        let mut errors = Vec::new();
        for plugin in &list.plugins {
            match self.versions(&plugin.plugin_type) {
                Ok(versions) if versions.iter().any(|known| known == version) => {}
                Ok(known) => errors.push(Error::Unsupported {
                    plugin: plugin.plugin_type.clone(),
                    version: version.to_owned(),
                    known,
                }),
                Err(error) => errors.push(error),
            }
        }
        Error::join(errors)?;
        let names = list.plugins.iter().flat_map(|plugin| plugin.capabilities());
        Ok(names.map(str::to_owned).collect())
    }
}

fn decode(printed: &[u8]) -> std::result::Result<Vec<String>, String> {
    let value = json::parse(printed).map_err(|error| error.to_string())?;
    let version = json::get(&value, "cniVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if version.is_empty() {
        return Err("missing field cniVersion".into());
    }
    let versions: Vec<String> = match json::get(&value, "supportedVersions") {
        None => Vec::new(),
        Some(list) => json::from_value(list).map_err(|error| error.to_string())?,
    };
    match versions.is_empty() {
        false => Ok(versions),
        // The first version with this command had no list in its answer.
        true if version == SpecVersion::V0_2_0.as_str() => Ok(vec!["0.1.0".into(), "0.2.0".into()]),
        true => Err("missing field supportedVersions".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use serde_json::json;

    fn versions(bench: &Bench, printed: &str) -> Option<Vec<String>> {
        bench.answers("one", "VERSION", printed);
        bench.cni().versions("one").ok()
    }

    #[test]
    fn answers_to_version() {
        let bench = Bench::new();
        let all = r#"{"cniVersion":"1.1.0","supportedVersions":["0.4.0","1.0.0"]}"#;
        assert_eq!(versions(&bench, all).unwrap(), ["0.4.0", "1.0.0"]);
        assert_eq!(
            versions(&bench, r#"{"cniVersion":"0.2.0"}"#).unwrap(),
            ["0.1.0", "0.2.0"]
        );
        for bad in [
            "",
            "{}",
            r#"{"cniVersion":"1.0.0"}"#,
            r#"{"cniVersion":"1.0.0","supportedVersions":1}"#,
        ] {
            assert_eq!(versions(&bench, bad), None, "{bad}");
        }
        assert_eq!(bench.calls()[0], "one VERSION  dummy ");
        bench.fails(
            "one",
            "VERSION",
            r#"{"code":4,"msg":"unknown CNI_COMMAND: VERSION"}"#,
        );
        assert_eq!(bench.cni().versions("one").unwrap(), ["0.1.0"]);
    }

    #[test]
    fn validation_reports_every_plugin() {
        let bench = Bench::new();
        bench.answers(
            "one",
            "VERSION",
            r#"{"cniVersion":"1.0.0","supportedVersions":["1.0.0"]}"#,
        );
        bench.answers("two", "VERSION", r#"{"cniVersion":"0.2.0"}"#);
        let good = bench.list(json!({"cniVersion": "1.0.0", "plugins": [
            {"type": "one", "capabilities": {"mac": true, "ips": false}},
        ]}));
        assert_eq!(
            bench.cni().validate(&good).unwrap(),
            BTreeSet::from(["mac".to_owned()])
        );
        let bad = bench
            .list(json!({"cniVersion": "1.0.0", "plugins": [{"type": "two"}, {"type": "nope"}]}));
        let error = bench.cni().validate(&bad).unwrap_err().to_string();
        assert!(
            error.contains(r#"plugin two does not support config version "1.0.0""#),
            "{error}"
        );
        assert!(error.contains("failed to find plugin \"nope\""), "{error}");
        let implied = bench.list(json!({"plugins": [{"type": "two"}]}));
        bench.cni().validate(&implied).unwrap();
    }
}
