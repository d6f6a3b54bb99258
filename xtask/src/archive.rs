//! Archives that are the same whoever makes them, and when: sorted, owned by root, one time for all.

use std::io::Write;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use crate::error::{Doing, Error};

/// A file of an archive.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it goes, without a slash in front.
    pub path: String,
    /// Its permissions.
    pub mode: u32,
    /// What is in it.
    pub bytes: Vec<u8>,
}

impl Entry {
    /// A file that anybody may read.
    pub fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            path: path.into(),
            mode: 0o644,
            bytes: bytes.into(),
        }
    }

    /// A program.
    pub fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(path, bytes)
        }
    }
}

/// A compressed tar archive of these files and the directories that lead to them. Every name begins with `./`, as in the
/// reference set's: there are scripts that take single members out by such names.
pub fn tgz(mut entries: Vec<Entry>, epoch: u64) -> Result<Vec<u8>, Error> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let mut archive = Builder::new(Vec::new());
    let mut known = Vec::new();
    for entry in &entries {
        for directory in directories(&entry.path) {
            if !known.contains(&directory) {
                let header = header(&directory, EntryType::Directory, 0o755, 0, epoch)?;
                append(&mut archive, &header, &[])?;
                known.push(directory);
            }
        }
        let size = entry.bytes.len() as u64;
        let path = format!("./{}", entry.path);
        let header = header(&path, EntryType::Regular, entry.mode, size, epoch)?;
        append(&mut archive, &header, &entry.bytes)?;
    }
    gzip(&archive.into_inner().doing(|| "end an archive".to_owned())?)
}

/// `./`, `./usr/`, `./usr/lib/`, … of a path.
fn directories(path: &str) -> Vec<String> {
    let ends = path.match_indices('/').map(|(at, _)| at + 1);
    std::iter::once(0)
        .chain(ends)
        .filter_map(|end| path.get(..end))
        .map(|part| format!("./{part}"))
        .collect()
}

fn header(path: &str, kind: EntryType, mode: u32, size: u64, epoch: u64) -> Result<Header, Error> {
    let mut header = Header::new_gnu();
    // Not by `set_path`, which takes the `./` away.
    let name = &mut header.as_old_mut().name;
    name.get_mut(..path.len())
        .ok_or_else(|| std::io::Error::other("the name is too long"))
        .doing(|| format!("put {path} into an archive"))?
        .copy_from_slice(path.as_bytes());
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(epoch);
    header.set_uid(0);
    header.set_gid(0);
    for set in [Header::set_username, Header::set_groupname] {
        set(&mut header, "root").doing(|| format!("put {path} into an archive"))?;
    }
    header.set_cksum();
    Ok(header)
}

fn append(archive: &mut Builder<Vec<u8>>, header: &Header, bytes: &[u8]) -> Result<(), Error> {
    archive
        .append(header, bytes)
        .doing(|| "write an archive".to_owned())
}

/// Compressed bytes, without name and time.
pub fn gzip(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut writer = GzBuilder::new().write(Vec::new(), Compression::best());
    writer
        .write_all(bytes)
        .and_then(|()| writer.finish())
        .doing(|| "compress".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn names(bytes: &[u8]) -> Vec<(String, u32)> {
        let mut tar = Vec::new();
        flate2::read::GzDecoder::new(bytes)
            .read_to_end(&mut tar)
            .unwrap();
        let mut archive = tar::Archive::new(tar.as_slice());
        let entries = archive.entries().unwrap();
        entries
            .map(|entry| {
                let entry = entry.unwrap();
                let name = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
                (name, entry.header().mode().unwrap())
            })
            .collect()
    }

    #[test]
    fn names_begin_as_the_reference_sets_do() {
        let entries = vec![Entry::program("b/c", "x"), Entry::file("a", "")];
        let expected = [
            ("./", 0o755),
            ("./a", 0o644),
            ("./b/", 0o755),
            ("./b/c", 0o755),
        ];
        let expected = expected.map(|(name, mode)| (name.to_owned(), mode));
        assert_eq!(names(&tgz(entries, 7).unwrap()), expected);
    }

    #[test]
    fn the_order_of_the_entries_does_not_matter() {
        let entries = vec![Entry::file("a", "1"), Entry::file("b", "2")];
        let reversed = entries.iter().rev().cloned().collect();
        assert_eq!(tgz(entries, 7).unwrap(), tgz(reversed, 7).unwrap());
    }
}
