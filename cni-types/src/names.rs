//! Names that come from outside, as types that cannot hold a bad one.

use crate::error::code;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// A name is missing or not allowed. The texts are those of the reference set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// No container id.
    #[error("missing containerID")]
    NoContainerId,
    /// A container id with other characters than letters, digits, `_`, `.`, `-`.
    #[error("invalid characters in containerID")]
    ContainerId(String),
    /// No network name.
    #[error("missing network name")]
    NoNetworkName,
    /// A network name with other characters than letters, digits, `_`, `.`, `-`.
    #[error("invalid characters found in network name")]
    NetworkName(String),
    /// No interface name.
    #[error("interface name is empty")]
    NoIfName,
    /// An interface name that does not fit the kernel's 15 bytes.
    #[error("interface name is too long")]
    IfNameTooLong(String),
    /// An interface name that means a directory.
    #[error("interface name is . or ..")]
    IfNameDots(String),
    /// An interface name the kernel refuses.
    #[error("interface name contains / or : or whitespace characters")]
    IfNameCharacters(String),
    /// An interface name under which the kernel keeps the settings of all interfaces.
    #[error("interface name is all or default, which stand for every interface")]
    IfNameOfAll(String),
    /// An interface name that the kernel would read as a pattern, or that cannot be shown.
    #[error("interface name contains % or control characters or invalid UTF-8")]
    IfNamePattern(String),
    /// No path to a network namespace.
    #[error("network namespace path is empty")]
    NoNetns,
}

impl NameError {
    /// The CNI error code: 7 for a network name, else 4; 3 is left to runtimes.
    pub fn code(&self) -> u32 {
        match self {
            NameError::NoNetworkName | NameError::NetworkName(_) => code::INVALID_NETWORK_CONFIG,
            _ => code::INVALID_ENVIRONMENT,
        }
    }

    /// The details of the CNI error: the offending name or the rule, or nothing.
    pub fn details(&self) -> String {
        match self {
            NameError::ContainerId(name)
            | NameError::NetworkName(name)
            | NameError::IfNameDots(name)
            | NameError::IfNameOfAll(name)
            | NameError::IfNameCharacters(name)
            | NameError::IfNamePattern(name) => name.clone(),
            NameError::IfNameTooLong(name) => {
                format!("interface name should be less than 16 characters: {name}")
            }
            _ => String::new(),
        }
    }
}

/// First byte an ASCII letter or digit, the others also `_`, `.` or `-`; any length.
fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The name out of an environment variable.
            ///
            /// # Errors
            ///
            /// As [`new`](Self::new); bytes that are not UTF-8 are refused like bad characters.
            pub fn from_os(name: &OsStr) -> Result<Self, NameError> {
                // The replacement character is refused by every rule below.
                Self::new(name.to_string_lossy())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }

        impl std::str::FromStr for $name {
            type Err = NameError;

            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }
    };
}

name_type! {
    /// What the runtime calls the container.
    ContainerId
}

name_type! {
    /// The name of a network, from the configuration.
    NetworkName
}

name_type! {
    /// The name of the interface inside the container (1 to 15 bytes).
    IfName
}

impl ContainerId {
    /// Checks a container id: a letter or digit, then letters, digits, `_`, `.`, `-`.
    ///
    /// # Errors
    ///
    /// [`NameError::NoContainerId`] or [`NameError::ContainerId`].
    pub fn new(id: impl Into<String>) -> Result<Self, NameError> {
        let id = id.into();
        match id.as_str() {
            "" => Err(NameError::NoContainerId),
            text if is_plain(text) => Ok(ContainerId(id)),
            _ => Err(NameError::ContainerId(id)),
        }
    }
}

impl NetworkName {
    /// Checks a network name: the rule of [`ContainerId::new`].
    ///
    /// # Errors
    ///
    /// [`NameError::NoNetworkName`] or [`NameError::NetworkName`].
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        match name.as_str() {
            "" => Err(NameError::NoNetworkName),
            text if is_plain(text) => Ok(NetworkName(name)),
            _ => Err(NameError::NetworkName(name)),
        }
    }
}

