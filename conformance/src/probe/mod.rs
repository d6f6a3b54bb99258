//! Real packets between namespaces, and what the far end saw.
//!
//! A [`Server`] is listening when `start` returns, so nothing here waits for readiness. It answers
//! every client with its own name and the client's address as it arrived, which is how a probe
//! tells a masqueraded connection from one whose source was kept.

mod client;
mod icmp;
mod server;

use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use socket2::{Protocol, Type};

pub use client::{ask, ask_from, ask_over};
pub use icmp::ping;
pub use server::Server;

/// How long an answer may take that is expected to come. Only failures wait this long.
pub const PATIENCE: Duration = Duration::from_secs(3);

/// How long to wait for an answer that must not come.
pub const BRIEFLY: Duration = Duration::from_millis(400);

/// A transport protocol.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Transport {
    /// TCP.
    Tcp,
    /// UDP; a single datagram each way, because the first packet has to get through.
    Udp,
    /// SCTP, where the kernel has it.
    Sctp,
}

impl Transport {
    fn kind(self) -> (Type, Protocol) {
        match self {
            Self::Tcp => (Type::STREAM, Protocol::TCP),
            Self::Udp => (Type::DGRAM, Protocol::UDP),
            Self::Sctp => (Type::STREAM, Protocol::SCTP),
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        })
    }
}

/// What a server told its client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Seen {
    /// Name of the server that answered.
    pub server: String,
    /// The client's address as the server saw it.
    pub peer: IpAddr,
}
