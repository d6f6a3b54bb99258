//! Looking without changing: how full, and of whom.

use std::net::IpAddr;
use std::time::SystemTime;

use super::Store;
use crate::error::Error;
use crate::lease::Holder;
use crate::leases::Leases;
use crate::order::{first_free, walk};
use crate::rangeset::RangeSet;

/// How full a range set is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Addresses of the set that have a lease file.
    pub leases: usize,
    /// Whether an address is left, or one that belongs to nobody.
    pub free: bool,
}

impl Store {
    /// How full each set is.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn usage(&mut self, sets: &[RangeSet]) -> Result<Vec<Usage>, Error> {
        let addresses = self.ask(Leases::addresses)?;
        let mut usages = Vec::with_capacity(sets.len());
        for set in sets {
            let of_set = |address: &&IpAddr| set.range_of(**address).is_some();
            let next_free = |from, to| self.ask(|leases| leases.next_free(from, to));
            let mut free = first_free(&walk(set, None), next_free)?.is_some();
            for address in addresses.iter().filter(of_set) {
                free = free || self.is_stale(*address)?;
            }
            usages.push(Usage {
                leases: addresses.iter().filter(of_set).count(),
                free,
            });
        }
        Ok(usages)
    }

    /// The `count` leases that were written longest ago, with their holders.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn oldest(&mut self, count: usize) -> Result<Vec<(IpAddr, Holder)>, Error> {
        let mut leases: Vec<(SystemTime, IpAddr)> = self
            .ask(Leases::addresses)?
            .into_iter()
            .filter_map(|address| Some((self.dir.written(address)?, address)))
            .collect();
        leases.sort();
        leases.truncate(count);
        let mut oldest = Vec::with_capacity(leases.len());
        for (_, address) in leases {
            if let Some(holder) = self.dir.read_lease(address)? {
                oldest.push((address, holder));
            }
        }
        Ok(oldest)
    }
}