impl IfName {
    /// Checks an interface name: 1 to 15 bytes, not `.` or `..`, no `/`, `:`, white space.
    /// Beyond the reference set it also refuses `all` and `default` (the kernel keeps the settings of
    /// all interfaces under these names, and makes none), `%` (a pattern to the kernel), control
    /// characters and broken UTF-8, which could only fail later and obscurely.
    ///
    /// # Errors
    ///
    /// The first rule broken, in the order above.
    pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        let text = name.as_str();
        if text.is_empty() {
            Err(NameError::NoIfName)
        } else if text.len() > 15 {
            Err(NameError::IfNameTooLong(name))
        } else if matches!(text, "." | "..") {
            Err(NameError::IfNameDots(name))
        } else if matches!(text, "all" | "default") {
            Err(NameError::IfNameOfAll(name))
        } else if text.contains(|c: char| matches!(c, '/' | ':') || c.is_whitespace()) {
            Err(NameError::IfNameCharacters(name))
        } else if text.contains(|c: char| matches!(c, '%' | '\u{fffd}') || c.is_control()) {
            Err(NameError::IfNamePattern(name))
        } else {
            Ok(IfName(name))
        }
    }
}

/// The path to a network namespace. Only known not to be empty: what it leads to is for who
/// opens it to find out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NetnsPath(PathBuf);

impl NetnsPath {
    /// Wraps a path.
    ///
    /// # Errors
    ///
    /// [`NameError::NoNetns`] if it is empty.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, NameError> {
        let path = path.into();
        if path.as_os_str().is_empty() {
            Err(NameError::NoNetns)
        } else {
            Ok(NetnsPath(path))
        }
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl AsRef<Path> for NetnsPath {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl fmt::Display for NetnsPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn container_ids_and_network_names() {
        for good in ["0", "a", "a_b.c-d", &"x".repeat(300)] {
            assert!(ContainerId::new(good).is_ok(), "{good}");
            assert!(NetworkName::new(good).is_ok(), "{good}");
        }
        for bad in [
            "_a", "-a", ".a", "é", "aé", "a:b", "a/b", "a\n", "a b", "\0",
        ] {
            assert_eq!(
                ContainerId::new(bad),
                Err(NameError::ContainerId(bad.into()))
            );
            assert_eq!(
                NetworkName::new(bad),
                Err(NameError::NetworkName(bad.into()))
            );
        }
        assert_eq!(ContainerId::new(""), Err(NameError::NoContainerId));
        assert_eq!(NetworkName::new(""), Err(NameError::NoNetworkName));
    }

    #[test]
    fn interface_names() {
        for good in ["eth0", "...", "-x", "éééééée", &"x".repeat(15)] {
            assert!(IfName::new(good).is_ok(), "{good}");
        }
        assert_eq!(IfName::new(""), Err(NameError::NoIfName));
        for long in ["éééééééé", &"x".repeat(16), "a/b:c d e f g h i"] {
            assert_eq!(
                IfName::new(long),
                Err(NameError::IfNameTooLong(long.into()))
            );
        }
        for dots in [".", ".."] {
            assert_eq!(IfName::new(dots), Err(NameError::IfNameDots(dots.into())));
        }
        for bad in [
            "a/b",
            "a:b",
            "a b",
            "a\t",
            "a\u{85}",
            "a\u{a0}",
            "a\u{2003}",
        ] {
            assert_eq!(
                IfName::new(bad),
                Err(NameError::IfNameCharacters(bad.into()))
            );
        }
        for bad in ["eth%d", "a\u{1}", "a\u{7f}"] {
            assert_eq!(IfName::new(bad), Err(NameError::IfNamePattern(bad.into())));
        }
        assert!(IfName::from_os(OsStr::from_bytes(b"a\xff")).is_err());
        assert!(ContainerId::from_os(OsStr::from_bytes(b"a\xff")).is_err());
    }

    #[test]
    fn codes_and_details() {
        let error = crate::CniError::from(ContainerId::new("bad/id").unwrap_err());
        assert_eq!((error.code, error.details.as_str()), (4, "bad/id"));
        let error = crate::CniError::from(NetworkName::new("a b").unwrap_err());
        assert_eq!((error.code, error.details.as_str()), (7, "a b"));
    }

    #[test]
    fn netns_paths() {
        assert_eq!(NetnsPath::new(""), Err(NameError::NoNetns));
        assert_eq!(
            NetnsPath::new("/proc/1/fd/9").unwrap().to_string(),
            "/proc/1/fd/9"
        );
    }
}
