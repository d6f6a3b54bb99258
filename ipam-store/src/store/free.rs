//! Freeing addresses: for an owner, for whoever is not listed, and those that belong to nobody.

use std::collections::HashSet;
use std::net::IpAddr;

use super::{Allocation, Store};
use crate::boot::{BOOT_FILE, marked};
use crate::error::Error;
use crate::lease::{Holder, Owner};
use crate::leases::Leases;

/// The sweep of a store that keeps leases over boots: only torn files go.
const TORN_ONLY: &str = "torn only";

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
        let sweep = boot.as_ref().map_or(TORN_ONLY, |boot| boot.id.as_str());
        self.ask(|_| Ok(()))?;
        if self.swept == sweep {
            return Ok(Vec::new());
        }
        let torn = self.ask(Leases::maybe_torn)?;
        let mut freed = self.remove_if(torn, |holder| *holder == Holder::Torn)?;
        if self.is_other_boot() {
            let mut old = self.ask(Leases::addresses)?;
            old.retain(|address| self.is_older_than_boot(*address));
            freed.extend(self.remove_if(old, |_| true)?);
        }
        self.changed = true;
        if let Some(boot) = &boot
            && self.marked_boot().as_deref() != Some(&boot.id)
        {
            self.dir.replace(BOOT_FILE, boot.marker().as_bytes())?;
        }
        sweep.clone_into(&mut self.swept);
        Ok(freed)
    }

    /// Whether the lease of `address` is of an earlier boot and so belongs to nobody.
    #[must_use]
    pub fn is_stale(&self, address: IpAddr) -> bool {
        self.is_other_boot() && self.is_older_than_boot(address)
    }

    fn marked_boot(&self) -> Option<String> {
        let marker = self.dir.read_own(BOOT_FILE)?;
        marked(&marker).map(str::to_owned)
    }

    /// Whether leases were last swept in another boot than this one.
    fn is_other_boot(&self) -> bool {
        match (&self.reclaim, self.marked_boot()) {
            (Some(boot), Some(marked)) => boot.id != marked,
            _ => false,
        }
    }

    fn is_older_than_boot(&self, address: IpAddr) -> bool {
        let written = self.dir.written(address);
        matches!((&self.reclaim, written), (Some(boot), Some(written)) if written < boot.since)
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
