//! Handing out addresses.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

use super::Store;
use crate::error::Error;
use crate::lease::{Holder, Owner};
use crate::order::{Segment, first_free, walk};
use crate::range::{Range, ip};
use crate::rangeset::RangeSet;

/// An address handed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allocation {
    /// The address with its subnet's prefix.
    pub address: IpNetwork,
    /// Its range's gateway.
    pub gateway: IpAddr,
}

impl Allocation {
    fn new(address: IpAddr, range: &Range) -> Self {
        Self {
            // The prefix comes from a valid subnet of the same family.
            address: IpNetwork::new(address, range.subnet().prefix()).unwrap_or(range.subnet()),
            gateway: range.gateway(),
        }
    }
}

impl Store {
    /// Hands out one address of each set, or none at all. A requested address is used for the first set that contains
    /// it; the others get the next free one after the last reserved. Begins with [`Store::reclaim`], so that no lease
    /// is ever written beside those of an earlier boot.
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
        self.reclaim()?;
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
                Err(e) => return Err(self.roll_back(owner, &done, e)),
            }
        }
        for (index, allocation) in done.iter().enumerate() {
            let text = allocation.address.ip().to_string();
            if let Err(e) = self.dir.overwrite(&counter(index), text.as_bytes()) {
                return Err(self.roll_back(owner, &done, e));
            }
        }
        Ok(done)
    }

    fn refuse_duplicate(&mut self, owner: &Owner, sets: &[RangeSet]) -> Result<(), Error> {
        let of_sets = |address: &IpAddr| sets.iter().any(|s| s.range_of(*address).is_some());
        let leases = self.leases_of(owner)?;
        match leases.into_iter().map(|(address, _)| address).find(of_sets) {
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
            return Ok(Allocation::new(address, range));
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
        while let Some((address, range)) = self.next_free(&segments)? {
            if self.take(owner, address)? {
                return Ok(Allocation::new(address, range));
            }
            // It has a file all the same: the index is wrong, or somebody does not respect the lock.
            let known = Holder::Foreign;
            if self.ask(|l| l.insert(address, known.clone())).is_err() {
                self.distrust_index()?;
            }
        }
        Err(Error::Exhausted {
            index,
            ranges: set.to_string(),
            dir: self.dir.path().to_owned(),
        })
    }

    /// The next address without a file. That there is none is only believed of the leases themselves.
    fn next_free<'a>(
        &mut self,
        segments: &[Segment<'a>],
    ) -> Result<Option<(IpAddr, &'a Range)>, Error> {
        let look = |store: &mut Self| {
            first_free(segments, |from, to| store.ask(|l| l.next_free(from, to)))
        };
        let mut found = look(self)?;
        if found.is_none() && self.leases.as_ref().is_some_and(|l| !l.is_scan()) {
            self.distrust_index()?;
            found = look(self)?;
        }
        Ok(found.map(|(key, range)| (ip(key), range)))
    }

    fn take(&mut self, owner: &Owner, address: IpAddr) -> Result<bool, Error> {
        self.changed = true;
        let taken = self.dir.create_lease(address, &owner.content())?;
        if taken {
            let holder = Holder::Owner(owner.clone());
            self.ask(|leases| leases.insert(address, holder.clone()))
                .inspect_err(|_| {
                    // What made the question fail is what the user must see.
                    let _ = self.dir.remove_lease(address);
                })?;
        }
        Ok(taken)
    }

    /// The last address given for the set of this index, if the counter file is in order.
    fn last_reserved(&self, index: usize) -> Option<IpAddr> {
        let content = self.dir.read_own(&counter(index))?;
        std::str::from_utf8(&content).ok()?.parse().ok()
    }

    fn roll_back(&mut self, owner: &Owner, done: &[Allocation], cause: Error) -> Error {
        for allocation in done {
            // The cause is what the user must see; what is left here is found by the next DEL.
            let _ = self.remove(allocation.address.ip(), &Holder::Owner(owner.clone()));
        }
        cause
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

/// Name of the file that remembers the last address given for a set.
fn counter(index: usize) -> String {
    format!("last_reserved_ip.{index}")
}
