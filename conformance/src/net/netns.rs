//! Network namespaces: named ones, and the one a thread stands in.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::thread;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Context, Result};
use crate::sandbox::Sandbox;

const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace that is held open. A named one is taken down when this is dropped.
#[derive(Debug)]
pub struct Netns {
    file: File,
    path: PathBuf,
    named: bool,
}

impl Netns {
    /// Makes a namespace named like `ip netns add` would: a bind mount below `/run/netns`. Its
    /// loopback interface is down, as the kernel leaves it.
    ///
    /// # Errors
    /// When the name is taken or the kernel refuses.
    pub fn create(_sandbox: &Sandbox, name: &str) -> Result<Self> {
        let path = Path::new("/run/netns").join(name);
        let creating = || format!("create namespace {}", path.display());
        File::create_new(&path).doing(creating)?;
        on_new_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET).doing(creating)?;
            mount(
                Some(OWN),
                &path,
                None::<&str>,
                MsFlags::MS_BIND,
                None::<&str>,
            )
            .doing(creating)
        })?;
        let file = File::open(&path).doing(creating)?;
        Ok(Self {
            file,
            path,
            named: true,
        })
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// When `/proc` is not there.
    pub fn current() -> Result<Self> {
        Ok(Self {
            file: File::open(OWN).doing(|| format!("open {OWN}"))?,
            path: PathBuf::from("/proc/self/ns/net"),
            named: false,
        })
    }

    /// The namespace at a path.
    ///
    /// # Errors
    /// When nothing there can be opened.
    pub fn open(path: &Path) -> Result<Self> {
        Ok(Self {
            file: File::open(path).doing(|| format!("open {}", path.display()))?,
            path: path.to_owned(),
            named: false,
        })
    }

    /// The path to give to a plugin as `CNI_NETNS`.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The open namespace, to be handed to the kernel.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Runs `work` on a thread that stands in this namespace and waits for it.
    ///
    /// # Errors
    /// When the namespace cannot be entered, and what `work` returns.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
        on_new_thread(|| {
            setns(self.fd(), CloneFlags::CLONE_NEWNET)
                .doing(|| format!("enter {}", self.path.display()))?;
            work()
        })
    }
}

impl Drop for Netns {
    fn drop(&mut self) {
        if !self.named {
            return;
        }
        // Both may have been done by the code under test; the sandbox's end covers the rest.
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
        let _ = fs::remove_file(&self.path);
    }
}

fn on_new_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
