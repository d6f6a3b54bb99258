//! All leases of a directory in memory: what a command works with when there is no index.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::error::Error;
use crate::files::Dir;
use crate::lease::{Holder, Owner};
use crate::range::{ip, key};

#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    leases: BTreeMap<u128, Holder>,
}

impl Snapshot {
    /// Reads every lease once.
    pub(crate) fn load(dir: &Dir) -> Result<Self, Error> {
        let mut leases = BTreeMap::new();
        for address in dir.addresses()? {
            if let Some(holder) = dir.read_lease(address)? {
                leases.insert(key(address), holder);
            }
        }
        Ok(Self { leases })
    }

    /// Every address with what its file says, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (IpAddr, &Holder)> {
        self.leases.iter().map(|(k, holder)| (ip(*k), holder))
    }

    pub(crate) fn insert(&mut self, address: IpAddr, holder: Holder) {
        self.leases.insert(key(address), holder);
    }

    pub(crate) fn remove(&mut self, address: IpAddr) {
        self.leases.remove(&key(address));
    }

    /// Leases of the owner, in either format.
    pub(crate) fn of(&self, owner: &Owner) -> Vec<IpAddr> {
        let mine = |holder: &Holder| holder.is(owner) || holder.is_id_of(owner);
        let found = self.iter().filter(|(_, holder)| mine(holder));
        found.map(|(address, _)| address).collect()
    }

    /// The first address from `from` to `to` (both included) without a file.
    pub(crate) fn next_free(&self, mut from: u128, to: u128) -> Option<u128> {
        if from > to {
            return None;
        }
        for taken in self.leases.range(from..=to).map(|(k, _)| *k) {
            if taken != from {
                break;
            }
            from = from.checked_add(1)?;
        }
        (from <= to).then_some(from)
    }
}
