//! Everything a plugin can leave on a host, as a list of items that can be compared.
//!
//! Counters, handles and timers are left out, so two snapshots are equal exactly when nothing
//! that lasts has changed. All of it comes from the kernel and the file system directly; only the
//! rules of legacy xtables, which have no other door, are read with `iptables-legacy-save`.

mod diff;
mod files;
mod item;
mod links;
mod nft;
mod nla;
mod sysctls;
mod xtables;

use std::path::Path;

pub use diff::{Diff, Leavings};
pub use item::Item;

use crate::error::Result;
use crate::net::Host;

/// The state of a host at one moment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    items: Vec<Item>,
}

impl Snapshot {
    /// Reads the state of the sandbox's host, and the directories in which plugins keep files.
    ///
    /// # Errors
    /// When the kernel or the file system refuses to tell.
    pub fn take(host: &Host) -> Result<Self> {
        let mut items = links::read(host.rtnl())?;
        items.extend(nft::read()?);
        items.extend(xtables::read()?);
        items.extend(sysctls::read()?);
        for directory in ["/run", "/var/lib/cni", "/etc/cni"] {
            items.extend(files::read(Path::new(directory))?);
        }
        items.sort();
        Ok(Self { items })
    }

    /// The nftables ruleset of the calling thread's namespace alone.
    ///
    /// # Errors
    /// When the kernel refuses to tell.
    pub fn nftables() -> Result<Self> {
        Ok(Self {
            items: nft::read()?,
        })
    }

    /// The rules of legacy xtables of the calling thread's namespace alone.
    ///
    /// # Errors
    /// When there are some and the tool to read them is not installed.
    pub fn xtables() -> Result<Self> {
        Ok(Self {
            items: xtables::read()?,
        })
    }

    /// Every item, sorted.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// Items whose text contains `needle`: where a thing is still mentioned.
    #[must_use]
    pub fn mentioning(&self, needle: &str) -> Vec<&Item> {
        self.items
            .iter()
            .filter(|item| item.to_string().contains(needle))
            .collect()
    }

    /// What `later` has more and less than this.
    #[must_use]
    pub fn diff(&self, later: &Self) -> Diff {
        Diff::between(&self.items, &later.items)
    }
}
