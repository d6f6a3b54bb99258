//! Pages of the index file and how they are written.
//!
//! Every page is [`SIZE`] bytes, little endian, and begins with a checksum of its number and the rest of it, so that a
//! torn, damaged or misplaced one is noticed. A page of zeroes is an empty one of any kind.

/// Bytes in a page.
pub(super) const SIZE: usize = 1024;
const BODY: usize = SIZE - 8;

/// Addresses in one chunk.
pub(super) const CHUNK: u128 = 4096;
const WORDS: usize = 64;

/// Entries that a bucket has room for.
pub(super) const BUCKET: usize = 42;

/// Most pages of one kind.
pub(super) const MAX_PAGES: u32 = 1 << 24;

const MAGIC: &[u8; 16] = b"ferrule-index-1\n";
const SWEPT: usize = 48;

/// A page does not hold what it should: the index cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Damaged;

/// Page 0: for which state of the directory the index holds, and its size.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Header {
    /// Device and inode of the directory.
    pub(super) dir: (u64, u64),
    /// Modification time of the directory: seconds and nanoseconds.
    pub(super) stamp: (i64, i64),
    /// Which sweep of leases that belong to nobody the directory has seen; empty if none.
    pub(super) swept: String,
    /// Pages with owners; a power of two.
    pub(super) buckets: u32,
    /// Pages with addresses; a power of two.
    pub(super) chunks: u32,
    /// Owners in the index.
    pub(super) owners: u32,
    /// Chunks in use.
    pub(super) used_chunks: u32,
}

impl Header {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(BODY);
        body.extend(MAGIC);
        body.extend(self.dir.0.to_le_bytes());
        body.extend(self.dir.1.to_le_bytes());
        body.extend(self.stamp.0.to_le_bytes());
        body.extend(self.stamp.1.to_le_bytes());
        let mut swept = self.swept.clone().into_bytes();
        swept.resize(SWEPT, 0);
        body.extend(swept);
        for number in [self.buckets, self.chunks, self.owners, self.used_chunks] {
            body.extend(number.to_le_bytes());
        }
        seal(0, body)
    }

    pub(super) fn decode(page: &[u8]) -> Result<Self, Damaged> {
        let mut body = open(0, page)?.ok_or(Damaged)?;
        if body.take()? != *MAGIC {
            return Err(Damaged);
        }
        let dir = (body.u64()?, body.u64()?);
        let stamp = (
            i64::from_le_bytes(body.take()?),
            i64::from_le_bytes(body.take()?),
        );
        let swept: [u8; SWEPT] = body.take()?;
        let swept = String::from_utf8_lossy(&swept);
        let header = Self {
            dir,
            stamp,
            swept: swept.trim_end_matches('\0').to_owned(),
            buckets: body.u32()?,
            chunks: body.u32()?,
            owners: body.u32()?,
            used_chunks: body.u32()?,
        };
        let sizes = [header.buckets, header.chunks];
        if sizes.iter().all(|n| n.is_power_of_two() && *n <= MAX_PAGES) {
            Ok(header)
        } else {
            Err(Damaged)
        }
    }
}

/// A page of owners: hash of the owner and an address of its.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Bucket {
    /// An entry whose place is this bucket, or one before it, went further because this one was full.
    pub(super) overflowed: bool,
    pub(super) entries: Vec<(u64, u128)>,
}

impl Bucket {
    pub(super) fn encode(&self, number: u32) -> Vec<u8> {
        let mut body = Vec::with_capacity(BODY);
        body.extend((self.entries.len() as u32).to_le_bytes());
        body.extend(u32::from(self.overflowed).to_le_bytes());
        for (hash, address) in &self.entries {
            body.extend(hash.to_le_bytes());
            body.extend(address.to_le_bytes());
        }
        seal(number, body)
    }

    pub(super) fn decode(number: u32, page: &[u8]) -> Result<Self, Damaged> {
        let Some(mut body) = open(number, page)? else {
            return Ok(Self::default());
        };
        let count = body.u32()? as usize;
        let overflowed = body.u32()? != 0;
        if count > BUCKET {
            return Err(Damaged);
        }
        let entry = |_| Ok((body.u64()?, body.u128()?));
        Ok(Self {
            overflowed,
            entries: (0..count).map(entry).collect::<Result<_, _>>()?,
        })
    }
}

/// A page of addresses: one bit for each of [`CHUNK`] neighbours that has a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Chunk {
    /// The addresses divided by [`CHUNK`].
    pub(super) number: u128,
    words: [u64; WORDS],
}

impl Chunk {
    pub(super) fn new(number: u128) -> Self {
        Self {
            number,
            words: [0; WORDS],
        }
    }

    /// Sets or clears an address's bit; `offset` is the address modulo [`CHUNK`].
    pub(super) fn set(&mut self, offset: u32, taken: bool) {
        if let Some(word) = self.words.get_mut((offset / 64) as usize) {
            let bit = 1 << (offset % 64);
            *word = if taken { *word | bit } else { *word & !bit };
        }
    }

