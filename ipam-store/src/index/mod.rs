//! The lease index: a cache in the file `.ferrule-index` beside the leases, so that no command has to read them all.
//!
//! It answers two questions: which addresses an owner has (a hash table of owners), and which address is the next
//! without a file (a bit for each address). Both touch a few pages, however many leases there are.
//!
//! The lease files stay the truth. The index holds for one state of the directory only, which it knows by the
//! directory's modification time: after each change of ours that time is set to a value of our own and written into
//! the index. Whoever else creates or removes a file lets the kernel set another time, and so does a command of ours
//! that is killed half-way; the next command then reads the lease files and writes the index anew. So does a damaged
//! page, and an address whose file does not say what the index says. A lease file that is rewritten in place by hand,
//! or changed by somebody who does not take the lock in the very moment in which a command of ours holds it, is not
//! noticed until then.

mod file;
mod page;

use std::collections::BTreeMap;
use std::fs::File;

use crate::lease::{Holder, Owner};
use crate::range::key;
use crate::snapshot::Snapshot;
use page::{BUCKET, Bucket, CHUNK, Chunk, Damaged, Header, MAX_PAGES};

/// The index cannot be used: damaged, or in conflict with the lease files.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unusable;

impl From<Damaged> for Unusable {
    fn from(_: Damaged) -> Self {
        Self
    }
}

/// An index for the present state of a directory.
#[derive(Debug)]
pub(crate) struct Index {
    header: Header,
    /// `None` until it is first written.
    file: Option<File>,
    buckets: BTreeMap<u32, Bucket>,
    chunks: BTreeMap<u32, Option<Chunk>>,
    changed: Vec<u32>,
}

/// Smallest number of pages of each kind.
const MIN_PAGES: u32 = 4;

impl Index {
    /// An empty index with room for so many owners and chunks.
    pub(crate) fn with_room(owners: usize, chunks: usize) -> Self {
        // Buckets are kept at most 60 % full, chunk pages at most half full.
        let buckets = owners.saturating_mul(5) / (BUCKET * 3) + 1;
        Self {
            header: Header {
                buckets: pages(buckets),
                chunks: pages(chunks.saturating_mul(2)),
                ..Header::default()
            },
            file: None,
            buckets: BTreeMap::new(),
            chunks: BTreeMap::new(),
            changed: Vec::new(),
        }
    }

    /// An index of everything in a snapshot.
    pub(crate) fn of_snapshot(snapshot: &Snapshot) -> Result<Self, Unusable> {
        let mut chunks: Vec<u128> = snapshot.iter().map(|(a, _)| key(a) / CHUNK).collect();
        chunks.dedup();
        let mut index = Self::with_room(snapshot.iter().count(), chunks.len());
        for (address, holder) in snapshot.iter() {
            index.insert(key(address), holder)?;
        }
        Ok(index)
    }

    /// Which sweep of leases that belong to nobody the index has seen.
    pub(crate) fn swept(&self) -> &str {
        &self.header.swept
    }

    /// Notes which sweep the leases have seen.
    pub(crate) fn set_swept(&mut self, swept: &str) {
        swept.clone_into(&mut self.header.swept);
    }

    /// Addresses that the owner seems to have, in either format. What the lease files say decides.
    pub(crate) fn of(&mut self, owner: &Owner) -> Result<Vec<u128>, Unusable> {
        let mut found = self.with_hash(hash(owner.container_id(), owner.interface()))?;
        found.extend(self.with_hash(hash(owner.container_id(), ""))?);
        Ok(found)
    }

    /// The first address from `from` to `to` (both included) without a file.
    pub(crate) fn next_free(&mut self, mut from: u128, to: u128) -> Result<Option<u128>, Unusable> {
        while from <= to {
            let (_, chunk) = self.find_chunk(from / CHUNK)?;
            let Some(chunk) = chunk else {
                return Ok(Some(from));
            };
            let base = from - from % CHUNK;
            if let Some(offset) = chunk.first_free((from % CHUNK) as u32) {
                let found = base + u128::from(offset);
                return Ok((found <= to).then_some(found));
            }
            let Some(next) = base.checked_add(CHUNK) else {
                break;
            };
            from = next;
        }
        Ok(None)
    }

    /// Notes that an address has a file now.
    pub(crate) fn insert(&mut self, address: u128, holder: &Holder) -> Result<(), Unusable> {
        self.set_taken(address, true)?;
        match hash_of(holder) {
            Some(hash) => self.insert_owner(hash, address),
            None => Ok(()),
        }
    }

    /// Notes that an address has no file any more.
    pub(crate) fn remove(&mut self, address: u128, holder: &Holder) -> Result<(), Unusable> {
        self.set_taken(address, false)?;
        let Some(hash) = hash_of(holder) else {
            return Ok(());
        };
        for number in self.probe(hash) {
            let bucket = self.bucket(number)?;
            if let Some(at) = bucket.entries.iter().position(|e| *e == (hash, address)) {
                bucket.entries.swap_remove(at);
                self.header.owners = self.header.owners.saturating_sub(1);
                self.changed.push(number);
                return Ok(());
            }
            if !bucket.overflowed {
                break;
            }
        }
        Err(Unusable)
    }

