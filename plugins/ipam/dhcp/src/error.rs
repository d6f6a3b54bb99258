//! What can go wrong with the plugin, and with which CNI code.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use cni_types::code;
use ipnetwork::IpNetwork;
use skel::PluginError;

use crate::books::BooksError;
use crate::config::ConfigError;
use crate::gob::GobError;

/// A failed command.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The daemon does not run, or cannot be talked to.
    #[error("cannot reach the DHCP daemon at {socket}: {source}", socket = .socket.display())]
    Unreachable {
        /// Its socket.
        socket: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// STATUS: the same.
    #[error("{0}")]
    NotReady(Box<Error>),
    /// What answers at the socket is no DHCP daemon.
    #[error("what listens at {socket} is no DHCP daemon: {why}", socket = .socket.display())]
    Stranger {
        /// The socket.
        socket: PathBuf,
        /// What it said, or did not.
        why: String,
    },
    /// The daemon says no.
    #[error("DHCP daemon: {0}")]
    Refused(String),
    /// CHECK: lease and result say different things.
    #[error("the lease is for {lease}, but prevResult has [{}]", join(.result))]
    OtherAddress {
        /// What is leased.
        lease: IpNetwork,
        /// What should be.
        result: Vec<IpAddr>,
    },
    /// The daemon does not run, and its leases cannot be read or changed without it.
    #[error(transparent)]
    Books(#[from] BooksError),
}

impl Error {
    /// An answer that is no gob.
    pub(crate) fn stranger(socket: PathBuf, error: &GobError) -> Self {
        Self::Stranger {
            socket,
            why: error.to_string(),
        }
    }

    /// Whether it is the daemon that does not know what is asked of it.
    pub(crate) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Refused(why) if why.starts_with(crate::rpc::NO_METHOD))
    }
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::Config(_) => code::INVALID_NETWORK_CONFIG,
            Self::Unreachable { .. } => code::TRY_AGAIN_LATER,
            Self::NotReady(_) => code::PLUGIN_NOT_AVAILABLE,
            Self::Books(_) => code::IO_FAILURE,
            Self::Stranger { .. } | Self::Refused(_) | Self::OtherAddress { .. } => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::Unreachable { .. } => {
                "start it (dhcp daemon, or the units cni-dhcp.socket and cni-dhcp.service), or name its socket in ipam.daemonSocketPath".to_owned()
            }
            Self::NotReady(error) => error.details(),
            Self::Config(error) => match error {
                ConfigError::Decode(_) => "correct that key; the page of dhcp lists them all",
                ConfigError::NoIpam => {
                    "dhcp is no plugin of a list: name it as \"type\" in the \"ipam\" of another"
                }
                ConfigError::Option { .. } => "take one of these names, or the option's number",
                ConfigError::TooLong { .. } => "shorten the value in ipam.provide",
            }
            .to_owned(),
            Self::Stranger { socket, .. } => format!(
                "end what listens at {} (ss -xlp), or name another socket in ipam.daemonSocketPath",
                socket.display()
            ),
            Self::Refused(_) => {
                "the daemon's own log says more; a DHCP server must answer on that network".to_owned()
            }
            Self::OtherAddress { .. } => {
                "the lease has changed while the container ran; DEL it and ADD it again".to_owned()
            }
            Self::Books(_) => "see to that directory and its file system (ls -ld, df, mount)".to_owned(),
        }
    }
}

fn join(addresses: &[IpAddr]) -> String {
    let texts: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    texts.join(" ")
}
