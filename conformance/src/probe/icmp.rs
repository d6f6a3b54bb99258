//! Ping, over a raw socket (RFC 792 and RFC 4443).

use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{Context, Result};
use crate::net::Netns;

const IDENTIFIER: [u8; 2] = *b"fe";
const SEQUENCE: [u8; 2] = [0, 1];

/// Sends one echo request from a namespace and waits for its reply.
///
/// # Errors
/// When the address cannot be reached or does not answer within `limit`.
pub fn ping(netns: &Netns, to: IpAddr, limit: Duration) -> Result<()> {
    netns.run(|| echo(to, limit).doing(|| format!("ping {to}")))
}

fn echo(to: IpAddr, limit: Duration) -> io::Result<()> {
    let (domain, protocol, request, reply) = match to {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, 8, 0),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, 128, 129),
    };
    let mut socket = Socket::new(domain, Type::RAW, Some(protocol))?;
    socket.connect(&SocketAddr::new(to, 0).into())?;
    socket.send(&message(request))?;
    let end = Instant::now() + limit;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer"));
        }
        socket.set_read_timeout(Some(left))?;
        let mut packet = [0_u8; 256];
        match socket.read(&mut packet) {
            Ok(length) => {
                let packet = packet.get(..length).unwrap_or_default();
                if is_reply(to, packet, reply) {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn message(kind: u8) -> [u8; 8] {
    let [id_high, id_low] = IDENTIFIER;
    let [seq_high, seq_low] = SEQUENCE;
    let plain = [kind, 0, 0, 0, id_high, id_low, seq_high, seq_low];
    let [sum_high, sum_low] = checksum(&plain).to_be_bytes();
    // For ICMPv6 the kernel overwrites the sum, which there covers addresses too.
    [
        kind, 0, sum_high, sum_low, id_high, id_low, seq_high, seq_low,
    ]
}

/// Internet checksum (RFC 1071) of an even number of bytes.
fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes
        .chunks_exact(2)
        .map(|pair| {
            pair.iter()
                .fold(0, |word, byte| (word << 8) | u32::from(*byte))
        })
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(u16::MAX)
}

/// A raw IPv4 socket delivers the IP header too, an IPv6 one does not.
fn is_reply(to: IpAddr, packet: &[u8], kind: u8) -> bool {
    let header = match (to, packet.first()) {
        (IpAddr::V4(_), Some(first)) => usize::from(first & 0x0f) * 4,
        _ => 0,
    };
    let Some(icmp) = packet.get(header..) else {
        return false;
    };
    icmp.first() == Some(&kind)
        && icmp.get(4..6) == Some(&IDENTIFIER)
        && icmp.get(6..8) == Some(&SEQUENCE)
}
