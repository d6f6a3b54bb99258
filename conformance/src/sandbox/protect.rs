//! The machine's own files, read-only.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use nix::mount::{MsFlags, mount};

use super::mounts::bind;
use crate::error::{Context, Result};

/// Directories that stay writable, separated by colons.
const WRITABLE: &str = "SANDBOX_WRITABLE";

/// What the sandbox made private, and the kernel's own file systems.
const OPEN: [&str; 7] = [
    "/run",
    "/var/run",
    "/var/lib/cni",
    "/etc/cni",
    "/proc",
    "/sys",
    "/dev",
];

/// Makes every other mount read-only in this mount namespace.
///
/// A mount that cannot be changed (it is covered by another one, or of a kind that refuses) is left
/// as it is: this guards against mistakes of what runs inside, not against malice.
pub fn seal() -> Result<()> {
    let writable: Vec<PathBuf> = std::env::var_os(WRITABLE)
        .map(|list| std::env::split_paths(&list).collect())
        .unwrap_or_default();
    for directory in &writable {
        // As a mount of its own it is not covered by what is done to the one it lies in.
        bind(directory, directory)?;
    }
    let table = "/proc/self/mountinfo";
    let text = fs::read(table).doing(|| format!("read {table}"))?;
    for (point, options) in text.split(|byte| *byte == b'\n').filter_map(mount_point) {
        let open = OPEN.iter().any(|open| point.starts_with(open));
        if !open && !writable.contains(&point) {
            let flags = MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY | options;
            let _ = mount(None::<&str>, &point, None::<&str>, flags, None::<&str>);
        }
    }
    Ok(())
}

/// Mount point and lasting options of a line of proc_pid_mountinfo(5).
fn mount_point(line: &[u8]) -> Option<(PathBuf, MsFlags)> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let point = unescape(fields.next()?);
    let options = fields.next()?.split(|byte| *byte == b',');
    // In a user namespace these are locked: they have to be given again.
    let flags = options.fold(MsFlags::empty(), |flags, option| {
        flags
            | match option {
                b"nosuid" => MsFlags::MS_NOSUID,
                b"nodev" => MsFlags::MS_NODEV,
                b"noexec" => MsFlags::MS_NOEXEC,
                b"noatime" => MsFlags::MS_NOATIME,
                b"nodiratime" => MsFlags::MS_NODIRATIME,
                b"relatime" => MsFlags::MS_RELATIME,
                _ => MsFlags::empty(),
            }
    });
    Some((point, flags))
}

/// Blanks and the like are written as a backslash and three octal digits.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let octal = tail.get(..3).filter(|_| *first == b'\\');
        let octal = octal.and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(3..).unwrap_or_default();
            }
            None => bytes.push(*first),
        }
    }
    Path::new(&OsString::from_vec(bytes)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_mount_table_is_understood() {
        let line =
            b"36 35 98:0 /a /mnt/with\\040blank rw,nosuid,noatime master:1 - ext3 /dev/root rw";
        let (point, flags) = mount_point(line).unwrap();
        assert_eq!(point, Path::new("/mnt/with blank"));
        assert_eq!(flags, MsFlags::MS_NOSUID | MsFlags::MS_NOATIME);
        assert!(mount_point(b"").is_none());
    }
}
