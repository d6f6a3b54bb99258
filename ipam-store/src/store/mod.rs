//! The store itself: one open directory under its lock.

mod allocate;
mod free;
mod report;

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;

use crate::boot::Boot;
use crate::error::{Error, at};
use crate::files::Dir;
use crate::index::Unusable;
use crate::lease::{Holder, Owner};
use crate::leases::Leases;
use crate::lock;

pub use allocate::Allocation;
pub use report::Usage;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long to wait for the lock.
    pub wait: Duration,
    /// The present boot, if leases of earlier ones belong to nobody; `None` keeps every lease.
    pub reclaim: Option<Boot>,
    /// Whether leases must be on the disk when an operation returns. Without it a power failure may undo the last
    /// ones, which only matters to leases that outlive a boot.
    pub sync: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(10),
            reclaim: None,
            sync: false,
        }
    }
}

/// A directory of leases, locked until it is dropped.
#[derive(Debug)]
pub struct Store {
    dir: Dir,
    reclaim: Option<Boot>,
    leases: Option<Leases>,
    /// Which sweep the leases have seen, for the index.
    swept: String,
    /// Whether the directory has changed since the index was opened.
    changed: bool,
    lock: Option<File>,
}

impl Store {
    /// Opens a directory, making it if needed, and waits for its lock.
    ///
    /// # Errors
    /// [`Error::Locked`] when the lock is not free in time, [`Error::Io`].
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let dir = Dir::new(path, options.sync);
        let file = match lock::open_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                dir.create()?;
                lock::open_file(path)
            }
            other => other,
        };
        let file = file.map_err(at("open", &path.join(lock::LOCK_FILE)))?;
        let lock = lock::acquire(file, path, options.wait)?;
        Ok(Self::with(dir, options, Some(lock)))
    }

    /// Like [`Store::open`], but `None` when the directory does not exist. One that cannot be written to (so that no
    /// lock file can be made in it) is opened without a lock.
    ///
    /// # Errors
    /// As for [`Store::open`].
    pub fn open_existing(path: &Path, options: &Options) -> Result<Option<Self>, Error> {
        let dir = Dir::new(path, options.sync);
        let lock = match lock::open_file(path) {
            Ok(file) => Some(lock::acquire(file, path, options.wait)?),
            Err(e) if cannot_exist(&e) => return Ok(None),
            Err(e) if cannot_write(&e) => None,
            Err(e) => return Err(at("open", &path.join(lock::LOCK_FILE))(e)),
        };
        Ok(Some(Self::with(dir, options, lock)))
    }

    fn with(dir: Dir, options: &Options, lock: Option<File>) -> Self {
        Self {
            dir,
            reclaim: options.reclaim.clone(),
            leases: None,
            swept: String::new(),
            changed: false,
            lock,
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The owner's addresses; those in the early format of its container if it has no others.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn find(&mut self, owner: &Owner) -> Result<Vec<IpAddr>, Error> {
        let (mut own, early): (Vec<_>, Vec<_>) = self
            .leases_of(owner)?
            .into_iter()
            .partition(|(_, holder)| holder.is(owner));
        if own.is_empty() {
            own = early;
        }
        Ok(own.into_iter().map(|(address, _)| address).collect())
    }

    /// All leases of the owner in either format, as their files say.
    fn leases_of(&mut self, owner: &Owner) -> Result<Vec<(IpAddr, Holder)>, Error> {
        loop {
            let addresses = self.ask(|leases| leases.of(owner))?;
            let mut found = Vec::with_capacity(addresses.len());
            for address in &addresses {
                match self.dir.read_lease(*address)? {
                    Some(holder) if holder.is(owner) || holder.is_id_of(owner) => {
                        found.push((*address, holder));
                    }
                    _ => {}
                }
            }
            let indexed = self.leases.as_ref().is_some_and(|l| !l.is_scan());
            if found.len() == addresses.len() || !indexed {
                return Ok(found);
            }
            self.distrust_index()?;
        }
    }

    /// Asks the index, or the leases themselves where it cannot be used.
    fn ask<T>(
        &mut self,
        question: impl Fn(&mut Leases) -> Result<T, Unusable>,
    ) -> Result<T, Error> {
        if self.leases.is_none() {
            let leases = Leases::open(&self.dir)?;
            leases.swept().clone_into(&mut self.swept);
            if leases.is_scan() && self.lock.is_some() {
                self.dir.remove_leftover();
            }
            self.leases = Some(leases);
        }
        if let Some(Ok(answer)) = self.leases.as_mut().map(&question) {
            return Ok(answer);
        }
        let leases = self.distrust_index()?;
        question(leases).map_err(|Unusable| {
            at("read directory", self.dir.path())(io::ErrorKind::InvalidData.into())
        })
    }

    /// Reads the leases themselves: the index says something else than a file, or is damaged.
    fn distrust_index(&mut self) -> Result<&mut Leases, Error> {
        let leases = Leases::scan(&self.dir)?;
        self.swept.clear();
        Ok(self.leases.insert(leases))
    }

    /// Removes a lease file that `holder` has.
    fn remove(&mut self, address: IpAddr, holder: &Holder) -> Result<(), Error> {
        self.changed = true;
        self.dir.remove_lease(address)?;
        if let Some(leases) = &mut self.leases
            && leases.remove(address, holder).is_err()
        {
            self.distrust_index()?;
        }
        Ok(())
    }
}

/// Writes the index before the lock is given back. It is a cache: where it cannot be written, the next command does
/// without.
impl Drop for Store {
    fn drop(&mut self) {
        let (Some(leases), Some(_)) = (&mut self.leases, &self.lock) else {
            return;
        };
        if self.changed || leases.is_scan() {
            let _ = leases.commit(&self.dir, &self.swept);
        }
    }
}

/// Whether nothing is at a path, nor can be: it may lead through a file, in a circle, or be longer than paths are.
fn cannot_exist(error: &io::Error) -> bool {
    let never = [Errno::ENOTDIR, Errno::ELOOP, Errno::ENAMETOOLONG];
    error.kind() == io::ErrorKind::NotFound
        || error
            .raw_os_error()
            .is_some_and(|raw| never.contains(&Errno::from_raw(raw)))
}

fn cannot_write(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied
            | io::ErrorKind::ReadOnlyFilesystem
            | io::ErrorKind::StorageFull
            | io::ErrorKind::QuotaExceeded
    )
}

#[cfg(test)]
mod tests;
