//! The index on disk: page 0 is the header, then the buckets, then the chunks.

use std::fs::{File, FileTimes, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::time::{Duration, SystemTime};

use nix::fcntl::OFlag;
use nix::sys::statfs::{
    AFS_SUPER_MAGIC, CODA_SUPER_MAGIC, FUSE_SUPER_MAGIC, FsType, NFS_SUPER_MAGIC, SMB_SUPER_MAGIC,
    statfs,
};

use super::page::{Bucket, Chunk, Header, SIZE};
use super::{Index, Unusable};
use crate::files::Dir;

/// The index's name in the directory.
const INDEX_FILE: &str = ".ferrule-index";

impl Index {
    /// Opens the index if it holds for the present state of the directory.
    pub(crate) fn open(dir: &Dir) -> Option<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits())
            .open(dir.path().join(INDEX_FILE))
            .ok()?;
        let mut page = [0; SIZE];
        file.read_exact_at(&mut page, 0).ok()?;
        let header = Header::decode(&page).ok()?;
        let now = state(&File::open(dir.path()).ok()?).ok()?;
        let mut index = Self::with_room(0, 0);
        index.file = Some(file);
        let valid = (header.dir, header.stamp) == now;
        index.header = header;
        valid.then_some(index)
    }

    /// Writes what has changed, and ties the index to the directory's present state. If that fails, the index simply
    /// does not hold for it, and the next command reads the leases themselves.
    pub(crate) fn commit(&mut self, dir: &Dir) -> io::Result<()> {
        let file = match self.file.take() {
            Some(file) => file,
            None => self.create(dir)?,
        };
        self.changed.sort_unstable();
        self.changed.dedup();
        for number in &self.changed {
            let page = match number.checked_sub(self.header.buckets) {
                None => self.buckets.get(number).map(|b| b.encode(*number)),
                Some(chunk) => match self.chunks.get(&chunk) {
                    Some(Some(chunk)) => Some(chunk.encode(*number)),
                    _ => None,
                },
            };
            if let Some(page) = page {
                file.write_all_at(&page, offset(*number))?;
            }
        }
        (self.header.dir, self.header.stamp) = stamp(dir)?;
        file.write_all_at(&self.header.encode(), 0)?;
        self.changed.clear();
        self.file = Some(file);
        Ok(())
    }

    /// A new file, with holes for pages that are empty. It replaces the old one at once: it is not valid yet.
    fn create(&self, dir: &Dir) -> io::Result<File> {
        if is_remote(dir)? {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let pages = 1 + u64::from(self.header.buckets) + u64::from(self.header.chunks);
        let path = dir.path().join(INDEX_FILE);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        file.set_len(pages * SIZE as u64)?;
        Ok(file)
    }

    pub(super) fn bucket(&mut self, number: u32) -> Result<&mut Bucket, Unusable> {
        if !self.buckets.contains_key(&number) {
            let bucket = match self.read(number)? {
                Some(page) => Bucket::decode(number, &page)?,
                None => Bucket::default(),
            };
            self.buckets.insert(number, bucket);
        }
        self.buckets.get_mut(&number).ok_or(Unusable)
    }

    pub(super) fn chunk(&mut self, number: u32) -> Result<&Option<Chunk>, Unusable> {
        if !self.chunks.contains_key(&number) {
            let place = number + self.header.buckets;
            let chunk = match self.read(place)? {
                Some(page) => Chunk::decode(place, &page)?,
                None => None,
            };
            self.chunks.insert(number, chunk);
        }
        self.chunks.get(&number).ok_or(Unusable)
    }

    fn read(&self, number: u32) -> Result<Option<[u8; SIZE]>, Unusable> {
        let Some(file) = &self.file else {
            return Ok(None);
        };
        let mut page = [0; SIZE];
        file.read_exact_at(&mut page, offset(number))
            .map_err(|_| Unusable)?;
        Ok(Some(page))
    }
}

fn offset(number: u32) -> u64 {
    (u64::from(number) + 1) * SIZE as u64
}

/// Whether another machine, or a program, may change the directory without our kernel's noticing.
fn is_remote(dir: &Dir) -> io::Result<bool> {
    /// Plan 9, SMB 2, CIFS and Ceph, as in the kernel's `linux/magic.h` and their own headers.
    const OTHERS: [u32; 4] = [0x0102_1997, 0xfe53_4d42, 0xff53_4d42, 0x00c3_6400];
    let kind = statfs(dir.path())?.filesystem_type();
    let known = [
        AFS_SUPER_MAGIC,
        CODA_SUPER_MAGIC,
        FUSE_SUPER_MAGIC,
        NFS_SUPER_MAGIC,
        SMB_SUPER_MAGIC,
    ];
    Ok(known.contains(&kind) || OTHERS.iter().any(|magic| kind == FsType(*magic as _)))
}

type State = ((u64, u64), (i64, i64));

fn state(dir: &File) -> io::Result<State> {
    let meta = dir.metadata()?;
    Ok(((meta.dev(), meta.ino()), (meta.mtime(), meta.mtime_nsec())))
}

/// Gives the directory a modification time that nobody else gives it.
///
/// The kernel stamps changes with its tick, so two in one tick look alike. A time one second ago, to the nanosecond, is
/// never stamped by a change that comes after this one. File systems that do not keep nanoseconds get no index.
fn stamp(dir: &Dir) -> io::Result<State> {
    let own = SystemTime::now()
        .checked_sub(Duration::from_secs(1))
        .ok_or(io::ErrorKind::Unsupported)?;
    let dir = File::open(dir.path())?;
    dir.set_times(FileTimes::new().set_modified(own))?;
    if dir.metadata()?.modified()? == own {
        state(&dir)
    } else {
        Err(io::ErrorKind::Unsupported.into())
    }
}
