//! Remembered attachments, in files that every runtime on the host shares.
//!
//! `DIR/results/NETWORK-CONTAINER-IFNAME` holds one attachment as JSON. The name is ambiguous,
//! since each part may contain dashes, so a file counts only if its content names the attachment
//! asked for. Files of the first generation hold nothing but a result; those are believed.

mod attachment;
mod error;
mod file;
#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use cni_types::{Value, json};

pub use attachment::{Cached, Key};
pub use error::CacheError;

use super::RuntimeConf;
use error::Result;
use file::{Content, encode};

/// The directory of remembered attachments.
#[derive(Clone, Debug)]
pub struct Cache {
    results: PathBuf,
}

impl Cache {
    /// Where every runtime of the host remembers its attachments.
    pub const DEFAULT_DIR: &'static str = "/var/lib/cni";

    /// The cache in a directory, which need not exist yet.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Cache {
            results: dir.into().join("results"),
        }
    }

    /// The remembered attachment, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// When a file is there and cannot be read.
    pub fn get(&self, key: &Key) -> Result<Option<Cached>> {
        Ok(match self.read(&self.path(key))? {
            Some(Content::Attachment(cached)) if key.is(&cached) => Some(*cached),
            _ => None,
        })
    }

    /// The remembered result as it was stored, also out of a file of the first generation.
    pub(super) fn result(&self, key: &Key) -> Result<Option<Value>> {
        let path = self.path(key);
        let result = match self.read(&path)? {
            Some(Content::Attachment(cached)) => key.is(&cached).then_some(cached.result),
            Some(Content::Other(value)) => Some(value),
            Some(Content::Rubbish(source)) => return Err(CacheError::Damaged { path, source }),
            None => None,
        };
        Ok(result.filter(|result| !result.is_null()))
    }

    /// Makes sure that the attachment can be remembered, and says whether it is already.
    pub(super) fn claim(&self, key: &Key) -> Result<bool> {
        let path = self.path(key);
        match self.read(&path)? {
            Some(Content::Attachment(cached)) if !key.is(&cached) => Err(CacheError::Taken {
                path,
                network: cached.network,
                container_id: cached.container_id,
                ifname: cached.ifname,
            }),
            content => Ok(content.is_some()),
        }
    }

    /// Remembers an attachment. The file appears whole or not at all.
    pub(super) fn write(
        &self,
        key: &Key,
        config: &[u8],
        rt: &RuntimeConf,
        result: &Value,
    ) -> Result<()> {
        let text = json::to_string(&encode(key, config, rt, result));
        let path = self.path(key);
        let write = || -> io::Result<()> {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(&self.results)?;
            let mut file = tempfile::Builder::new()
                .prefix(".new-")
                .tempfile_in(&self.results)?;
            file.write_all(text.as_bytes())?;
            file.persist(&path)?;
            Ok(())
        };
        write().map_err(|source| CacheError::Io {
            action: "write",
            path: path.clone(),
            source,
        })
    }

    /// Forgets an attachment, but not another one whose file has the same name.
    pub(super) fn remove(&self, key: &Key) -> Result<()> {
        let path = self.path(key);
        if let Ok(Some(Content::Attachment(cached))) = self.read(&path)
            && !key.is(&cached)
        {
            return Ok(());
        }
        match fs::remove_file(&path) {
            Err(source) if !is_absent(&source) => Err(CacheError::Io {
                action: "remove",
                path,
                source,
            }),
            _ => Ok(()),
        }
    }

    /// Every remembered attachment, by file name. Files that hold none are passed over.
    ///
    /// # Errors
    ///
    /// When the directory is there and cannot be read.
    pub fn attachments(&self) -> Result<Vec<Cached>> {
        let failed = |source| CacheError::Io {
            action: "read",
            path: self.results.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.results) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry.map_err(failed)?.path());
        }
        paths.sort();
        Ok(paths
            .iter()
            .filter_map(|path| match self.read(path) {
                Ok(Some(Content::Attachment(cached))) => Some(*cached),
                _ => None,
            })
            .collect())
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.results.join(key.file_name())
    }

    fn read(&self, path: &Path) -> Result<Option<Content>> {
        let bytes = match fs::read(path) {
            Err(error) if is_absent(&error) => return Ok(None),
            Err(source) => {
                return Err(CacheError::Io {
                    action: "read",
                    path: path.to_owned(),
                    source,
                });
            }
            Ok(bytes) => bytes,
        };
        Ok(Some(Content::of(&bytes)))
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound)
}
