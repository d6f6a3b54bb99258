//! Network namespaces: naming one, and standing in one for the length of a closure.

use std::cell::Cell;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{OFlag, open};
use nix::sched::{CloneFlags, setns};
use nix::sys::stat::{Mode, fstat};
use nix::sys::statfs::{FsType, statfs};

use crate::error::{Error, Result};
use crate::sys;

/// `NSFS_MAGIC` and `PROC_SUPER_MAGIC` (linux/magic.h): where namespace files live now, and lived before Linux 3.19.
const NAMESPACE_FILESYSTEMS: [FsType; 2] = [FsType(0x6e73_6673), FsType(0x9fa0)];

/// The calling thread's own namespace.
const OWN: &str = "/proc/thread-self/ns/net";

thread_local! {
    /// Set once this thread failed to come back to its own namespace.
    static STRANDED: Cell<bool> = const { Cell::new(false) };
}

/// An open network namespace. It stays alive as long as this value or a clone of it does, whatever happens to its path.
#[derive(Debug, Clone)]
pub struct Netns {
    file: Arc<OwnedFd>,
    path: PathBuf,
    identity: (u64, u64),
}

impl Netns {
    /// Opens the namespace at `path`.
    ///
    /// # Errors
    /// [`Error::NetnsGone`] if nothing is there, [`Error::NotNetns`] if it is something else than a network namespace.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        // Looked at before it is opened: opening a FIFO blocks, and opening a device may do anything.
        let kind = statfs(path)
            .map_err(|errno| failed("open", path, errno))?
            .filesystem_type();
        if !NAMESPACE_FILESYSTEMS.contains(&kind) {
            return Err(Error::NotNetns {
                path: path.to_owned(),
                why: format!("unknown FS magic on {path:?}: {:x}", kind.0),
            });
        }
        Self::open_file(path)
    }

    /// Opens the namespace the calling thread stands in.
    ///
    /// # Errors
    /// As [`Netns::open`]; also if `/proc` is not mounted.
    pub fn current() -> Result<Self> {
        refuse_if_stranded(Path::new(OWN))?;
        Self::open_file(Path::new(OWN))
    }

    fn open_file(path: &Path) -> Result<Self> {
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let file = open(path, flags, Mode::empty()).map_err(|errno| failed("open", path, errno))?;
        match sys::namespace_type(&file) {
            Ok(kind) if kind == CloneFlags::CLONE_NEWNET.bits() => {}
            Ok(kind) => {
                let why = format!("it is a namespace of another kind ({kind:#x})");
                return Err(Error::NotNetns {
                    path: path.to_owned(),
                    why,
                });
            }
            Err(Errno::ENOTTY) => {
                let why = "it is no namespace file".to_owned();
                return Err(Error::NotNetns {
                    path: path.to_owned(),
                    why,
                });
            }
            Err(errno) => return Err(failed("inspect", path, errno)),
        }
        let stat = fstat(&file).map_err(|errno| failed("inspect", path, errno))?;
        Ok(Self {
            file: Arc::new(file),
            path: path.to_owned(),
            identity: (stat.st_dev, stat.st_ino),
        })
    }

    /// The path it was opened by, untouched.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether both are the same namespace, by device and inode, however they are spelled.
    #[must_use]
    pub fn same_as(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Runs `body` on this thread while it stands in this namespace, and comes back.
    ///
    /// Only the calling thread moves, so this is sound in a multi-threaded program. A panic in `body` also comes back.
    ///
    /// # Errors
    /// If the namespace cannot be entered (`body` has not run then), or, as [`Error::Stranded`], if the thread cannot
    /// come back; from then on nothing in this crate runs on that thread.
    pub fn run<T>(&self, body: impl FnOnce() -> T) -> Result<T> {
        let home = Self::current()?;
        if home.same_as(self) {
            return Ok(body());
        }
        setns(&*self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|errno| failed("enter", &self.path, errno))?;
        let visit = Visit {
            home: Some(&home),
            place: self,
        };
        let value = body();
        visit.end()?;
        Ok(value)
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// The way back: taken by [`Visit::end`], or on unwinding.
struct Visit<'a> {
    home: Option<&'a Netns>,
    place: &'a Netns,
}

impl Visit<'_> {
    fn end(mut self) -> Result<()> {
        self.go_home().map_err(|errno| Error::Stranded {
            path: self.place.path.clone(),
            errno,
        })
    }

    fn go_home(&mut self) -> nix::Result<()> {
        let Some(home) = self.home.take() else {
            return Ok(());
        };
        // Everything that is still to be done, undoing included, depends on it; and the kernel may be short of memory for a
        // moment only.
        let once_more = |_| setns(&*home.file, CloneFlags::CLONE_NEWNET);
        let back = setns(&*home.file, CloneFlags::CLONE_NEWNET).or_else(once_more);
        STRANDED.set(back.is_err());
        back
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // An error is remembered in STRANDED.
        let _ = self.go_home();
    }
}

/// Fails on a thread that stands in a namespace it should have left.
pub(crate) fn refuse_if_stranded(path: &Path) -> Result<()> {
    if STRANDED.get() {
        Err(Error::Stranded {
            path: path.to_owned(),
            errno: Errno::EINVAL,
        })
    } else {
        Ok(())
    }
}

fn failed(what: &'static str, path: &Path, errno: Errno) -> Error {
    match errno {
        // Nothing can be at a path that leads through a file, in a circle, or beyond what the system takes for one.
        Errno::ENOENT | Errno::ENOTDIR | Errno::ELOOP | Errno::ENAMETOOLONG => Error::NetnsGone {
            path: path.to_owned(),
        },
        _ => Error::Netns {
            what,
            path: path.to_owned(),
            errno,
        },
    }
}
