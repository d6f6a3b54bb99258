//! Why the cache cannot be read or written.

use std::io;
use std::path::PathBuf;

use cni_types::json::ParseError;

/// The cache cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The system says no.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Read, write, or the like.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file holds neither an attachment nor a result.
    #[error("{} is damaged: {source}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: ParseError,
    },
    /// Another attachment has a file of the same name.
    #[error("{} belongs to {container_id} {ifname} of network {network:?}; delete that attachment first", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
        /// Whose it is: the network.
        network: String,
        /// The container.
        container_id: String,
        /// The interface.
        ifname: String,
    },
}

pub(super) type Result<T> = std::result::Result<T, CacheError>;
