//! The node's list of kernel settings that configurations may change.

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::fcntl::OFlag;

use regex_lite::Regex;

use crate::error::Error;
use crate::sysctl::Sysctl;

/// Where the administrator of a node keeps the list, as for the reference set.
const PATH: &str = "/etc/cni/tuning/allowlist.conf";

/// The list.
#[derive(Debug)]
pub struct Allowlist {
    patterns: Vec<Regex>,
}

impl Allowlist {
    /// The node's list; none where there is no file, which allows everything.
    ///
    /// # Errors
    /// [`Error::Allowlist`] if it cannot be read or a line is no regular expression.
    pub fn of_node() -> Result<Option<Self>, Error> {
        Self::read(Path::new(PATH))
    }

    fn read(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |why: String| Error::Allowlist {
            path: path.to_owned(),
            why,
        };
        match read_file(path) {
            Ok(text) => Self::parse(&text).map(Some).map_err(failed),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    /// One regular expression a line; empty lines say nothing.
    fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(str::trim);
        let patterns = lines.filter(|line| !line.is_empty()).map(|line| {
            Regex::new(line).map_err(|error| format!("{line:?} is no regular expression: {error}"))
        });
        Ok(Self {
            patterns: patterns.collect::<Result<_, _>>()?,
        })
    }

    /// Refuses a setting of which no line matches some part of the key, as the configuration spells it.
    ///
    /// # Errors
    /// [`Error::NotAllowed`] for the first such setting.
    pub fn require(&self, sysctls: &[Sysctl]) -> Result<(), Error> {
        let forbidden = sysctls.iter().find(|setting| {
            !self
                .patterns
                .iter()
                .any(|pattern| pattern.is_match(&setting.key))
        });
        match forbidden {
            None => Ok(()),
            Some(setting) => Err(Error::NotAllowed {
                key: setting.key.clone(),
                allowed: self
                    .patterns
                    .iter()
                    .map(|p| p.as_str().to_owned())
                    .collect(),
            }),
        }
    }
}

/// Opening a pipe that somebody put there would wait for its other end.
fn read_file(path: &Path) -> io::Result<String> {
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlag::O_NONBLOCK.bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Refuses what the node does not allow.
///
/// # Errors
/// As [`Allowlist::of_node`] and [`Allowlist::require`].
pub fn require(sysctls: &[Sysctl]) -> Result<(), Error> {
    if sysctls.is_empty() {
        return Ok(());
    }
    match Allowlist::of_node()? {
        Some(list) => list.require(sysctls),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(list: &str, key: &str) -> bool {
        let setting = Sysctl::new(key.to_owned(), "1".to_owned(), "eth0").unwrap();
        Allowlist::parse(list).unwrap().require(&[setting]).is_ok()
    }

    #[test]
    fn lines_are_searched_for_anywhere() {
        let list = "\n  ^net\\.ipv4\\.conf\\..*\\.forwarding$\r\n\nsomaxconn\n";
        for key in [
            "net.ipv4.conf.IFNAME.forwarding",
            "net.ipv4.conf.all.forwarding",
            "net.core.somaxconn",
            "net/core/somaxconn_of_another_kind",
        ] {
            assert!(allows(list, key), "{key}");
        }
        for key in [
            "net.ipv4.conf.eth0.forwarding.x",
            "net/ipv4/conf/all/forwarding",
            "net.ipv4.ip_forward",
        ] {
            assert!(!allows(list, key), "{key}");
        }
    }

    #[test]
    fn a_dot_is_any_character_and_case_counts() {
        assert!(allows("net.core.somaxconn", "net/core/somaxconn"));
        assert!(!allows("NET", "net.core.somaxconn"));
        assert!(allows("(?i)NET", "net.core.somaxconn"));
        assert!(allows(r"^net\.core\.[[:alpha:]_]+$", "net.core.somaxconn"));
        assert!(allows(r"\Anet\W\w+\W\w{3,}\z", "net.core.somaxconn"));
    }

    #[test]
    fn an_empty_list_allows_nothing() {
        for list in ["", "\n \n"] {
            assert!(!allows(list, "net.core.somaxconn"));
        }
    }

    #[test]
    fn comments_are_no_comments() {
        assert!(!allows("# somaxconn", "net.core.somaxconn"));
    }

    #[test]
    fn a_line_that_is_no_pattern_is_named() {
        let error = Allowlist::parse("ok\n[").unwrap_err();
        assert!(error.contains("\"[\""), "{error}");
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Allowlist::read(directory.path()).is_err());
        assert!(
            Allowlist::read(&directory.path().join("none"))
                .unwrap()
                .is_none()
        );
        let file = directory.path().join("list");
        std::fs::write(&file, b"\xff").unwrap();
        assert!(Allowlist::read(&file).is_err());
    }
}
