//! Kernel settings of the container's network namespace.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use netlink::{Handle, sysctl};
use skel::log;

use crate::error::Error;

mod value;

pub use value::same_value;

/// Stands for the interface's name in a key.
const IFNAME: &str = "IFNAME";

/// One setting that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sysctl {
    /// The key as it is written.
    pub key: String,
    /// The file below `/proc/sys/net`.
    pub path: PathBuf,
    /// The value as it is written.
    pub value: String,
}

impl Sysctl {
    /// The setting of that key. Dots and slashes both separate its parts, and the first `IFNAME` stands for the
    /// interface, which is how one with dots in its name can be meant.
    ///
    /// # Errors
    /// [`Error::SysctlKey`] for a key that is not below `net`, [`Error::SysctlLines`].
    pub fn new(key: String, value: String, ifname: &str) -> Result<Self, Error> {
        let spelled = key.replace('.', "/").replacen(IFNAME, ifname, 1);
        let parts: Vec<&str> = spelled.split('/').filter(|part| !part.is_empty()).collect();
        let path = match parts.as_slice() {
            // No part can lead out of the directory: `sysctl::path` takes neither `..` nor a slash.
            ["net", _, ..] => sysctl::path(&parts).ok(),
            _ => None,
        };
        match path {
            Some(_) if value.trim_end().contains('\n') => Err(Error::SysctlLines { key, value }),
            Some(path) => Ok(Self { key, path, value }),
            None => Err(Error::SysctlKey(key)),
        }
    }

    /// What the kernel is given: an empty value is an empty line, since writing nothing does nothing.
    fn written(&self) -> &str {
        line(&self.value)
    }
}

fn line(value: &str) -> &str {
    if value.is_empty() { "\n" } else { value }
}

/// What the settings are; none for one that can only be written.
///
/// # Errors
/// When there is no such setting, or the namespace cannot be entered.
pub fn read(container: &Handle, sysctls: &[Sysctl]) -> Result<Vec<Option<String>>, Error> {
    if sysctls.is_empty() {
        return Ok(Vec::new());
    }
    container.inside(|| sysctls.iter().map(read_one).collect())?
}

fn read_one(setting: &Sysctl) -> Result<Option<String>, Error> {
    let failed = |source| Error::Sysctl {
        key: setting.key.clone(),
        source,
    };
    match sysctl::read(&setting.path) {
        Ok(value) => Ok(Some(value)),
        Err(_) if is_write_only(setting) => Ok(None),
        Err(source) => Err(failed(source)),
    }
}

/// A trigger such as `net/ipv4/route/flush` has a file that nobody may read.
fn is_write_only(setting: &Sysctl) -> bool {
    fs::metadata(&setting.path)
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o444 == 0)
}

/// Writes the settings in their order.
///
/// # Errors
/// The first that the kernel refuses.
pub fn write(container: &Handle, sysctls: &[Sysctl]) -> Result<(), Error> {
    if sysctls.is_empty() {
        return Ok(());
    }
    container.inside(|| {
        sysctls.iter().try_for_each(|setting| {
            sysctl::write(&setting.path, setting.written()).map_err(|source| Error::Sysctl {
                key: setting.key.clone(),
                source,
            })
        })
    })?
}

/// Puts back what [`read`] found. The last one written goes first, since one setting may change others. What has
/// not changed is not written.
///
/// # Errors
/// The first failure, after all were tried.
pub fn restore(
    container: &Handle,
    sysctls: &[Sysctl],
    before: &[Option<String>],
) -> netlink::Result<()> {
    container.inside(|| {
        let mut outcome = Ok(());
        for (setting, value) in sysctls.iter().zip(before).rev() {
            let Some(value) = value else { continue };
            let written = match sysctl::read(&setting.path) {
                Ok(now) if now == *value => Ok(()),
                _ => sysctl::write(&setting.path, line(value)),
            };
            outcome = outcome.and(written);
        }
        outcome
    })?
}

/// Fails for the first setting that has another value.
///
/// # Errors
/// [`Error::Check`], or what [`read`] fails with.
pub fn verify(container: &Handle, sysctls: &[Sysctl]) -> Result<(), Error> {
    let found = read(container, sysctls)?;
    for (setting, found) in sysctls.iter().zip(found) {
        let Some(found) = found else {
            log::debug(format_args!(
                "{} can only be written",
                setting.path.display()
            ));
            continue;
        };
        if !same_value(&setting.value, &found) {
            return Err(Error::Check(format!(
                "sysctl {} is {found:?}, not {:?}",
                setting.key, setting.value
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(key: &str, ifname: &str) -> Option<String> {
        let setting = Sysctl::new(key.to_owned(), String::new(), ifname).ok()?;
        Some(setting.path.display().to_string())
    }

    #[test]
    fn keys_become_files() {
        for (key, ifname, wanted) in [
            ("net.core.somaxconn", "eth0", "net/core/somaxconn"),
            ("net/core/somaxconn", "eth0", "net/core/somaxconn"),
            (".net..core//somaxconn.", "eth0", "net/core/somaxconn"),
            (
                "net.ipv4.conf.IFNAME.forwarding",
                "eth0.7",
                "net/ipv4/conf/eth0.7/forwarding",
            ),
            ("net.ipv4.conf.IFNAME.IFNAME", "a", "net/ipv4/conf/a/IFNAME"),
            (
                "net.ipv4.conf.eth0.7.forwarding",
                "x",
                "net/ipv4/conf/eth0/7/forwarding",
            ),
        ] {
            assert_eq!(
                path(key, ifname).unwrap(),
                format!("/proc/sys/{wanted}"),
                "{key}"
            );
        }
    }

    #[test]
    fn no_key_leaves_the_directory() {
        for key in [
            "",
            "net",
            "net.",
            "kernel.hostname",
            "../etc/passwd",
            "/etc/passwd",
            "Net.core.somaxconn",
            "netx.core.somaxconn",
            "IFNAME.core.somaxconn",
            "net.core.some\0conn",
        ] {
            assert_eq!(path(key, "eth0"), None, "{key}");
        }
        // The name of an interface cannot be `..`, but if it could:
        assert_eq!(path("net.IFNAME.kernel.hostname", ".."), None);
        assert_eq!(path("net.IFNAME.hostname", "../../kernel"), None);
        assert_eq!(
            path("IFNAME.core.somaxconn", "net").as_deref(),
            Some("/proc/sys/net/core/somaxconn")
        );
    }
}
