//! Freeing addresses: for an owner, for whoever is not listed, and those that belong to nobody.

use std::collections::HashSet;
use std::net::IpAddr;
use std::time::SystemTime;

use super::{Allocation, Store};
use crate::boot::{BOOT_FILE, Boot, marked};
use crate::error::Error;
use crate::lease::{Holder, Owner};
use crate::leases::Leases;

/// What the index calls the sweep of a store that keeps leases over boots: only torn files go.
const TORN_ONLY: &str = "torn only";
/// What it calls any other sweep, followed by the id of the boot.
const BOOT_PREFIX: &str = "boot ";

/// Which leases belong to nobody because the machine has been started anew since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stale {
    None,
    /// Every one: nobody but us has written here since, whatever the clock says.
    All,
    /// Somebody else has written here too, perhaps in this boot.
    WrittenBefore(SystemTime),
}

fn sweep_of(boot: Option<&Boot>) -> String {
    boot.map_or_else(
        || TORN_ONLY.to_owned(),
        |boot| format!("{BOOT_PREFIX}{}", boot.id),
    )
}

impl Store {
    /// Takes back what one [`Store::allocate`] gave, and nothing else of the owner's.
    ///
    /// # Errors
    /// The first [`Error::Io`]; the rest is tried all the same.
    pub fn withdraw(&mut self, owner: &Owner, allocations: &[Allocation]) -> Result<(), Error> {
        let addresses = allocations.iter().map(|a| a.address.ip()).collect();
        self.remove_if(addresses, |holder| holder.is(owner))?;
        Ok(())
    }

    /// Frees the owner's addresses, whatever the sets are now, and returns them. Leases in the early format are freed
    /// only if there is no other: they do not say for which interface they are.
    ///
    /// # Errors
    /// The first [`Error::Io`]; the rest is tried all the same.
    pub fn release(&mut self, owner: &Owner) -> Result<Vec<IpAddr>, Error> {
        let addresses = self.find(owner)?;
        self.remove_if(addresses, |holder| {
            holder.is(owner) || holder.is_id_of(owner)
        })
    }

    /// Frees every lease whose owner is not listed, and returns the addresses.
    ///
    /// # Errors
    /// The first [`Error::Io`]; the rest is tried all the same.
    pub fn collect(&mut self, valid: &[Owner]) -> Result<Vec<IpAddr>, Error> {
        let owners: HashSet<&Owner> = valid.iter().collect();
        let ids: HashSet<&str> = valid.iter().map(Owner::container_id).collect();
        let addresses = self.ask(|leases| leases.not_of(valid))?;
        self.remove_if(addresses, |holder| match holder {
            Holder::Owner(owner) => !owners.contains(owner),
            Holder::IdOnly(id) => !ids.contains(id.as_str()),
            Holder::Torn => true,
            Holder::Foreign => false,
        })
    }

    /// Frees what belongs to nobody: leases of an earlier boot (see [`crate::Options::reclaim`]) and files that a
    /// crash left empty. Returns the freed addresses. Looks at all leases once in a boot, and after a foreign writer.
    ///
    /// # Errors
    /// The first [`Error::Io`]; the rest is tried all the same.
    pub fn reclaim(&mut self) -> Result<Vec<IpAddr>, Error> {
        let boot = self.reclaim.clone();
        let sweep = sweep_of(boot.as_ref());
        let stale = self.stale()?;
        if self.swept == sweep {
            return Ok(Vec::new());
        }
        let mut freed = Vec::new();
        if stale != Stale::None {
            let mut old = self.ask(Leases::addresses)?;
            old.retain(|address| self.is_in(stale, *address));
            freed = self.remove_if(old, |_| true)?;
        }
        let torn = self.ask(Leases::maybe_torn)?;
        freed.extend(self.remove_if(torn, |holder| *holder == Holder::Torn)?);
        self.changed = true;
        if let Some(boot) = &boot
            && self.marked_boot().as_deref() != Some(&boot.id)
        {
            self.dir.replace(BOOT_FILE, boot.marker().as_bytes())?;
        }
        self.swept = sweep;
        Ok(freed)
    }

    /// Whether the lease of `address` is of an earlier boot and so belongs to nobody.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_stale(&mut self, address: IpAddr) -> Result<bool, Error> {
        let stale = self.stale()?;
        Ok(self.is_in(stale, address))
    }

    /// Which leases are of an earlier boot.
    fn stale(&mut self) -> Result<Stale, Error> {
        let Some(boot) = self.reclaim.clone() else {
            return Ok(Stale::None);
        };
        self.ask(|_| Ok(()))?;
        let swept = self.swept.as_str();
        let other = |id: &str| id != boot.id;
        if swept.strip_prefix(BOOT_PREFIX).is_some_and(other) {
            // The index has held since a sweep in another boot, and only what has seen the present sweep writes leases.
            Ok(Stale::All)
        } else if swept.is_empty() && self.marked_boot().as_deref().is_some_and(other) {
            Ok(Stale::WrittenBefore(boot.since))
        } else {
            Ok(Stale::None)
        }
    }

    fn is_in(&self, stale: Stale, address: IpAddr) -> bool {
        match stale {
            Stale::None => false,
            Stale::All => true,
            Stale::WrittenBefore(start) => {
                self.dir.written(address).is_some_and(|time| time < start)
            }
        }
    }

    fn marked_boot(&self) -> Option<String> {
        let marker = self.dir.read_own(BOOT_FILE)?;
        marked(&marker).map(str::to_owned)
    }

    /// Removes those of the addresses whose file's content passes, and returns them.
    fn remove_if(
        &mut self,
        addresses: Vec<IpAddr>,
        test: impl Fn(&Holder) -> bool,
    ) -> Result<Vec<IpAddr>, Error> {
        let mut outcome = Ok(());
        let mut removed = Vec::new();
        for address in addresses {
            let one = match self.dir.read_lease(address) {
                Ok(Some(holder)) if test(&holder) => self
                    .remove(address, &holder)
                    .map(|()| removed.push(address)),
                other => other.map(drop),
            };
            outcome = outcome.and(one);
        }
        outcome.map(|()| removed)
    }
}
