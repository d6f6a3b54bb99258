//! Kernel settings of one namespace, under `/proc/sys/net`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::netns::refuse_if_stranded;

const ROOT: &str = "/proc/sys";

/// The path of a setting from its parts, as in `["net", "ipv6", "conf", "eth0.100", "accept_ra"]`.
/// Each part is one path component, so a dot in an interface name means nothing.
///
/// # Errors
/// If a part is empty, `.`, `..` or contains a slash or a zero byte.
pub fn path(parts: &[&str]) -> Result<PathBuf> {
    let mut path = PathBuf::from(ROOT);
    for part in parts {
        if matches!(*part, "" | "." | "..") || part.contains(['/', '\0']) {
            return Err(Error::BadName {
                name: (*part).to_owned(),
                why: "cannot be part of a sysctl's path",
            });
        }
        path.push(part);
    }
    Ok(path)
}

/// `net/<family>/conf/<link>/<key>`; the family is `ipv4` or `ipv6`.
///
/// # Errors
/// As [`path`].
pub fn conf(family: &str, link: &str, key: &str) -> Result<PathBuf> {
    path(&["net", family, "conf", link, key])
}

/// Reads a setting of the namespace the thread stands in, without the final newline.
///
/// # Errors
/// [`Error::Io`] naming the file; its [`is_not_found`](Error::is_not_found) tells that the kernel has no such setting.
pub fn read(path: &Path) -> Result<String> {
    refuse_if_stranded(path)?;
    let text = fs::read_to_string(path).map_err(|source| failed("read", path, source))?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// Writes a setting of the namespace the thread stands in.
///
/// # Errors
/// As [`read`].
pub fn write(path: &Path, value: &str) -> Result<()> {
    refuse_if_stranded(path)?;
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
        .map_err(|source| failed("write", path, source))
}

/// Writes a setting unless it has the value already, so that an unprivileged or read-only `/proc/sys` does no harm where
/// nothing needs to change. Tells whether it wrote.
///
/// # Errors
/// As [`write`].
pub fn ensure(path: &Path, value: &str) -> Result<bool> {
    if read(path)? == value {
        return Ok(false);
    }
    write(path, value)?;
    Ok(true)
}

impl Handle {
    /// Reads one setting of this namespace. For several, use the functions of this module within [`Handle::inside`].
    ///
    /// # Errors
    /// As [`read`] and [`Handle::inside`].
    pub fn read_sysctl(&self, path: &Path) -> Result<String> {
        self.inside(|| read(path))?
    }

    /// Writes one setting of this namespace. For several, use the functions of this module within [`Handle::inside`].
    ///
    /// # Errors
    /// As [`write`] and [`Handle::inside`].
    pub fn write_sysctl(&self, path: &Path, value: &str) -> Result<()> {
        self.inside(|| write(path, value))?
    }
}

/// The settings of one link and address family, as `/proc/sys/net/ipv6/conf/eth0`.
///
/// The kernel keeps the directories of all namespaces in one list to be searched, so finding one takes longer the
/// more namespaces have been looked into. Here that is done once for all settings of the link.
#[derive(Debug)]
pub struct Conf {
    directory: File,
    path: PathBuf,
}

impl Conf {
    /// Those of the namespace the thread stands in; it must still stand there when they are used.
    ///
    /// # Errors
    /// As [`path`]; [`is_not_found`](Error::is_not_found) if there is no such link or the kernel lacks the family.
    pub fn open(family: &str, link: &str) -> Result<Self> {
        let path = path(&["net", family, "conf", link])?;
        refuse_if_stranded(&path)?;
        let directory = fs::OpenOptions::new()
            .read(true)
            .custom_flags((OFlag::O_PATH | OFlag::O_DIRECTORY).bits())
            .open(&path)
            .map_err(|source| failed("open", &path, source))?;
        Ok(Self { directory, path })
    }

    /// Writes a setting.
    ///
    /// # Errors
    /// As [`write`].
    pub fn write(&self, key: &str, value: &str) -> Result<()> {
        self.writer(key)?.write(value)
    }

    /// Writes a setting unless it has the value already.
    ///
    /// # Errors
    /// As [`ensure`].
    pub fn ensure(&self, key: &str, value: &str) -> Result<()> {
        let path = self.path.join(key);
        let mut text = String::new();
        self.file(key, OFlag::O_RDONLY)
            .and_then(|mut file| file.read_to_string(&mut text))
            .map_err(|source| failed("read", &path, source))?;
        if text.trim_end_matches('\n') == value {
            return Ok(());
        }
        self.write(key, value)
    }

    /// A setting to be written later, wherever the thread stands then.
    ///
    /// # Errors
    /// As [`write`].
    pub fn writer(&self, key: &str) -> Result<Writer> {
        let path = self.path.join(key);
        match self.file(key, OFlag::O_WRONLY) {
            Ok(file) => Ok(Writer { file, path }),
            Err(source) => Err(failed("write", &path, source)),
        }
    }

    fn file(&self, key: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_CLOEXEC;
        Ok(openat(&self.directory, key, flags, Mode::empty())?.into())
    }
}

/// One setting of the namespace in which it was opened.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
}

impl Writer {
    /// Writes the setting.
    ///
    /// # Errors
    /// As the function [`write`].
    pub fn write(&mut self, value: &str) -> Result<()> {
        self.file
            .write_all(value.as_bytes())
            .map_err(|source| failed("write", &self.path, source))
    }
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> Error {
    Error::Io {
        what,
        object: path.display().to_string(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_in_names_stay_dots() {
        let path = conf("ipv6", "eth0.100", "accept_ra").unwrap();
        assert_eq!(
            path,
            Path::new("/proc/sys/net/ipv6/conf/eth0.100/accept_ra")
        );
    }

    #[test]
    fn parts_cannot_leave_the_tree() {
        for part in ["", ".", "..", "../../etc", "a/b", "a\0"] {
            conf("ipv4", part, "forwarding").unwrap_err();
        }
    }
}
