//! Versions of the specification, and which of them allow which command.

use crate::error::{CniError, code};
use std::fmt;
use std::str::FromStr;

/// A version of the specification that has been published.
#[allow(non_camel_case_types)]
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpecVersion {
    V0_1_0,
    V0_2_0,
    V0_3_0,
    V0_3_1,
    V0_4_0,
    V1_0_0,
    V1_1_0,
}

/// The shape that the results of a version have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// 0.1.0 and 0.2.0: one `ip4` and one `ip6`.
    Legacy,
    /// 0.3.0, 0.3.1 and 0.4.0: lists, each address with its `version`.
    Lists,
    /// 1.0.0 and 1.1.0: lists, without that.
    Current,
}

/// The text is no published version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown CNI version {0:?}; known are {all}", all = listed(&SpecVersion::ALL))]
pub struct UnknownVersion(pub String);

/// With commas between them.
fn listed(versions: &[SpecVersion]) -> String {
    let texts: Vec<&str> = versions.iter().map(|version| version.as_str()).collect();
    texts.join(", ")
}

impl SpecVersion {
    /// Every version, oldest first.
    pub const ALL: [SpecVersion; 7] = [
        SpecVersion::V0_1_0,
        SpecVersion::V0_2_0,
        SpecVersion::V0_3_0,
        SpecVersion::V0_3_1,
        SpecVersion::V0_4_0,
        SpecVersion::V1_0_0,
        SpecVersion::V1_1_0,
    ];

    /// The newest version.
    pub const CURRENT: SpecVersion = SpecVersion::V1_1_0;

    /// The version that a configuration without one has.
    pub const IMPLIED: SpecVersion = SpecVersion::V0_1_0;

    /// The text in `cniVersion`.
    pub const fn as_str(self) -> &'static str {
        match self {
            SpecVersion::V0_1_0 => "0.1.0",
            SpecVersion::V0_2_0 => "0.2.0",
            SpecVersion::V0_3_0 => "0.3.0",
            SpecVersion::V0_3_1 => "0.3.1",
            SpecVersion::V0_4_0 => "0.4.0",
            SpecVersion::V1_0_0 => "1.0.0",
            SpecVersion::V1_1_0 => "1.1.0",
        }
    }

    /// The shape of this version's results.
    pub const fn family(self) -> Family {
        match self {
            SpecVersion::V0_1_0 | SpecVersion::V0_2_0 => Family::Legacy,
            SpecVersion::V0_3_0 | SpecVersion::V0_3_1 | SpecVersion::V0_4_0 => Family::Lists,
            SpecVersion::V1_0_0 | SpecVersion::V1_1_0 => Family::Current,
        }
    }

    /// The version of a configuration: empty means 0.1.0, anything else must be exact.
    ///
    /// # Errors
    ///
    /// [`UnknownVersion`] for anything else.
    pub fn of_config(text: &str) -> Result<Self, UnknownVersion> {
        if text.is_empty() {
            Ok(SpecVersion::IMPLIED)
        } else {
            text.parse()
        }
    }

    /// This version and all newer ones: what a plugin reports that began with this version.
    ///
    /// ```
    /// use cni_types::SpecVersion;
    /// const SUPPORTED: &[SpecVersion] = SpecVersion::V1_0_0.and_newer();
    /// assert_eq!(SUPPORTED, [SpecVersion::V1_0_0, SpecVersion::V1_1_0]);
    /// ```
    pub const fn and_newer(self) -> &'static [SpecVersion] {
        const ALL: &[SpecVersion] = &SpecVersion::ALL;
        // The variants are numbered in the order of the list.
        ALL.split_at(self as usize).1
    }
}

impl fmt::Display for SpecVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SpecVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
            .ok_or_else(|| UnknownVersion(text.to_owned()))
    }
}

/// A version as a configuration may spell it: one to three numbers. Only for comparing; ADD
/// and DEL want the exact text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LooseVersion(pub [i64; 3]);

/// The text cannot be read as a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid version {0:?}: expected up to three decimal numbers separated by dots")]
pub struct VersionSyntax(pub String);

impl FromStr for LooseVersion {
    type Err = VersionSyntax;

    /// Empty is 0.1.0; missing parts are 0; signs and leading zeros are allowed, anything else
    /// is not.
    fn from_str(text: &str) -> Result<Self, VersionSyntax> {
        if text.is_empty() {
            return Ok(LooseVersion([0, 1, 0]));
        }
        let syntax = || VersionSyntax(text.to_owned());
        let mut parts = text.split('.');
        let mut numbers = [0; 3];
        for number in &mut numbers {
            let Some(part) = parts.next() else { break };
            *number = part.parse().map_err(|_| syntax())?;
        }
        if parts.next().is_some() {
            Err(syntax())
        } else {
            Ok(LooseVersion(numbers))
        }
    }
}

impl From<SpecVersion> for LooseVersion {
    fn from(version: SpecVersion) -> Self {
        LooseVersion(match version {
            SpecVersion::V0_1_0 => [0, 1, 0],
            SpecVersion::V0_2_0 => [0, 2, 0],
            SpecVersion::V0_3_0 => [0, 3, 0],
            SpecVersion::V0_3_1 => [0, 3, 1],
            SpecVersion::V0_4_0 => [0, 4, 0],
            SpecVersion::V1_0_0 => [1, 0, 0],
            SpecVersion::V1_1_0 => [1, 1, 0],
        })
    }
}

/// A command that came with a later version of the specification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaterCommand {
    /// Since 0.4.0.
    Check,
    /// Since 1.1.0.
    Gc,
    /// Since 1.1.0.
    Status,
}

