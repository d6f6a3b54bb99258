//! What can go wrong, with the data a caller needs to choose an error code.

use std::io;
use std::net::IpAddr;

use crate::intent::Protocol;
use crate::owner::Holder;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another live attachment publishes the port already.
    #[error(
        "{protocol} port {port}{} is already published by {holder}; stop that container or choose another host port",
        host_ip.map(|ip| format!(" of {ip}")).unwrap_or_default()
    )]
    PortTaken {
        /// The port on the host.
        port: u16,
        /// Its protocol.
        protocol: Protocol,
        /// The host address asked for, if it was a single one.
        host_ip: Option<IpAddr>,
        /// Who has it.
        holder: Box<Holder>,
    },
    /// One request publishes the same host port twice.
    #[error("{protocol} port {port} is published twice in one request")]
    PortRepeated {
        /// The port on the host.
        port: u16,
        /// Its protocol.
        protocol: Protocol,
    },
    /// A backend or a feature of it is not there: no tool, no bus, no kernel support, no permission.
    #[error("{what} is not available: {reason}")]
    Unavailable {
        /// The backend or feature.
        what: String,
        /// Why, and what would help.
        reason: String,
    },
    /// Others kept changing the rules, or held the lock, for longer than we wait. Trying again later may help.
    #[error("{what} is busy: {reason}")]
    Busy {
        /// What is busy.
        what: String,
        /// Who holds it or how long was waited.
        reason: String,
    },
    /// The caller asked for something that cannot be.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// The value's name and text.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// `verify`: something `apply` had made is not there any more.
    #[error("{what} is missing")]
    Missing {
        /// The object, as its backend names it.
        what: String,
    },
    /// The kernel refused.
    #[error("{what}: {source}{}", detail.as_ref().map(|text| format!(" ({text})")).unwrap_or_default())]
    Kernel {
        /// What was being done.
        what: String,
        /// The kernel's error number.
        source: io::Error,
        /// The kernel's own words, where it has any.
        detail: Option<String>,
    },
    /// The kernel sent something that cannot be read.
    #[error("cannot read the kernel's {what}")]
    Malformed {
        /// The object.
        what: String,
    },
    /// A file or a socket failed.
    #[error("{what}: {source}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A child process failed.
    #[error("{program} failed ({status}): {stderr}")]
    Child {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
        /// What it said.
        stderr: String,
    },
    /// Several independent things failed; all were tried.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Several(Vec<Error>),
}

impl Error {
    /// The kernel's error number behind this error, if there is one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Kernel { source, .. } | Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// What to do about it, in a sentence; empty where the text says it or nobody knows.
    pub fn next_step(&self) -> String {
        match self {
            Self::PortTaken { holder, .. } => format!(
                "if that container does not run any more, cnitool gc {} frees its ports",
                holder.network
            ),
            Self::PortRepeated { .. } => "take one of the two out of portMappings".to_owned(),
            Self::Unavailable { .. } => {
                "see to what is missing, or name another backend in the configuration (nftables, iptables)".to_owned()
            }
            Self::Busy { .. } => "try again later".to_owned(),
            Self::Invalid { .. } => "correct the configuration".to_owned(),
            Self::Missing { .. } => {
                "if a reload of the packet filter took it, cnitool reapply puts it back".to_owned()
            }
            Self::Kernel { .. } | Self::Malformed { .. } | Self::Io { .. } | Self::Child { .. } => {
                "cnitool doctor looks at the host's packet filter; CNI_LOG=stderr:debug shows the messages".to_owned()
            }
            Self::Several(errors) => errors.first().map(Self::next_step).unwrap_or_default(),
        }
    }

    /// Joins errors of steps that were all tried: `Ok` for none, the error itself for one.
    pub fn join(mut errors: Vec<Self>) -> Result<()> {
        match errors.len() {
            0 => Ok(()),
            1 => errors.pop().map_or(Ok(()), Err),
            _ => Err(Self::Several(errors)),
        }
    }

    /// The kernel lets only a namespace's administrator use its packet filter, even to look.
    pub(crate) fn no_permission() -> Self {
        let reason = "permission denied; CAP_NET_ADMIN is needed in this network namespace".into();
        Self::Unavailable {
            what: "nf_tables".into(),
            reason,
        }
    }

    /// An error number met while doing `what`.
    pub(crate) fn kernel(what: impl Into<String>, errno: i32) -> Self {
        Self::Kernel {
            what: what.into(),
            source: io::Error::from_raw_os_error(errno),
            detail: None,
        }
    }
}
