//! The directory: reading, creating and removing single files so that each appears whole or not at all.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::statfs::{self, statfs};
use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, access};

use crate::error::{Error, at};
use crate::lease::Holder;

/// What is being written, before it gets its name. Under the lock there is one at most.
const NEW_FILE: &str = ".ferrule-new";

/// Longer files are no leases, counters or markers. A container's id comes in a variable of the environment, which may have
/// 128 KiB (`MAX_ARG_STRLEN`, linux/binfmts.h).
const MAX_CONTENT: u64 = 128 << 10;

/// One network's directory.
#[derive(Debug, Clone)]
pub(crate) struct Dir {
    path: PathBuf,
    sync: bool,
}

impl Dir {
    /// With `sync`, files are on the disk before they count as written.
    pub(crate) fn new(path: &Path, sync: bool) -> Self {
        Self {
            path: path.to_owned(),
            sync,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory and its parents, mode 0755.
    pub(crate) fn create(&self) -> Result<(), Error> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o755)
            .create(&self.path)
            .map_err(at("create directory", &self.path))
    }

    /// A lease's file: IPv6 addresses keep their colons.
    pub(crate) fn lease(&self, address: IpAddr) -> PathBuf {
        self.path.join(address.to_string())
    }

    /// Writes a lease unless the address is taken; `false` if it is.
    pub(crate) fn create_lease(&self, address: IpAddr, content: &str) -> Result<bool, Error> {
        let path = self.lease(address);
        let new = self.write_new(content.as_bytes())?;
        let linked = match fs::hard_link(&new, &path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(e) if has_no_links(&e) => return self.move_in(&new, &path),
            Err(e) => Err(at("create lease file", &path)(e)),
        };
        let removed = fs::remove_file(&new).map_err(at("remove", &new));
        let linked = linked?;
        if let Err(e) = removed {
            if linked {
                let _ = fs::remove_file(&path);
            }
            self.remove_leftover();
            return Err(e);
        }
        self.sync_dir()?;
        Ok(linked)
    }

    /// The way without hard links: under the lock nobody who respects it can come between the two steps.
    fn move_in(&self, new: &Path, path: &Path) -> Result<bool, Error> {
        if path.symlink_metadata().is_ok() {
            fs::remove_file(new).map_err(at("remove", new))?;
            return Ok(false);
        }
        fs::rename(new, path).map_err(at("create lease file", path))?;
        self.sync_dir()?;
        Ok(true)
    }