impl LaterCommand {
    /// The first version that has the command.
    pub const fn since(self) -> SpecVersion {
        match self {
            LaterCommand::Check => SpecVersion::V0_4_0,
            LaterCommand::Gc | LaterCommand::Status => SpecVersion::V1_1_0,
        }
    }

    /// The command as in `CNI_COMMAND`.
    pub const fn as_str(self) -> &'static str {
        match self {
            LaterCommand::Check => "CHECK",
            LaterCommand::Gc => "GC",
            LaterCommand::Status => "STATUS",
        }
    }
}

/// ADD and DEL: the configuration's version must be, letter by letter, one the plugin supports.
///
/// # Errors
///
/// Code 1 with both sides in the details.
pub fn accept(config: &str, supported: &[SpecVersion]) -> Result<SpecVersion, CniError> {
    match SpecVersion::of_config(config) {
        Ok(version) if supported.contains(&version) => Ok(version),
        _ => Err(incompatible(config, supported)),
    }
}

/// CHECK, GC and STATUS: the configuration's version must be new enough for the command, not
/// newer than the plugin, and then one the plugin supports.
///
/// # Errors
///
/// Code 6 for a version that cannot be parsed, else code 1.
pub fn accept_for(
    command: LaterCommand,
    config: &str,
    supported: &[SpecVersion],
) -> Result<SpecVersion, CniError> {
    let wanted: LooseVersion = config
        .parse()
        .map_err(|error: VersionSyntax| CniError::new(code::DECODING_FAILURE, error.to_string()))?;
    let refuse = |whose: &str| {
        let text = format!("{whose} version does not allow {}", command.as_str());
        let details = format!(
            "{} came with version {}; the versions of this plugin are {}",
            command.as_str(),
            command.since().as_str(),
            listed(supported)
        );
        Err(CniError::new(code::INCOMPATIBLE_VERSION, text).with_details(details))
    };
    if wanted < command.since().into() {
        return refuse("config");
    }
    if !supported
        .iter()
        .any(|version| LooseVersion::from(*version) >= wanted)
    {
        return refuse("plugin");
    }
    accept(config, supported)
}

fn incompatible(config: &str, supported: &[SpecVersion]) -> CniError {
    let config = if config.is_empty() {
        SpecVersion::IMPLIED.as_str()
    } else {
        config
    };
    let list: Vec<String> = supported
        .iter()
        .map(|v| format!("{:?}", v.as_str()))
        .collect();
    CniError::new(code::INCOMPATIBLE_VERSION, "incompatible CNI versions").with_details(format!(
        "config is {config:?}, plugin supports [{}]",
        list.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_parse_back() {
        for version in SpecVersion::ALL {
            assert_eq!(version.as_str().parse(), Ok(version));
            let loose: LooseVersion = version.as_str().parse().unwrap();
            assert_eq!(loose, version.into());
            assert_eq!(version.and_newer().first(), Some(&version));
        }
        assert_eq!(SpecVersion::of_config(""), Ok(SpecVersion::V0_1_0));
        assert!(SpecVersion::of_config("1").is_err());
    }

    #[test]
    fn loose_versions() {
        for (text, numbers) in [
            ("", [0, 1, 0]),
            ("1", [1, 0, 0]),
            ("0.4", [0, 4, 0]),
            ("+1.01.-2", [1, 1, -2]),
        ] {
            assert_eq!(text.parse(), Ok(LooseVersion(numbers)));
        }
        for bad in ["0.", "1..0", "v1", "1.0.0-rc1", "x.y", "1.2.3.4", " 1", "."] {
            assert!(bad.parse::<LooseVersion>().is_err(), "{bad}");
        }
    }

    #[test]
    fn add_wants_the_exact_text() {
        let all = SpecVersion::ALL;
        assert_eq!(accept("", &all), Ok(SpecVersion::V0_1_0));
        for bad in ["1", "0.", "9.9.9", "x.y"] {
            assert_eq!(accept(bad, &all).unwrap_err().code, 1, "{bad}");
        }
        let error = accept("0.3.1", SpecVersion::V1_0_0.and_newer()).unwrap_err();
        assert_eq!(
            error.details,
            r#"config is "0.3.1", plugin supports ["1.0.0" "1.1.0"]"#
        );
    }

    #[test]
    fn check_gc_and_status_have_gates() {
        let all = SpecVersion::ALL;
        let check =
            |config: &str| accept_for(LaterCommand::Check, config, &all).map_err(|e| e.code);
        assert_eq!(check("0.4.0"), Ok(SpecVersion::V0_4_0));
        assert_eq!(check("0.3.1"), Err(1));
        assert_eq!(check(""), Err(1));
        assert_eq!(check("1"), Err(1));
        assert_eq!(check("x.y"), Err(6));
        assert_eq!(check("0.5.0"), Err(1));
        let text = |config: &str, list: &[SpecVersion]| {
            accept_for(LaterCommand::Gc, config, list).unwrap_err().msg
        };
        assert_eq!(text("1.0.0", &all), "config version does not allow GC");
        assert_eq!(text("2.0.0", &all), "plugin version does not allow GC");
        assert_eq!(
            text("1.1.0", &[SpecVersion::V1_0_0]),
            "plugin version does not allow GC"
        );
        let refused = accept_for(LaterCommand::Gc, "1.0.0", &[SpecVersion::V1_1_0]).unwrap_err();
        assert_eq!(
            refused.details,
            "GC came with version 1.1.0; the versions of this plugin are 1.1.0"
        );
    }
}
