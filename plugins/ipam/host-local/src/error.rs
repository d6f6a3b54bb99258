//! What can go wrong, and with which CNI code.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use cni_types::{CniError, code};
use ipam_store::Owner;
use skel::PluginError;

use crate::config::ConfigError;

/// A failed command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// `CNI_ARGS` cannot be read.
    #[error("{}", .0.msg)]
    Args(CniError),
    /// The `resolvConf` file cannot be used.
    #[error("cannot read resolvConf {path}: {source}", path = .path.display())]
    ResolvConf {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The leases could not be read or changed, or there is no address to give.
    #[error(transparent)]
    Store(#[from] ipam_store::Error),
    /// CHECK: the attachment has no lease.
    #[error("{owner} has no lease in {dir}", dir = .dir.display())]
    NoLease {
        /// The attachment.
        owner: Owner,
        /// The network's directory.
        dir: PathBuf,
    },
    /// CHECK: leases and result say different things.
    #[error("{owner} has leases for [{leases}] in {dir}, but prevResult has [{result}]", leases = join(.leases), result = join(.result), dir = .dir.display())]
    OtherAddresses {
        /// The attachment.
        owner: Owner,
        /// What it has leases for.
        leases: Vec<IpAddr>,
        /// What it should have leases for.
        result: Vec<IpAddr>,
        /// The network's directory.
        dir: PathBuf,
    },
    /// STATUS: leases could not be written.
    #[error("no lease could be written: {0}")]
    Unwritable(ipam_store::Error),
    /// STATUS: every address is taken.
    #[error("no range set of the network can hand out an address")]
    Full {
        /// How many leases each set has, and the oldest owners.
        details: String,
    },
}

impl From<CniError> for Error {
    // By hand, because its whole text would be told as the cause of its `msg`.
    fn from(error: CniError) -> Self {
        Self::Args(error)
    }
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        use ipam_store::Error as Store;
        match self {
            Self::Config(_) => code::INVALID_NETWORK_CONFIG,
            Self::Args(error) => error.code,
            Self::Store(Store::Locked { .. } | Store::Exhausted { .. }) => code::TRY_AGAIN_LATER,
            Self::Store(Store::NotInRanges(_) | Store::Gateway { .. }) => {
                code::INVALID_NETWORK_CONFIG
            }
            Self::Store(Store::Io { .. }) | Self::ResolvConf { .. } => code::IO_FAILURE,
            Self::Unwritable(_) | Self::Full { .. } => code::PLUGIN_NOT_AVAILABLE,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        use ipam_store::Error as Store;
        match self {
            Self::Args(error) => error.details.clone(),
            Self::Full { details } => details.clone(),
            Self::Store(Store::Locked { path, .. }) => format!(
                "each command on the network takes the lock {} for a moment; end the process that keeps it, or try again later",
                path.display()
            ),
            Self::Store(Store::Exhausted { dir, .. }) => format!(
                "DEL attachments that are gone, run GC, or widen the range; each file in {} that has an address for a name holds one",
                dir.display()
            ),
            Self::Store(Store::Duplicate { owner, .. }) => format!(
                "if {owner} does not run any more, its DEL or a GC of the network frees the address"
            ),
            Self::Store(Store::InUse { .. }) => {
                "DEL that attachment, or ask for another address".to_owned()
            }
            Self::Store(Store::Gateway { .. }) => {
                "ask for another address, or name another \"gateway\" for the range".to_owned()
            }
            Self::Store(Store::NotInRanges(_)) => {
                "ask for an address inside \"ranges\", one for each range set".to_owned()
            }
            Self::Store(Store::Io { path, .. }) | Self::Unwritable(Store::Io { path, .. }) => format!(
                "see to {} and its file system (ls -ld, df, mount), or name another \"dataDir\"",
                path.display()
            ),
            Self::ResolvConf { .. } => "correct \"resolvConf\", or leave it out".to_owned(),
            Self::NoLease { .. } | Self::OtherAddresses { .. } => {
                "the lease was freed or given to another while the container ran; DEL it and ADD it again".to_owned()
            }
            Self::Config(error) => error.next_step(),
            _ => "cnitool doctor shows how the leases stand".to_owned(),
        }
    }
}

fn join(addresses: &[IpAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(" ")
}
