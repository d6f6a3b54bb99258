//! The file that remembers what an interface was like before it was changed.
//!
//! It is the reference set's file, name and content: either set can restore what the other has changed. One key is
//! ours, `owner`, which the reference set does not read. It tells GC whose the file is, since the name has no network
//! in it, and tells apart `a_b` + `c` from `a` + `b_c`.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use cni_types::json;
use netfilter::Owner;
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use skel::log;

use crate::error::Error;

/// Longer files are no backups.
const MAX_CONTENT: u64 = 64 << 10;

/// What an interface had where something is changed about it. The names are the reference set's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Originals {
    /// Its MAC address; empty if that was not changed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub mac: String,
    /// Whether it was in promiscuous mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub promisc: Option<bool>,
    /// Its MTU, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<i64>,
    /// Whether it received all multicast frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allmulti: Option<bool>,
    /// The length of its transmit queue, in packets.
    #[serde(rename = "txQLen", skip_serializing_if = "Option::is_none")]
    pub tx_queue_len: Option<i64>,
}

impl Originals {
    /// These, and the others where these say nothing.
    fn or(self, others: Self) -> Self {
        Self {
            mac: if self.mac.is_empty() {
                others.mac
            } else {
                self.mac
            },
            promisc: self.promisc.or(others.promisc),
            mtu: self.mtu.or(others.mtu),
            allmulti: self.allmulti.or(others.allmulti),
            tx_queue_len: self.tx_queue_len.or(others.tx_queue_len),
        }
    }
}

/// Whose a backup is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Named {
    network: String,
    #[serde(rename = "containerID")]
    container_id: String,
    ifname: String,
}

impl Named {
    fn is(&self, owner: &Owner) -> bool {
        self.container_id == owner.container_id && self.ifname == owner.ifname
    }
}

/// The whole file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Content {
    owner: Option<Named>,
}

/// A file as it is written.
#[derive(Serialize)]
struct Written<'a> {
    #[serde(skip_serializing_if = "String::is_empty")]
    mac: &'a String,
    #[serde(skip_serializing_if = "Option::is_none")]
    promisc: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allmulti: Option<bool>,
    #[serde(rename = "txQLen", skip_serializing_if = "Option::is_none")]
    tx_queue_len: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<&'a Named>,
}

/// The backup of one attachment.
#[derive(Debug, Clone)]
pub struct Backup {
    directory: PathBuf,
    owner: Owner,
}

/// What a backup's file was before it was written.
#[derive(Debug)]
pub struct Former(Option<Vec<u8>>);

impl Backup {
    /// The one in that directory.
    pub fn new(directory: &Path, owner: &Owner) -> Self {
        Self {
            directory: directory.to_owned(),
            owner: owner.clone(),
        }
    }

    fn path(&self) -> PathBuf {
        let Owner {
            container_id,
            ifname,
            ..
        } = &self.owner;
        self.directory.join(format!("{container_id}_{ifname}.json"))
    }

    /// The file before it has its name. It is whole or it has this name, which tells whose it is.
    fn unfinished(&self) -> PathBuf {
        let name = format!("{UNFINISHED}{}", self.owner.instance_hash());
        self.directory.join(name)
    }

    /// What is remembered; none if nothing is, or nothing that is ours.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn read(&self) -> Result<Option<Originals>, Error> {
        let Some(bytes) = self.bytes()? else {
            return Ok(None);
        };
        let found = parse(&bytes);
        if found.is_none() {
            log::warn(format_args!("tuning: {} is damaged", self.path().display()));
        }
        Ok(found
            .filter(|(_, owner)| owner.as_ref().is_none_or(|o| o.is(&self.owner)))
            .map(|(originals, _)| originals))
    }

    fn bytes(&self) -> Result<Option<Vec<u8>>, Error> {
        match read(&self.path()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_absence(&error) => Ok(None),
            Err(source) => Err(failed("read", &self.path())(source)),
        }
    }

    /// Remembers what an interface is like. What is remembered already stays: it is from before an earlier change.
    ///
    /// # Errors
    /// If the file cannot be written, or belongs to somebody else.
    pub fn save(&self, now: Originals) -> Result<Former, Error> {
        let former = self.bytes()?;
        let known = former.as_deref().and_then(parse);
        if let Some((_, Some(owner))) = &known
            && !owner.is(&self.owner)
        {
            return Err(Error::ForeignBackup {
                path: self.path(),
                owner: format!(
                    "container {}, interface {}",
                    owner.container_id, owner.ifname
                ),
            });
        }
        let originals = known.map_or(now.clone(), |(earlier, _)| earlier.or(now));
        self.write(&originals)?;
        Ok(Former(former))
    }

    fn write(&self, originals: &Originals) -> Result<(), Error> {
        let owner = Named {
            network: self.owner.network.clone(),
            container_id: self.owner.container_id.clone(),
            ifname: self.owner.ifname.clone(),
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(failed("create directory", &self.directory))?;
        self.replace(print(originals, Some(&owner)).as_bytes())
    }

    /// Gives the file this content, at once.
    fn replace(&self, content: &[u8]) -> Result<(), Error> {
        let unfinished = self.unfinished();
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(OFlag::O_NOFOLLOW.bits())
            .open(&unfinished)
            .and_then(|mut file| file.write_all(content))
            .and_then(|()| fs::rename(&unfinished, self.path()));
        written.map_err(|source| {
            let _ = fs::remove_file(&unfinished);
            failed("write", &self.path())(source)
        })
    }

    /// Makes the file what it was before [`save`](Self::save).
    ///
    /// # Errors
    /// If the file cannot be written or removed.
    pub fn put_back(&self, former: &Former) -> Result<(), Error> {
        match &former.0 {
            Some(content) => self.replace(content),
            None => self.remove(),
        }
    }

    /// Forgets what is remembered for this attachment.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn remove(&self) -> Result<(), Error> {
        remove(&self.unfinished())?;
        let foreign = self
            .bytes()?
            .as_deref()
            .and_then(parse)
            .is_some_and(|(_, owner)| owner.is_some_and(|o| !o.is(&self.owner)));
        if foreign {
            return Ok(());
        }
        remove(&self.path())
    }
}

