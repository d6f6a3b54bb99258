//! The leases on disk: a file each, in a directory beside the daemon's socket, so that they outlive the daemon.
//!
//! Whoever holds the lock in the directory may write there: the daemon as long as it runs, else a plugin for the length
//! of a DEL or GC. The format is in `docs/dhcp.md`.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha512};
use skel::log;

use crate::lease::Lease;
use crate::packet::Client;

/// The format that is written, and the only one that is read.
const FORMAT: u32 = 1;
const LOCK: &str = "lock";
const SUFFIX: &str = ".lease";
/// Longer files are no leases, in bytes.
const FILE_LIMIT: u64 = 1 << 20;

/// The attachment that a lease is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Key {
    /// The container.
    #[serde(rename = "containerID")]
    pub container_id: String,
    /// The network.
    pub network: String,
    /// The interface in the container.
    pub ifname: String,
}

impl Key {
    /// The text by which servers know the attachment, the same as the reference set's.
    pub fn text(&self) -> String {
        format!("{}/{}/{}", self.container_id, self.network, self.ifname)
    }

    /// The first hexadecimal digits of the text's SHA-512.
    pub fn digest(&self, digits: usize) -> String {
        let digest = Sha512::digest(self.text());
        let hex = digest.iter().map(|byte| format!("{byte:02x}"));
        hex.collect::<String>().chars().take(digits).collect()
    }

    fn file(&self) -> String {
        format!("{}{SUFFIX}", self.digest(32))
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text())
    }
}

/// The interface that a lease is for: its namespace, and what it is in there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Seat {
    /// The namespace's path, as the plugin was given it.
    pub netns: PathBuf,
    /// Its device and inode.
    pub identity: (u64, u64),
    /// The interface's index.
    pub index: u32,
}

/// A lease, and everything that is needed to keep it or give it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    format: u32,
    /// The start of the machine that times are counted from.
    pub boot: String,
    /// Whose it is.
    #[serde(rename = "attachment")]
    pub key: Key,
    /// Where it is used.
    pub seat: Seat,
    /// By which client it was asked for.
    pub client: Client,
    /// The metric of its routes.
    pub priority: i64,
    /// Whether it has ended, and its address has been taken off the interface.
    pub lost: bool,
    /// What was granted.
    pub lease: Lease,
}

impl Record {
    /// A record of a lease that is in use.
    pub fn new(key: &Key, seat: &Seat, client: &Client, priority: i64, lease: &Lease) -> Self {
        Self {
            format: FORMAT,
            boot: crate::clock::boot(),
            key: key.clone(),
            seat: seat.clone(),
            client: client.clone(),
            priority,
            lost: false,
            lease: lease.clone(),
        }
    }
}

/// The directory for the daemon with that socket.
pub fn directory(socket: &Path) -> PathBuf {
    let mut name = socket.as_os_str().to_owned();
    name.push(".leases");
    name.into()
}

/// Why the books cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BooksError {
    /// The daemon, or another plugin, is at it.
    #[error("the leases in {dir} are {source}", dir = .dir.display())]
    Held {
        /// The directory.
        dir: PathBuf,
        /// Who holds them.
        source: flock::Error,
    },
    /// The system refused.
    #[error("cannot {what} {path}: {source}", path = .path.display())]
    Io {
        /// The verb.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BooksError {
    let path = path.to_owned();
    move |source| BooksError::Io { what, path, source }
}

/// The leases of one daemon, locked.
#[derive(Debug)]
pub struct Books {
    dir: PathBuf,
    _lock: File,
}

impl Books {
    /// Opens and locks the books, waiting so long at most for another to be done with them. They are made if they are
    /// not there.
    pub fn create(dir: &Path, wait: Duration) -> Result<Self, BooksError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(failed("create", dir))?;
        Self::lock(dir, wait)
    }

    /// As [`create`](Self::create), but `None` if they are not there.
    pub fn open(dir: &Path, wait: Duration) -> Result<Option<Self>, BooksError> {
        if dir.is_dir() {
            Self::lock(dir, wait).map(Some)
        } else {
            Ok(None)
        }
    }

    /// Whether there is a lease of the attachment. Needs no lock, and so may be out of date.
    pub fn mention(dir: &Path, key: &Key) -> bool {
        dir.join(key.file()).exists()
    }

    fn lock(dir: &Path, wait: Duration) -> Result<Self, BooksError> {
        let path = dir.join(LOCK);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed("open", &path))?;
        let lock = flock::acquire(file, wait).map_err(|source| BooksError::Held {
            dir: dir.to_owned(),
            source,
        })?;
        Ok(Self {
            dir: dir.to_owned(),
            _lock: lock,
        })
    }

    /// All leases. Files that hold none are left alone.
    pub fn all(&self) -> Result<Vec<Record>, BooksError> {
        let listing = fs::read_dir(&self.dir).map_err(failed("list", &self.dir))?;
        let mut records = Vec::new();
        for entry in listing {
            let path = entry.map_err(failed("list", &self.dir))?.path();
            let ours = path
                .file_name()
                .is_some_and(|name| name.to_str().is_some_and(|name| name.ends_with(SUFFIX)));
            if ours {
                records.extend(read(&path));
            }
        }
        Ok(records)
    }

    /// The lease of one attachment.
    pub fn find(&self, key: &Key) -> Option<Record> {
        read(&self.dir.join(key.file())).filter(|record| record.key == *key)
    }

    /// Writes a lease, whole or not at all.
    pub fn write(&self, record: &Record) -> Result<(), BooksError> {
        let path = self.dir.join(record.key.file());
        let new = self.dir.join(".new");
        let text =
            serde_json::to_vec(record).map_err(|error| failed("write", &path)(error.into()))?;
        let written = OpenOptions::new()
            .create(true)
            .truncate(true)
            .write(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut file| io::Write::write_all(&mut file, &text))
            .and_then(|()| fs::rename(&new, &path));
        written.map_err(|error| {
            // Half a file is of no use to anybody.
            let _ = fs::remove_file(&new);
            failed("write", &path)(error)
        })
    }

    /// Removes a lease; it need not be there.
    pub fn remove(&self, key: &Key) -> Result<(), BooksError> {
        let path = self.dir.join(key.file());
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }
}