    /// The first offset from `from` on whose bit is clear.
    pub(super) fn first_free(&self, from: u32) -> Option<u32> {
        let mut from = from;
        for (index, word) in self.words.iter().enumerate().skip((from / 64) as usize) {
            let free = !word & (u64::MAX << (from % 64));
            if free != 0 {
                return Some(index as u32 * 64 + free.trailing_zeros());
            }
            from = 0;
        }
        None
    }

    /// All addresses whose bit is set.
    pub(super) fn addresses(&self) -> impl Iterator<Item = u128> {
        let base = self.number.wrapping_mul(CHUNK);
        self.words.iter().enumerate().flat_map(move |(i, word)| {
            (0..64)
                .filter(move |bit| word & (1 << bit) != 0)
                .map(move |bit| base.wrapping_add(i as u128 * 64 + bit))
        })
    }

    pub(super) fn encode(&self, number: u32) -> Vec<u8> {
        let mut body = Vec::with_capacity(BODY);
        body.extend(1u64.to_le_bytes());
        body.extend(self.number.to_le_bytes());
        for word in &self.words {
            body.extend(word.to_le_bytes());
        }
        seal(number, body)
    }

    /// `None` for a page that is not in use.
    pub(super) fn decode(number: u32, page: &[u8]) -> Result<Option<Self>, Damaged> {
        let Some(mut body) = open(number, page)? else {
            return Ok(None);
        };
        if body.u64()? != 1 {
            return Err(Damaged);
        }
        let mut chunk = Self::new(body.u128()?);
        for word in &mut chunk.words {
            *word = body.u64()?;
        }
        Ok(Some(chunk))
    }
}

/// FNV-1a, 64 bits: spreads owners over buckets and tells a damaged page. No protection against intent.
pub(super) fn hash<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in parts.into_iter().flatten() {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    hash
}

fn checksum(number: u32, body: &[u8]) -> u64 {
    // Never 0, so that no sealed page is all zeroes.
    hash([&number.to_le_bytes()[..], body]) | 1
}

fn seal(number: u32, mut body: Vec<u8>) -> Vec<u8> {
    body.resize(BODY, 0);
    let mut page = checksum(number, &body).to_le_bytes().to_vec();
    page.extend(body);
    page
}

/// A page's body, or `None` if it is empty.
fn open(number: u32, page: &[u8]) -> Result<Option<Body<'_>>, Damaged> {
    let (sum, body) = page.split_first_chunk().ok_or(Damaged)?;
    match u64::from_le_bytes(*sum) {
        _ if body.len() != BODY => Err(Damaged),
        0 if body.iter().all(|byte| *byte == 0) => Ok(None),
        sum if sum == checksum(number, body) => Ok(Some(Body(body))),
        _ => Err(Damaged),
    }
}

/// What is left to read of a page.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Damaged)?;
        self.0 = rest;
        Ok(*bytes)
    }

    fn u32(&mut self) -> Result<u32, Damaged> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Damaged> {
        self.take().map(u64::from_le_bytes)
    }

    fn u128(&mut self) -> Result<u128, Damaged> {
        self.take().map(u128::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back_and_damage_shows() {
        let bucket = Bucket {
            overflowed: true,
            entries: (0..BUCKET as u64).map(|n| (n, u128::MAX)).collect(),
        };
        let page = bucket.encode(7);
        assert_eq!(page.len(), SIZE);
        assert_eq!(Bucket::decode(7, &page), Ok(bucket));
        assert_eq!(Bucket::decode(8, &page), Err(Damaged));
        for at in [0, 8, 100, SIZE - 1] {
            let mut torn = page.clone();
            torn[at] ^= 1;
            assert_eq!(Bucket::decode(7, &torn), Err(Damaged), "{at}");
        }
        assert_eq!(Bucket::decode(7, &page[1..]), Err(Damaged));
        assert_eq!(Bucket::decode(7, &[0; SIZE]), Ok(Bucket::default()));
        assert_eq!(Chunk::decode(7, &[0; SIZE]), Ok(None));
        assert_eq!(Header::decode(&[0; SIZE]), Err(Damaged));
        let header = Header {
            swept: "x".repeat(36),
            buckets: 4,
            chunks: 8,
            stamp: (-1, 999_999_999),
            ..Header::default()
        };
        assert_eq!(Header::decode(&header.encode()), Ok(header));
    }

    #[test]
    fn chunks_find_their_gaps() {
        let mut chunk = Chunk::new(5);
        assert_eq!(chunk.first_free(4095), Some(4095));
        for offset in 0..4096 {
            chunk.set(offset, true);
        }
        assert_eq!(chunk.first_free(0), None);
        for gap in [0, 63, 64, 1000, 4095] {
            chunk.set(gap, false);
            assert_eq!(chunk.first_free(0), Some(gap));
            assert_eq!(chunk.first_free(gap), Some(gap));
            assert_eq!(Chunk::decode(3, &chunk.encode(3)), Ok(Some(chunk.clone())));
            chunk.set(gap, true);
        }
        assert_eq!(chunk.addresses().count(), 4096);
        assert_eq!(chunk.addresses().next(), Some(5 * 4096));
    }
}
