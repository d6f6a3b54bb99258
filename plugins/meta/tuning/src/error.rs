//! What can go wrong in `tuning`.

use std::io;
use std::path::PathBuf;

use cni_types::code;
use cni_types::json::DecodeError;
use skel::{DelegateError, PluginError};

/// What can go wrong in `tuning`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plugin stands alone or first in its list.
    #[error("Required prevResult missing")]
    NoPrevResult,
    /// A key is not of its type.
    #[error("invalid {key}: {source}")]
    Key {
        /// The key.
        key: &'static str,
        /// What is wrong with it.
        source: DecodeError,
    },
    /// `txQLen` is no number of packets.
    #[error("invalid txQLen {0}: a queue holds 0 packets or more")]
    QueueLen(i64),
    /// The object `sysctl` has a key twice.
    #[error("duplicated sysctl keys [{}]", .0.join(" "))]
    RepeatedSysctls(Vec<String>),
    /// Two spellings of one sysctl, with two values.
    #[error("sysctls {0:?} and {1:?} are the same setting, with different values")]
    Contradiction(String, String),
    /// A sysctl that is not of the network.
    #[error("invalid net sysctl key: {0:?}")]
    SysctlKey(String),
    /// A sysctl whose value has several lines, of which the kernel reads the first.
    #[error("invalid value {value:?} of sysctl {key}: it has several lines")]
    SysctlLines {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A sysctl that the node's list does not have.
    #[error("sysctl {key} is not allowed. Only the following are allowed: [{}]", .allowed.join(" "))]
    NotAllowed {
        /// The key.
        key: String,
        /// The list.
        allowed: Vec<String>,
    },
    /// The node's list cannot be used.
    #[error("cannot use the list of allowed sysctls {}: {why}", .path.display())]
    Allowlist {
        /// Its file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The kernel refused a setting.
    #[error("cannot use sysctl {key}: {source}")]
    Sysctl {
        /// The key.
        key: String,
        /// What the kernel said.
        source: netlink::Error,
    },
    /// The interface is not there.
    #[error("interface {0:?} not found in the container")]
    NoInterface(String),
    /// The interface has no MAC address that could be changed and put back.
    #[error("interface {0:?} has no MAC address of six bytes")]
    NoMac(String),
    /// What was there before cannot be written down.
    #[error("cannot {what} {}: {source}", .path.display())]
    Backup {
        /// The verb.
        what: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The backup's file belongs to another attachment.
    #[error("{} holds the settings of {owner}", .path.display())]
    ForeignBackup {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: String,
    },
    /// What every plugin refuses about an interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
    /// The kernel refused.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// CHECK: something is not as ADD left it.
    #[error("{0}")]
    Check(String),
    /// STATUS: an ADD would fail.
    #[error("tuning cannot work: {0}")]
    NotReady(Box<Error>),
    /// Several things failed, each while the others were gone on with.
    #[error("{}", skel::listed(.0))]
    Several(Vec<Error>),
}

impl Error {
    /// One error for all of them; none is success.
    pub(crate) fn join(errors: Vec<Self>) -> Result<(), Self> {
        skel::join(errors, Self::Several)
    }
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::Key { .. }
            | Self::QueueLen(_)
            | Self::RepeatedSysctls(_)
            | Self::Contradiction(..)
            | Self::SysctlKey(_)
            | Self::SysctlLines { .. }
            | Self::NotAllowed { .. } => code::INVALID_NETWORK_CONFIG,
            Self::Netlink(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                code::INVALID_NETNS
            }
            Self::Interface(error) => error.code(),
            Self::NotReady(_) => code::PLUGIN_NOT_AVAILABLE,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::NoPrevResult => "put tuning after a plugin that makes an interface".to_owned(),
            Self::SysctlKey(_) => "only settings below net can be changed".to_owned(),
            Self::SysctlLines { .. } => "give one line; numbers are separated by blanks".to_owned(),
            Self::NotAllowed { .. } => {
                "/etc/cni/tuning/allowlist.conf lists what this node allows".to_owned()
            }
            Self::Sysctl { source, .. } if source.is_not_found() => {
                "the kernel has no such setting in the container's network namespace".to_owned()
            }
            Self::ForeignBackup { .. } => {
                "choose another dataDir for one of the two, or other container ids".to_owned()
            }
            Self::Interface(error) => error.details(),
            Self::NotReady(error) => error.details(),
            Self::Key { .. } => "correct that key; the page of tuning lists them all".to_owned(),
            Self::QueueLen(_) => "correct txQLen, or leave it out".to_owned(),
            Self::RepeatedSysctls(_) | Self::Contradiction(..) => "keep one of them".to_owned(),
            Self::Allowlist { path, .. } => format!(
                "make {} a file with a regular expression per line, or take it away to allow everything below net",
                path.display()
            ),
            Self::NoInterface(_) | Self::NoMac(_) => {
                "put tuning after the plugin that makes this interface".to_owned()
            }
            Self::Backup { path, .. } => format!(
                "see to {} and its file system (ls -ld, df, mount), or name another \"dataDir\"",
                path.display()
            ),
            Self::Check(_) => {
                "somebody has changed it since the ADD; DEL and ADD set it anew".to_owned()
            }
            Self::Sysctl { source, .. } => source.next_step(),
            Self::Netlink(error) => error.next_step(),
            Self::Several(errors) => errors.first().map(PluginError::details).unwrap_or_default(),
        }
    }

    fn delegated(&self) -> Option<&DelegateError> {
        None
    }
}
