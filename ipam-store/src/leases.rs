//! What a command knows of the leases: the index, or all of them read into memory.

use std::io;
use std::net::IpAddr;

use crate::error::Error;
use crate::files::Dir;
use crate::index::{Index, Unusable};
use crate::lease::{Holder, Owner};
use crate::range::{ip, key};
use crate::snapshot::Snapshot;

#[derive(Debug)]
pub(crate) enum Leases {
    Index(Index),
    Scan(Snapshot),
}

impl Leases {
    /// Opens the index, or reads the leases where it does not hold.
    pub(crate) fn open(dir: &Dir) -> Result<Self, Error> {
        match Index::open(dir) {
            Some(index) => Ok(Self::Index(index)),
            None => Self::scan(dir),
        }
    }

    /// Reads the leases themselves.
    pub(crate) fn scan(dir: &Dir) -> Result<Self, Error> {
        Snapshot::load(dir).map(Self::Scan)
    }

    pub(crate) fn is_scan(&self) -> bool {
        matches!(self, Self::Scan(_))
    }

    /// Which sweep the index has seen; empty without an index.
    pub(crate) fn swept(&self) -> &str {
        match self {
            Self::Index(index) => index.swept(),
            Self::Scan(_) => "",
        }
    }

    /// Addresses that may be the owner's, in either format; their files decide.
    pub(crate) fn of(&mut self, owner: &Owner) -> Result<Vec<IpAddr>, Unusable> {
        match self {
            Self::Index(index) => Ok(index.of(owner)?.into_iter().map(ip).collect()),
            Self::Scan(snapshot) => Ok(snapshot.of(owner)),
        }
    }

    /// Addresses that may belong to none of the owners; their files decide.
    pub(crate) fn not_of(&mut self, valid: &[Owner]) -> Result<Vec<IpAddr>, Unusable> {
        match self {
            Self::Index(index) => Ok(index.not_of(valid)?.into_iter().map(ip).collect()),
            Self::Scan(snapshot) => Ok(snapshot.iter().map(|(address, _)| address).collect()),
        }
    }

    /// Every address with a file.
    pub(crate) fn addresses(&mut self) -> Result<Vec<IpAddr>, Unusable> {
        match self {
            Self::Index(index) => Ok(index.addresses()?.into_iter().map(ip).collect()),
            Self::Scan(snapshot) => Ok(snapshot.iter().map(|(address, _)| address).collect()),
        }
    }

    /// Addresses whose file may be torn.
    pub(crate) fn maybe_torn(&mut self) -> Result<Vec<IpAddr>, Unusable> {
        match self {
            Self::Index(_) => self.addresses(),
            Self::Scan(snapshot) => Ok(snapshot
                .iter()
                .filter(|(_, holder)| **holder == Holder::Torn)
                .map(|(address, _)| address)
                .collect()),
        }
    }

    /// The first address from `from` to `to` (both included) without a file.
    pub(crate) fn next_free(&mut self, from: u128, to: u128) -> Result<Option<u128>, Unusable> {
        match self {
            Self::Index(index) => index.next_free(from, to),
            Self::Scan(snapshot) => Ok(snapshot.next_free(from, to)),
        }
    }

    pub(crate) fn insert(&mut self, address: IpAddr, holder: Holder) -> Result<(), Unusable> {
        match self {
            Self::Index(index) => index.insert(key(address), &holder),
            Self::Scan(snapshot) => {
                snapshot.insert(address, holder);
                Ok(())
            }
        }
    }

    pub(crate) fn remove(&mut self, address: IpAddr, holder: &Holder) -> Result<(), Unusable> {
        match self {
            Self::Index(index) => index.remove(key(address), holder),
            Self::Scan(snapshot) => {
                snapshot.remove(address);
                Ok(())
            }
        }
    }

    /// Leaves an index behind that holds for the directory as it is now and has seen the sweep `swept`.
    pub(crate) fn commit(&mut self, dir: &Dir, swept: &str) -> io::Result<()> {
        let mut built;
        let index = match self {
            Self::Index(index) => index,
            Self::Scan(snapshot) => {
                built = Index::of_snapshot(snapshot).map_err(|_| io::ErrorKind::Unsupported)?;
                &mut built
            }
        };
        index.set_swept(swept);
        index.commit(dir)
    }
}