    /// Removes a lease; one that is gone already is no error.
    pub(crate) fn remove_lease(&self, address: IpAddr) -> Result<(), Error> {
        let path = self.lease(address);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(at("remove lease file", &path)(e)),
            _ => Ok(()),
        }
    }

    /// What a lease's file says; `None` if there is no such file.
    pub(crate) fn read_lease(&self, address: IpAddr) -> Result<Option<Holder>, Error> {
        let path = self.lease(address);
        match read(&path) {
            Ok(content) => Ok(Some(content.map_or(Holder::Foreign, |c| Holder::parse(&c)))),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(at("read lease file", &path)(e)),
        }
    }

    /// When a lease was last written.
    pub(crate) fn written(&self, address: IpAddr) -> Option<SystemTime> {
        self.lease(address)
            .symlink_metadata()
            .and_then(|m| m.modified())
            .ok()
    }

    /// The content of one of our own small files; `None` if it is absent or not a small regular file.
    pub(crate) fn read_own(&self, name: &str) -> Option<Vec<u8>> {
        read(&self.path.join(name)).ok().flatten()
    }

    /// Replaces a small file as a whole.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.path.join(name);
        let new = self.write_new(content)?;
        fs::rename(&new, &path).map_err(|e| {
            let _ = fs::remove_file(&new);
            at("write", &path)(e)
        })?;
        self.sync_dir()
    }

    /// Overwrites a small file in place. Half-way it may hold something else, so this is for what is no more than a
    /// hint; it spares the file system the flush that many of them add to replacing a file.
    pub(crate) fn overwrite(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.path.join(name);
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits())
            .open(&path)
            .and_then(|file| {
                file.write_all_at(content, 0)?;
                file.set_len(content.len() as u64)
            });
        written.map_err(at("write", &path))
    }

    /// The addresses that have a file. Whatever else lies in the directory is not looked at, sub-directories least of all.
    pub(crate) fn addresses(&self) -> Result<Vec<IpAddr>, Error> {
        let failed = |e| at("read directory", &self.path)(e);
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let Some(name) = name.to_str() else { continue };
            if let Ok(address) = name.parse::<IpAddr>()
                && address.to_canonical().to_string() == name
            {
                found.push(address);
            }
        }
        Ok(found)
    }

    /// Removes what a killed command may have left half-written.
    pub(crate) fn remove_leftover(&self) {
        let _ = fs::remove_file(self.path.join(NEW_FILE));
    }

    fn write_new(&self, content: &[u8]) -> Result<PathBuf, Error> {
        let path = self.path.join(NEW_FILE);
        let open = || {
            OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)
        };
        let opened = match open() {
            // Left by a crash.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(&path).and_then(|()| open())
            }
            other => other,
        };
        let mut file = opened.map_err(at("create", &path))?;
        let written = file.write_all(content).and_then(|()| match self.sync {
            true => file.sync_all(),
            false => Ok(()),
        });
        written.map_err(|e| {
            let _ = fs::remove_file(&path);
            at("write", &path)(e)
        })?;
        Ok(path)
    }

    fn sync_dir(&self) -> Result<(), Error> {
        if !self.sync {
            return Ok(());
        }
        File::open(&self.path)
            .and_then(|dir| dir.sync_all())
            .map_err(at("write out", &self.path))
    }
}

/// Opens for reading without ever waiting (a FIFO) or following a link.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits())
        .open(path)
}

/// Reads a small regular file; `None` for anything else that has the name.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(e),
        Err(e) => match path.symlink_metadata() {
            Ok(meta) if !meta.is_file() => return Ok(None),
            _ => return Err(e),
        },
    };
    // Nearly every file fits, and a short read of a regular file is its end.
    let mut buffer = [0; 256];
    let outcome = file.read(&mut buffer).and_then(|n| {
        let mut content = buffer.get(..n).unwrap_or_default().to_vec();
        if n == 0 && !file.metadata()?.is_file() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if n == buffer.len() {
            file.take(MAX_CONTENT).read_to_end(&mut content)?;
        }
        Ok(content)
    });
    match outcome {
        Ok(content) if content.len() as u64 <= MAX_CONTENT => Ok(Some(content)),
        Ok(_) => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::IsADirectory => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether a lease could be written into `path`, which need not exist yet: permissions, a read-only file system, space.
///
/// # Errors
/// [`Error::Io`] with what stands in the way.
pub fn check_writable(path: &Path) -> Result<(), Error> {
    let existing = path.ancestors().find(|p| p.symlink_metadata().is_ok());
    let existing = match existing {
        Some(existing) => existing,
        None => Path::new("."),
    };
    let failed = |e: Errno| at("write into", existing)(e.into());
    if !existing.is_dir() {
        return Err(failed(Errno::ENOTDIR));
    }
    // Root may do anything there, but files cannot be made.
    let kernels = [statfs::PROC_SUPER_MAGIC, statfs::SYSFS_MAGIC];
    let kind = statfs(existing).map_err(failed)?.filesystem_type();
    if kernels.contains(&kind) {
        return Err(failed(Errno::EOPNOTSUPP));
    }
    access(existing, AccessFlags::W_OK | AccessFlags::X_OK).map_err(failed)?;
    let space = statvfs(existing).map_err(failed)?;
    let no_blocks = space.blocks() > 0 && space.blocks_available() == 0;
    let no_inodes = space.files() > 0 && space.files_available() == 0;
    if no_blocks || no_inodes {
        return Err(failed(Errno::ENOSPC));
    }
    Ok(())
}

fn has_no_links(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
    ) || error.raw_os_error() == Some(Errno::ENOSYS as i32)
}
