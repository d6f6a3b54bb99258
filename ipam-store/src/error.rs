//! What can go wrong with a store.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

use crate::LockHolder;
use crate::lease::{Holder, Owner};

/// A failed operation. Nothing it did on the way has stayed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// The lock was not free in time; trying again later may help.
    #[error("lock {path} is still held by {by} after {secs:.1}s", path = .path.display(), by = describe(.holder.as_ref()), secs = .waited.as_secs_f32())]
    Locked {
        /// The lock file.
        path: PathBuf,
        /// Who holds it, if the kernel tells.
        holder: Option<LockHolder>,
        /// How long it was waited for.
        waited: Duration,
    },
    /// The owner has an address in one of the sets already.
    #[error("{address} has been allocated to {owner} already (lease file {file}), duplicate allocation is not allowed; DEL that attachment first", file = .file.display())]
    Duplicate {
        /// The address it has.
        address: IpAddr,
        /// Who asked.
        owner: Owner,
        /// The lease.
        file: PathBuf,
    },
    /// A requested address belongs to somebody else.
    #[error("requested address {address} is in use by {holder}, lease file {file}; DEL that attachment or ask for another address", file = .file.display())]
    InUse {
        /// The address asked for.
        address: IpAddr,
        /// Who has it.
        holder: Holder,
        /// The lease.
        file: PathBuf,
    },
    /// A requested address is a range's gateway.
    #[error("requested address {address} is the gateway of subnet {subnet}")]
    Gateway {
        /// The address asked for.
        address: IpAddr,
        /// The subnet it is the gateway of.
        subnet: String,
    },
    /// Requested addresses that no set could take.
    #[error("cannot allocate all requested addresses: {addresses} lies in no range set, or its set has given an address already", addresses = join(.0))]
    NotInRanges(Vec<IpAddr>),
    /// A set has no free address.
    #[error("no IP addresses available in range set {index} ({ranges}), leases are in {dir}", dir = .dir.display())]
    Exhausted {
        /// Place of the set in the merged list.
        index: usize,
        /// Its ranges.
        ranges: String,
        /// The store's directory.
        dir: PathBuf,
    },
    /// The system refused.
    #[error("cannot {doing} {path}: {source}", path = .path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
}

/// Makes an [`Error::Io`] of a system error.
pub(crate) fn at(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io {
        doing,
        path,
        source,
    }
}

fn describe(holder: Option<&LockHolder>) -> String {
    holder.map_or_else(|| "an unknown process".to_owned(), ToString::to_string)
}

fn join(addresses: &[IpAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(" ")
}
