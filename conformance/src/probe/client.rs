//! One question to a server.

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{Domain, Socket};

use super::{Seen, Transport};
use crate::error::{Context, Error, Result};
use crate::net::Netns;

/// Asks the server at `to` from a namespace who we are.
///
/// # Errors
/// Refused, unreachable, or no answer within `limit`.
pub fn ask(netns: &Netns, transport: Transport, to: SocketAddr, limit: Duration) -> Result<Seen> {
    exchange(netns, transport, &Origin::Any, to, limit)
}

/// Like [`ask`], from a certain local address.
///
/// # Errors
/// As [`ask`]; also when the address is not there.
pub fn ask_from(
    netns: &Netns,
    transport: Transport,
    from: SocketAddr,
    to: SocketAddr,
    limit: Duration,
) -> Result<Seen> {
    exchange(netns, transport, &Origin::Address(from), to, limit)
}

/// Like [`ask`], bound to a link: one to leave by, or a VRF.
///
/// # Errors
/// As [`ask`]; also when the link is not there.
pub fn ask_over(
    netns: &Netns,
    transport: Transport,
    link: &str,
    to: SocketAddr,
    limit: Duration,
) -> Result<Seen> {
    exchange(netns, transport, &Origin::Link(link), to, limit)
}

/// Where a question comes from.
enum Origin<'a> {
    /// The kernel's choice.
    Any,
    /// A local address.
    Address(SocketAddr),
    /// A link.
    Link(&'a str),
}

fn exchange(
    netns: &Netns,
    transport: Transport,
    from: &Origin<'_>,
    to: SocketAddr,
    limit: Duration,
) -> Result<Seen> {
    let reply = netns.run(|| {
        send_and_receive(transport, from, to, limit).doing(|| format!("{transport} to {to}"))
    })?;
    parse(&reply).ok_or_else(|| Error::Missing {
        what: format!("an answer in {reply:?} from {to}"),
    })
}

fn send_and_receive(
    transport: Transport,
    from: &Origin<'_>,
    to: SocketAddr,
    limit: Duration,
) -> io::Result<String> {
    let (kind, protocol) = transport.kind();
    let mut socket = Socket::new(Domain::for_address(to), kind, Some(protocol))?;
    match from {
        Origin::Any => {}
        Origin::Address(address) => socket.bind(&(*address).into())?,
        Origin::Link(link) => socket.bind_device(Some(link.as_bytes()))?,
    }
    socket.set_read_timeout(Some(limit))?;
    socket.connect_timeout(&to.into(), limit)?;
    let mut reply = vec![0_u8; 256];
    if transport == Transport::Udp {
        socket.send(b"who am I")?;
    }
    let length = socket
        .read(&mut reply)
        .map_err(|error| match error.kind() {
            // The bare text of a read timeout speaks of a resource.
            io::ErrorKind::WouldBlock => io::Error::new(io::ErrorKind::TimedOut, "no answer"),
            _ => error,
        })?;
    reply.truncate(length);
    String::from_utf8(reply).map_err(io::Error::other)
}

fn parse(reply: &str) -> Option<Seen> {
    let (server, peer) = reply.trim().rsplit_once(' ')?;
    let peer: IpAddr = peer.parse().ok()?;
    Some(Seen {
        server: server.to_owned(),
        peer,
    })
}
