//! Private directories where plugins and their runtimes keep state.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};

use super::marker::PRIVATE_TMP;
use super::protect;
use crate::error::{Context, Result};

/// What the sandbox's resolver file says; lists with `resolvConf` read it.
const RESOLV_CONF: &str = "nameserver 192.0.2.53\nsearch example.test\n";

/// Where the original of a mirrored directory stands while it is copied.
const STAGE: &str = "/run/sandbox/stage";

/// Puts empty file systems over every directory in which a plugin or runtime leaves something.
pub fn furnish() -> Result<()> {
    let resolver = resolver_target();
    tmpfs(Path::new("/run"))?;
    for directory in ["/run/netns", "/run/lock", STAGE, PRIVATE_TMP] {
        fs::create_dir_all(directory).doing(|| format!("create {directory}"))?;
    }
    if !same_directory(Path::new("/run"), Path::new("/var/run")) {
        private(Path::new("/var/run"))?;
    }
    private(Path::new("/var/lib/cni"))?;
    private(Path::new("/etc/cni"))?;
    own_resolver(&resolver)?;
    fs::remove_dir(STAGE).doing(|| format!("remove {STAGE}"))?;
    protect::seal()
}

fn tmpfs(at: &Path) -> Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), at, Some("tmpfs"), flags, Some("mode=0755"))
        .doing(|| format!("mount a private {}", at.display()))
}

pub(super) fn bind(from: &Path, to: &Path) -> Result<()> {
    mount(
        Some(from),
        to,
        None::<&str>,
        MsFlags::MS_BIND | MsFlags::MS_REC,
        None::<&str>,
    )
    .doing(|| format!("bind {} to {}", from.display(), to.display()))
}

/// Makes `directory` private and empty without creating anything on the real file system: where it
/// does not exist, its nearest existing parent is replaced by a mirror in which it can be made.
fn private(directory: &Path) -> Result<()> {
    if !directory.is_dir() {
        if let Some(parent) = directory.ancestors().skip(1).find(|parent| parent.is_dir()) {
            mirror(parent)?;
        }
        fs::create_dir_all(directory).doing(|| format!("create {}", directory.display()))?;
    }
    tmpfs(directory)
}

/// Replaces a directory by a writable one that shows the same entries.
fn mirror(directory: &Path) -> Result<()> {
    let stage = Path::new(STAGE);
    bind(directory, stage)?;
    tmpfs(directory)?;
    let listing = || format!("list {}", directory.display());
    for entry in fs::read_dir(stage).doing(listing)? {
        let entry = entry.doing(listing)?;
        mirror_entry(&entry, &directory.join(entry.file_name()))?;
    }
    umount2(stage, MntFlags::MNT_DETACH).doing(|| format!("unmount {STAGE}"))
}

fn mirror_entry(entry: &fs::DirEntry, to: &Path) -> Result<()> {
    let from = entry.path();
    let kind = entry
        .file_type()
        .doing(|| format!("look at {}", from.display()))?;
    let creating = || format!("create {}", to.display());
    if kind.is_symlink() {
        let target = fs::read_link(&from).doing(|| format!("read {}", from.display()))?;
        return symlink(target, to).doing(creating);
    }
    if kind.is_dir() {
        fs::create_dir(to).doing(creating)?;
    } else {
        File::create(to).doing(creating)?;
    }
    bind(&from, to)
}

/// The file that `/etc/resolv.conf` finally names; on many hosts it lies below `/run`.
fn resolver_target() -> PathBuf {
    let file = PathBuf::from("/etc/resolv.conf");
    fs::canonicalize(&file).unwrap_or(file)
}

fn own_resolver(target: &Path) -> Result<()> {
    if target.starts_with("/run") {
        if let Some(parent) = target.parent() {
            fs::create_dir_all(parent).doing(|| format!("create {}", parent.display()))?;
        }
        return write_resolver(target);
    }
    let ours = Path::new("/run/sandbox/resolv.conf");
    write_resolver(ours)?;
    if fs::symlink_metadata(target).is_err() {
        mirror(Path::new("/etc"))?;
    } else if !target.exists() {
        // A dangling link: nothing can be bound over it, and the mirror made it replaceable.
        mirror(Path::new("/etc"))?;
        fs::remove_file(target).doing(|| format!("remove {}", target.display()))?;
    }
    match File::options().create_new(true).write(true).open(target) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(error).doing(|| format!("create {}", target.display()));
        }
        _ => {}
    }
    bind(ours, target)
}

fn write_resolver(file: &Path) -> Result<()> {
    fs::write(file, RESOLV_CONF).doing(|| format!("write {}", file.display()))
}

fn same_directory(one: &Path, other: &Path) -> bool {
    matches!((fs::canonicalize(one), fs::canonicalize(other)), (Ok(one), Ok(other)) if one == other)
}