/// How the name of a file begins that is being written.
const UNFINISHED: &str = ".ferrule-";

/// Removes the backups of a network that belong to none of the valid attachments. Files that do not tell their network,
/// as those of the reference set, stay.
///
/// # Errors
/// Each file that cannot be removed, after all were tried.
pub fn collect(directory: &Path, network: &str, valid: &[Owner]) -> Result<(), Error> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(()),
        Err(source) => return Err(failed("read directory", directory)(source)),
    };
    let unfinished = format!("{UNFINISHED}{}-", netfilter::network_hash(network));
    let living: Vec<String> = valid
        .iter()
        .map(|o| format!("{UNFINISHED}{}", o.instance_hash()))
        .collect();
    let mut errors = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed("read directory", directory))?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        let stale = if name.starts_with(&unfinished) {
            !living.iter().any(|one| one == name)
        } else {
            name.ends_with(".json") && is_stale(&path, network, valid)
        };
        if stale {
            errors.extend(remove(&path).err());
        }
    }
    Error::join(errors)
}

fn is_stale(path: &Path, network: &str, valid: &[Owner]) -> bool {
    let owner = read(path)
        .ok()
        .and_then(|bytes| parse(&bytes))
        .and_then(|(_, owner)| owner);
    owner.is_some_and(|owner| owner.network == network && !valid.iter().any(|one| owner.is(one)))
}

/// Whether files could be made in that directory, or in the one that it would be made in.
///
/// # Errors
/// Why not.
pub fn require_writable(directory: &Path) -> Result<(), Error> {
    use nix::unistd::{AccessFlags, access};
    for place in directory.ancestors() {
        let place = if place.as_os_str().is_empty() {
            Path::new(".")
        } else {
            place
        };
        let usable = match fs::metadata(place) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => Err(error),
            Ok(file) if !file.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
            Ok(_) => access(place, AccessFlags::W_OK | AccessFlags::X_OK).map_err(Into::into),
        };
        return usable.map_err(failed("write to", place));
    }
    Ok(())
}

/// One blank for each level, no line break at the end, as the reference set has it.
fn print(originals: &Originals, owner: Option<&Named>) -> String {
    let written = Written {
        mac: &originals.mac,
        promisc: originals.promisc,
        mtu: originals.mtu,
        allmulti: originals.allmulti,
        tx_queue_len: originals.tx_queue_len,
        owner,
    };
    let mut bytes = Vec::new();
    let format = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, format);
    // Neither a map with odd keys nor a writer that can fail is in it.
    let _ = written.serialize(&mut serializer);
    String::from_utf8(bytes).unwrap_or_default()
}

fn parse(bytes: &[u8]) -> Option<(Originals, Option<Named>)> {
    let value = json::parse(bytes).ok()?;
    let content: Content = json::from_value(&value).ok()?;
    Some((json::from_value(&value).ok()?, content.owner))
}

/// Reads a small regular file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NONBLOCK | OFlag::O_NOFOLLOW).bits())
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Ok(Vec::new());
    }
    let mut bytes = Vec::new();
    file.take(MAX_CONTENT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if !is_absence(&error) => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

/// Nothing can be there: no such file, no such directory, or a name that no file can have.
fn is_absence(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename
    )
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Backup { what, path, source }
}
