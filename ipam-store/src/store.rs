//! The store itself: one open directory under its lock.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use ipnetwork::IpNetwork;

use crate::boot::{BOOT_FILE, Boot, marked};
use crate::error::{Error, at};
use crate::files::Dir;
use crate::lease::{Holder, Owner};
use crate::lock;
use crate::order::{first_free, walk};
use crate::range::{Range, ip};
use crate::rangeset::RangeSet;
use crate::snapshot::Snapshot;

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

/// An address handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// The address with its subnet's prefix.
    pub address: IpNetwork,
    /// Its range's gateway.
    pub gateway: IpAddr,
}

/// How full a range set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Addresses of the set that have a lease file.
    pub leases: usize,
    /// Whether an address is left, or one that belongs to nobody.
    pub free: bool,
}

/// A directory of leases, locked until it is dropped.
#[derive(Debug)]
pub struct Store {
    dir: Dir,
    reclaim: Option<Boot>,
    leases: Option<Snapshot>,
    _lock: Option<File>,
}

impl Store {
    /// Opens a directory, making it if needed, and waits for its lock.
    ///
    /// # Errors
    /// [`Error::Locked`] when the lock is not free in time, [`Error::Io`].
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let dir = Dir::new(path, options.sync);
        dir.create()?;
        let file = lock::open_file(path).map_err(at("open", &path.join(lock::LOCK_FILE)))?;
        let lock = lock::acquire(file, path, options.wait)?;
        Ok(Self::with(dir, options, Some(lock)))
    }

    /// Like [`Store::open`], but `None` when the directory does not exist. One that cannot be written to (so that no
    /// lock file can be made in it) is opened without a lock.
    ///
    /// # Errors
    /// As for [`Store::open`].
    pub fn open_existing(path: &Path, options: &Options) -> Result<Option<Self>, Error> {
        match path.metadata() {
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(at("open directory", path)(e)),
        }
        let dir = Dir::new(path, options.sync);
        let lock = match lock::open_file(path) {
            Ok(file) => Some(lock::acquire(file, path, options.wait)?),
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
            _lock: lock,
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Frees what belongs to nobody: leases of an earlier boot (see [`Options::reclaim`]) and files that a crash left
    /// empty. Returns the freed addresses.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn reclaim(&mut self) -> Result<Vec<IpAddr>, Error> {
        let new_boot = self.reclaim.clone().filter(|boot| {
            let marker = self.dir.read_own(BOOT_FILE);
            marker.as_deref().and_then(marked) != Some(&boot.id)
        });
        let mut freed = Vec::new();
        let addresses: Vec<(IpAddr, bool)> = self
            .leases()?
            .iter()
            .map(|(address, holder)| (address, *holder == Holder::Torn))
            .collect();
        for (address, torn) in addresses {
            if torn || self.is_stale(address) {
                self.remove(address)?;
                freed.push(address);
            }
        }
        if let Some(boot) = new_boot {
            self.dir.replace(BOOT_FILE, boot.marker().as_bytes())?;
        }
        Ok(freed)
    }

    /// Whether the lease of `address` is of an earlier boot and so belongs to nobody.
    #[must_use]
    pub fn is_stale(&self, address: IpAddr) -> bool {
        let Some(boot) = &self.reclaim else {
            return false;
        };
        let marker = self.dir.read_own(BOOT_FILE);
        let other_boot = marker
            .as_deref()
            .and_then(marked)
            .is_some_and(|id| id != boot.id);
        other_boot
            && self
                .dir
                .written(address)
                .is_some_and(|written| written < boot.since)
    }

    /// The owner's addresses; those in the early format of its container if it has no others.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn find(&mut self, owner: &Owner) -> Result<Vec<IpAddr>, Error> {
        let (own, early) = self.leases()?.of(owner);
        Ok(if own.is_empty() { early } else { own })
    }

    /// Hands out one address of each set, or none at all. A requested address is used for the first set that contains
    /// it; the others get the next free one after the last reserved.
    ///
    /// # Errors
    /// [`Error::Duplicate`] when the owner has an address of one of the sets, [`Error::NotInRanges`],
    /// [`Error::Gateway`], [`Error::InUse`], [`Error::Exhausted`], [`Error::Io`].
    pub fn allocate(
        &mut self,
        owner: &Owner,
        sets: &[RangeSet],
        requested: &[IpAddr],
    ) -> Result<Vec<Allocation>, Error> {
        self.refuse_duplicate(owner, sets)?;
        let wanted = assign(sets, requested)?;
        let mut done = Vec::with_capacity(sets.len());
        for (index, (set, wanted)) in sets.iter().zip(wanted).enumerate() {
            let taken = match wanted {
                Some((address, range)) => self.take_requested(owner, address, range),
                None => self.take_next(owner, index, set),
            };
            match taken {
                Ok(allocation) => done.push(allocation),
                Err(e) => return Err(self.roll_back(&done, e)),
            }
        }
        for (index, allocation) in done.iter().enumerate() {
            let text = allocation.address.ip().to_string();
            if let Err(e) = self.dir.replace(&counter(index), text.as_bytes()) {
                return Err(self.roll_back(&done, e));
            }
        }
        Ok(done)
    }

    /// Takes back what one [`Store::allocate`] gave, and nothing else of the owner's.
    ///
    /// # Errors
    /// The first [`Error::Io`]; the rest is tried all the same.
    pub fn withdraw(&mut self, owner: &Owner, allocations: &[Allocation]) -> Result<(), Error> {
        let mut outcome = Ok(());
        for allocation in allocations {
            let address = allocation.address.ip();
            let removed = match self.dir.read_lease(address) {
                Ok(Some(holder)) if holder.is(owner) => self.remove(address),
                other => other.map(drop),
            };
            outcome = outcome.and(removed);
        }
        outcome
    }

    /// Frees the owner's addresses, whatever the sets are now, and returns them. Leases in the early format are freed
    /// only if there is no other: they do not say for which interface they are.
    ///
    /// # Errors
    /// The first [`Error::Io`]; the rest is tried all the same.
    pub fn release(&mut self, owner: &Owner) -> Result<Vec<IpAddr>, Error> {
        let addresses = self.find(owner)?;
        self.remove_all(addresses)
    }

    /// Frees every lease whose owner is not listed, and returns the addresses.
    ///
    /// # Errors
    /// The first [`Error::Io`]; the rest is tried all the same.
    pub fn collect(&mut self, valid: &[Owner]) -> Result<Vec<IpAddr>, Error> {
        let owners: std::collections::HashSet<&Owner> = valid.iter().collect();
        let ids: std::collections::HashSet<&str> = valid.iter().map(Owner::container_id).collect();
        let stale = |holder: &Holder| match holder {
            Holder::Owner(owner) => !owners.contains(owner),
            Holder::IdOnly(id) => !ids.contains(id.as_str()),
            Holder::Torn => true,
            Holder::Foreign => false,
        };
        let addresses = self
            .leases()?
            .iter()
            .filter(|(_, holder)| stale(holder))
            .map(|(address, _)| address)
            .collect();
        self.remove_all(addresses)
    }

    /// How full each set is.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn usage(&mut self, sets: &[RangeSet]) -> Result<Vec<Usage>, Error> {
        let mut usages = Vec::with_capacity(sets.len());
        for set in sets {
            let leases = self.leases()?;
            let mut taken: Vec<IpAddr> = leases.iter().map(|(address, _)| address).collect();
            taken.retain(|address| set.range_of(*address).is_some());
            let next_free = |from, to| Ok::<_, Error>(leases.next_free(from, to));
            let free = first_free(&walk(set, None), next_free)?.is_some();
            usages.push(Usage {
                leases: taken.len(),
                free: free || taken.iter().any(|address| self.is_stale(*address)),
            });
        }
        Ok(usages)
    }

    /// The `count` leases that were written longest ago, with their holders.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn oldest(&mut self, count: usize) -> Result<Vec<(IpAddr, Holder)>, Error> {
        let dir = self.dir.clone();
        let mut leases: Vec<(SystemTime, IpAddr, Holder)> = self
            .leases()?
            .iter()
            .filter_map(|(address, holder)| Some((dir.written(address)?, address, holder.clone())))
            .collect();
        leases.sort_by_key(|(written, address, _)| (*written, *address));
        leases.truncate(count);
        Ok(leases.into_iter().map(|(_, a, h)| (a, h)).collect())
    }

    fn leases(&mut self) -> Result<&mut Snapshot, Error> {
        let loaded = match self.leases.take() {
            Some(leases) => leases,
            None => Snapshot::load(&self.dir)?,
        };
        Ok(self.leases.insert(loaded))
    }

    fn refuse_duplicate(&mut self, owner: &Owner, sets: &[RangeSet]) -> Result<(), Error> {
        let (own, early) = self.leases()?.of(owner);
        let of_sets = |address: &IpAddr| sets.iter().any(|s| s.range_of(*address).is_some());
        match own.into_iter().chain(early).find(of_sets) {
            None => Ok(()),
            Some(address) => Err(Error::Duplicate {
                address,
                owner: owner.clone(),
                file: self.dir.lease(address),
            }),
        }
    }

    fn take_requested(
        &mut self,
        owner: &Owner,
        address: IpAddr,
        range: &Range,
    ) -> Result<Allocation, Error> {
        if address == range.gateway() {
            return Err(Error::Gateway {
                address,
                subnet: range.subnet().to_string(),
            });
        }
        if self.take(owner, address)? {
            return Ok(allocation(address, range));
        }
        let holder = self.dir.read_lease(address)?;
        Err(Error::InUse {
            address,
            holder: holder.unwrap_or(Holder::Foreign),
            file: self.dir.lease(address),
        })
    }

    fn take_next(
        &mut self,
        owner: &Owner,
        index: usize,
        set: &RangeSet,
    ) -> Result<Allocation, Error> {
        let segments = walk(set, self.last_reserved(index));
        loop {
            let leases = self.leases()?;
            let found = first_free(&segments, |from, to| {
                Ok::<_, Error>(leases.next_free(from, to))
            })?;
            let Some((found, range)) = found else {
                return Err(Error::Exhausted {
                    index,
                    ranges: set.to_string(),
                    dir: self.dir.path().to_owned(),
                });
            };
            if self.take(owner, ip(found))? {
                return Ok(allocation(ip(found), range));
            }
            // Somebody who does not respect the lock has taken it meanwhile.
            self.leases()?.insert(ip(found), Holder::Foreign);
        }
    }

    fn take(&mut self, owner: &Owner, address: IpAddr) -> Result<bool, Error> {
        let taken = self.dir.create_lease(address, &owner.content())?;
        if taken {
            self.leases()?.insert(address, Holder::Owner(owner.clone()));
        }
        Ok(taken)
    }

    /// The last address given for the set of this index, if the counter file is in order.
    fn last_reserved(&self, index: usize) -> Option<IpAddr> {
        let content = self.dir.read_own(&counter(index))?;
        std::str::from_utf8(&content).ok()?.parse().ok()
    }

    fn roll_back(&mut self, done: &[Allocation], cause: Error) -> Error {
        for allocation in done {
            // The cause is what the user must see; what is left here is found by the next DEL.
            let _ = self.remove(allocation.address.ip());
        }
        cause
    }

    fn remove_all(&mut self, addresses: Vec<IpAddr>) -> Result<Vec<IpAddr>, Error> {
        let mut outcome = Ok(());
        for address in &addresses {
            let removed = self.remove(*address);
            outcome = outcome.and(removed);
        }
        outcome.map(|()| addresses)
    }

    fn remove(&mut self, address: IpAddr) -> Result<(), Error> {
        self.dir.remove_lease(address)?;
        self.leases()?.remove(address);
        Ok(())
    }
}

/// Gives each set the first requested address that it contains.
fn assign<'a>(
    sets: &'a [RangeSet],
    requested: &[IpAddr],
) -> Result<Vec<Option<(IpAddr, &'a Range)>>, Error> {
    let mut pending: Vec<IpAddr> = requested.iter().map(IpAddr::to_canonical).collect();
    let mut wanted = Vec::with_capacity(sets.len());
    for set in sets {
        let fitting = pending
            .iter()
            .enumerate()
            .find_map(|(i, address)| Some((i, *address, set.range_of(*address)?)));
        wanted.push(fitting.map(|(i, address, range)| {
            pending.remove(i);
            (address, range)
        }));
    }
    if pending.is_empty() {
        Ok(wanted)
    } else {
        Err(Error::NotInRanges(pending))
    }
}

fn allocation(address: IpAddr, range: &Range) -> Allocation {
    Allocation {
        // The prefix comes from a valid subnet of the same family.
        address: IpNetwork::new(address, range.subnet().prefix()).unwrap_or(range.subnet()),
        gateway: range.gateway(),
    }
}

/// Name of the file that remembers the last address given for a set.
fn counter(index: usize) -> String {
    format!("last_reserved_ip.{index}")
}

fn cannot_write(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
    )
}