fn read(path: &Path) -> Option<Record> {
    let size = fs::symlink_metadata(path).ok()?;
    if !size.is_file() || size.len() > FILE_LIMIT {
        return None;
    }
    let text = fs::read(path).ok()?;
    let record = serde_json::from_slice::<Record>(&text)
        .map_err(|error| log::warn(format_args!("{} is no lease: {error}", path.display())))
        .ok()?;
    if record.format != FORMAT {
        log::warn(format_args!(
            "{} has format {}, which is not known here",
            path.display(),
            record.format
        ));
        return None;
    }
    Some(record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn record(id: &str) -> Record {
        let key = Key {
            container_id: id.into(),
            network: "n".into(),
            ifname: "eth0".into(),
        };
        let seat = Seat {
            netns: "/run/netns/c1".into(),
            identity: (4, 5),
            index: 6,
        };
        let client = Client {
            mac: [2, 0, 0, 0, 0, 0xff],
            id: b"\0c1/n/eth0".to_vec(),
            provide: vec![(12, b"web".to_vec())],
            request: vec![3, 1],
            broadcast: false,
        };
        let lease = Lease {
            address: Ipv4Addr::new(10, 0, 0, 2),
            prefix: 24,
            gateway: None,
            routes: Vec::new(),
            server: Ipv4Addr::new(10, 0, 0, 1),
            server_mac: [2; 6],
            since: 1,
            renew: Some(2),
            rebind: Some(3),
            expire: None,
        };
        Record::new(&key, &seat, &client, 7, &lease)
    }

    #[test]
    fn leases_are_found_again_and_nothing_else_is() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("dhcp.sock.leases");
        assert!(Books::open(&dir, Duration::ZERO).unwrap().is_none());
        let books = Books::create(&dir, Duration::ZERO).unwrap();
        let (one, two) = (record("one"), record("two"));
        books.write(&one).unwrap();
        books.write(&two).unwrap();
        for (name, content) in [
            ("x.lease", "{"),
            ("y.lease", "{\"format\":2}"),
            ("z", "not a lease"),
        ] {
            fs::write(dir.join(name), content).unwrap();
        }
        fs::create_dir(dir.join("d.lease")).unwrap();
        let mut all = books.all().unwrap();
        all.sort_by(|a, b| a.key.cmp(&b.key));
        assert_eq!(all, [one.clone(), two.clone()]);
        assert_eq!(books.find(&one.key), Some(one.clone()));
        books.remove(&one.key).unwrap();
        books.remove(&one.key).unwrap();
        assert_eq!(books.find(&one.key), None);
        assert_eq!(books.find(&two.key), Some(two));
    }

    #[test]
    fn only_one_is_at_it() {
        let dir = tempfile::tempdir().unwrap();
        let held = Books::create(dir.path(), Duration::ZERO).unwrap();
        let error = Books::open(dir.path(), Duration::ZERO).unwrap_err();
        assert!(matches!(error, BooksError::Held { .. }), "{error}");
        drop(held);
        assert!(Books::open(dir.path(), Duration::ZERO).unwrap().is_some());
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let text = serde_json::to_value(record("c1")).unwrap();
        assert_eq!(text["format"], 1);
        assert_eq!(text["attachment"]["containerID"], "c1");
        assert_eq!(text["seat"]["netns"], "/run/netns/c1");
        assert_eq!(text["client"]["mac"], "0200000000ff");
        assert_eq!(text["client"]["id"], "0063312f6e2f65746830");
        assert_eq!(text["lease"]["address"], "10.0.0.2");
        assert_eq!(text["lease"]["serverMac"], "020202020202");
        let page = include_str!("../../../../docs/dhcp.md");
        for part in ["attachment", "seat", "client", "lease"] {
            for key in text[part].as_object().unwrap().keys() {
                assert!(
                    page.contains(&format!("`{part}.{key}`")),
                    "{part}.{key} is not documented"
                );
            }
        }
        for key in text.as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{key}")), "{key} is not documented");
        }
    }
}