    /// Every address with a file.
    pub(crate) fn addresses(&mut self) -> Result<Vec<u128>, Unusable> {
        let mut all = Vec::new();
        for number in 0..self.header.chunks {
            if let Some(chunk) = self.chunk(number)? {
                all.extend(chunk.addresses());
            }
        }
        Ok(all)
    }

    /// Addresses of owners that are not among `valid`, as far as the hashes tell; files of unknown content are left out.
    pub(crate) fn not_of(&mut self, valid: &[Owner]) -> Result<Vec<u128>, Unusable> {
        let both = |o: &Owner| {
            [
                hash(o.container_id(), o.interface()),
                hash(o.container_id(), ""),
            ]
        };
        let valid: std::collections::HashSet<u64> = valid.iter().flat_map(both).collect();
        let mut found = Vec::new();
        for (hash, address) in self.owners()? {
            if !valid.contains(&hash) {
                found.push(address);
            }
        }
        Ok(found)
    }

    fn owners(&mut self) -> Result<Vec<(u64, u128)>, Unusable> {
        let mut all = Vec::new();
        for number in 0..self.header.buckets {
            all.extend_from_slice(&self.bucket(number)?.entries);
        }
        Ok(all)
    }

    fn with_hash(&mut self, hash: u64) -> Result<Vec<u128>, Unusable> {
        let mut found = Vec::new();
        for number in self.probe(hash) {
            let bucket = self.bucket(number)?;
            let of_hash = bucket.entries.iter().filter(|(h, _)| *h == hash);
            found.extend(of_hash.map(|(_, address)| *address));
            if !bucket.overflowed {
                break;
            }
        }
        Ok(found)
    }

    fn insert_owner(&mut self, hash: u64, address: u128) -> Result<(), Unusable> {
        let room = u64::from(self.header.buckets) * BUCKET as u64 * 3 / 5;
        if u64::from(self.header.owners) >= room {
            self.grow()?;
        }
        for number in self.probe(hash) {
            let bucket = self.bucket(number)?;
            let full = bucket.entries.len() >= BUCKET;
            if full {
                bucket.overflowed = true;
            } else {
                bucket.entries.push((hash, address));
            }
            self.changed.push(number);
            if !full {
                self.header.owners = self.header.owners.saturating_add(1);
                return Ok(());
            }
        }
        Err(Unusable)
    }

    fn set_taken(&mut self, address: u128, taken: bool) -> Result<(), Unusable> {
        let (mut number, found) = self.find_chunk(address / CHUNK)?;
        if found.is_none() {
            if self.header.used_chunks >= self.header.chunks / 2 {
                self.grow()?;
                (number, _) = self.find_chunk(address / CHUNK)?;
            }
            self.header.used_chunks = self.header.used_chunks.saturating_add(1);
        }
        let chunk = self.chunks.entry(number).or_default();
        chunk
            .get_or_insert_with(|| Chunk::new(address / CHUNK))
            .set((address % CHUNK) as u32, taken);
        self.changed.push(number + self.header.buckets);
        Ok(())
    }

    /// The chunk page that holds the chunk, or where it would be put.
    fn find_chunk(&mut self, wanted: u128) -> Result<(u32, Option<&Chunk>), Unusable> {
        let mask = self.header.chunks - 1;
        let start = page::hash([&wanted.to_le_bytes()[..]]) as u32;
        for step in 0..self.header.chunks {
            let number = start.wrapping_add(step) & mask;
            match self.chunk(number)? {
                Some(chunk) if chunk.number != wanted => {}
                _ => return Ok((number, self.chunk(number)?.as_ref())),
            }
        }
        Err(Unusable)
    }

    /// Bucket numbers in the order in which an owner's entry is looked for.
    fn probe(&self, hash: u64) -> impl Iterator<Item = u32> + use<> {
        let buckets = self.header.buckets;
        let start = (hash ^ (hash >> 32)) as u32;
        (0..buckets).map(move |step| start.wrapping_add(step) & (buckets - 1))
    }

    /// Moves everything into an index twice as large, which is written as a new file.
    fn grow(&mut self) -> Result<(), Unusable> {
        let owners = self.owners()?;
        let addresses = self.addresses()?;
        let mut larger = Self::with_room(
            owners.len().saturating_mul(2),
            (self.header.used_chunks as usize).saturating_mul(2),
        );
        larger.set_swept(&self.header.swept);
        for address in addresses {
            larger.set_taken(address, true)?;
        }
        for (hash, address) in owners {
            larger.insert_owner(hash, address)?;
        }
        *self = larger;
        Ok(())
    }
}

fn pages(wanted: usize) -> u32 {
    let wanted = u32::try_from(wanted).unwrap_or(MAX_PAGES);
    wanted.clamp(MIN_PAGES, MAX_PAGES).next_power_of_two()
}

fn hash(container_id: &str, interface: &str) -> u64 {
    page::hash([container_id.as_bytes(), &[0], interface.as_bytes()])
}

fn hash_of(holder: &Holder) -> Option<u64> {
    match holder {
        Holder::Owner(owner) => Some(hash(owner.container_id(), owner.interface())),
        Holder::IdOnly(id) => Some(hash(id, "")),
        Holder::Torn | Holder::Foreign => None,
    }
}
