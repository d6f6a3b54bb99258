//! Connection tracking entries that would keep UDP packets on an old way.
//!
//! The translation of a flow is decided by its first packet. A client that goes on sending from one port keeps the
//! entry of that flow alive, so its packets reach whoever had the published port before, or nobody. TCP needs none
//! of this: a new connection has a new entry.
//!
//! Source: linux/netfilter/nfnetlink_conntrack.h.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::error::{Error, Result};
use crate::intent::{Protocol, PublishedPort};
use crate::nfnl::{Family, Reader, Request, Socket, Writer};

/// `NFNL_SUBSYS_CTNETLINK`.
const SUBSYSTEM: u8 = 1;
/// `IPCTNL_MSG_CT_GET` and `IPCTNL_MSG_CT_DELETE`.
const GET: u8 = 1;
const DELETE: u8 = 2;

/// `CTA_` attributes of an entry.
const TUPLE_ORIG: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const ID: u16 = 12;
const ZONE: u16 = 18;
const FILTER: u16 = 25;
/// `CTA_FILTER_ORIG_FLAGS`; its value is a number in the machine's byte order.
const FILTER_ORIG_FLAGS: u16 = 1;
/// `CTA_TUPLE_` attributes.
const TUPLE_IP: u16 = 1;
const TUPLE_PROTO: u16 = 2;
/// `CTA_IP_` attributes.
const IP_V4_SRC: u16 = 1;
const IP_V4_DST: u16 = 2;
const IP_V6_SRC: u16 = 3;
const IP_V6_DST: u16 = 4;
/// `CTA_PROTO_` attributes.
const PROTO_NUM: u16 = 1;
const PROTO_DST_PORT: u16 = 3;
/// Kernel-side filter on the protocol and the destination port of the original direction.
const FILTER_PROTOCOL_AND_PORT: u32 = 1 << 3 | 1 << 5;

/// Which flows to a published port are meant.
#[derive(Debug, Clone, Copy)]
pub enum Flows<'a> {
    /// All but those that lead to these container addresses already: after a port was published.
    NotTo(&'a [IpAddr]),
    /// Those that lead to these container addresses: after the container has gone.
    To(&'a [IpAddr]),
    /// All of them: after a container has gone whose addresses nobody knows any more.
    All,
}

impl Flows<'_> {
    fn include(self, answering: IpAddr) -> bool {
        match self {
            Self::NotTo(addresses) => !addresses.contains(&answering),
            Self::To(addresses) => addresses.contains(&answering),
            Self::All => true,
        }
    }
}

/// One entry, as far as it matters here.
struct Entry {
    family: Family,
    /// Where the first packet was sent.
    destination: IpAddr,
    port: u16,
    protocol: u8,
    /// Who answers: the destination, or where it was translated to.
    answering: IpAddr,
    /// The attributes that name the entry to the kernel: the tuple, its zone and its number.
    name: Vec<(u16, Vec<u8>)>,
}

/// Deletes the UDP entries of published ports and no others. Returns how many there were.
pub(crate) fn forget(
    socket: &mut Socket,
    ports: &[PublishedPort],
    flows: Flows<'_>,
) -> Result<usize> {
    let mut count = 0;
    let mut local = None;
    for port in ports.iter().filter(|port| port.protocol == Protocol::Udp) {
        let local = match &local {
            Some(known) => known,
            None => local.insert(local_addresses()?),
        };
        for family in families(port.host_ip) {
            let entries = entries(socket, family, port.host_port)?;
            for entry in entries
                .iter()
                .filter(|entry| is_of(entry, port, local) && flows.include(entry.answering))
            {
                delete(socket, entry)?;
                count += 1;
            }
        }
    }
    Ok(count)
}

fn families(host_ip: Option<IpAddr>) -> Vec<Family> {
    match host_ip {
        Some(IpAddr::V4(_)) => vec![Family::Ip],
        Some(IpAddr::V6(_)) => vec![Family::Ip6],
        None => vec![Family::Ip, Family::Ip6],
    }
}

/// Whether the flow was sent to the published port. Flows that only pass through the host (everybody's name
/// queries, when the port is 53) were sent elsewhere.
fn is_of(entry: &Entry, port: &PublishedPort, local: &[IpAddr]) -> bool {
    let to_us = match port.host_ip.filter(|ip| !ip.is_unspecified()) {
        Some(exact) => entry.destination == exact,
        None => entry.destination.is_loopback() || local.contains(&entry.destination),
    };
    to_us && entry.port == port.host_port && entry.protocol == Protocol::Udp.number()
}

/// The addresses of this network namespace.
fn local_addresses() -> Result<Vec<IpAddr>> {
    let list = nix::ifaddrs::getifaddrs().map_err(|errno| Error::Io {
        what: "list the host's addresses".to_owned(),
        source: errno.into(),
    })?;
    let address = |storage: nix::sys::socket::SockaddrStorage| {
        let v4 = storage.as_sockaddr_in().map(|v4| IpAddr::from(v4.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|v6| IpAddr::from(v6.ip())))
    };
    Ok(list
        .filter_map(|interface| interface.address.and_then(address))
        .collect())
}

/// The UDP entries with that destination port. Kernels before 5.9 do not filter, so the caller looks as well.
fn entries(socket: &mut Socket, family: Family, port: u16) -> Result<Vec<Entry>> {
    let request = Request::of(SUBSYSTEM, GET, family, 0).with(|w| {
        w.nest(TUPLE_ORIG, |w| {
            w.nest(TUPLE_PROTO, |w| {
                w.bytes(PROTO_NUM, &[Protocol::Udp.number()]);
                w.bytes(PROTO_DST_PORT, &port.to_be_bytes());
            });
        });
        w.nest(FILTER, |w| {
            w.bytes(FILTER_ORIG_FLAGS, &FILTER_PROTOCOL_AND_PORT.to_ne_bytes());
        });
    });
    socket.dump(&request, "conntrack entries", read_entry)
}

fn delete(socket: &mut Socket, entry: &Entry) -> Result<()> {
    let write = |w: &mut Writer| {
        for (kind, value) in &entry.name {
            w.bytes(*kind, value);
        }
    };
    let request = Request::of(SUBSYSTEM, DELETE, entry.family, 0).with(write);
    // An entry that has just gone by itself is as good.
    socket
        .get::<()>(request, "conntrack entry", |_, _| None)
        .map(drop)
}

fn read_entry(family: Family, body: &[u8]) -> Option<Entry> {
    /// `NLA_F_NESTED`, which the kernel wants on a tuple it gets.
    const NESTED: u16 = 0x8000;
    let attrs = Reader::new(body);
    let tuple = attrs.get(TUPLE_ORIG)?;
    let protocol = tuple.nested().get(TUPLE_PROTO)?.nested();
    let mut name = vec![(TUPLE_ORIG | NESTED, tuple.value.to_vec())];
    let more = [ZONE, ID].into_iter().filter_map(|kind| attrs.get(kind));
    name.extend(more.map(|attr| (attr.kind, attr.value.to_vec())));
    Some(Entry {
        family,
        destination: address(tuple.nested(), IP_V4_DST, IP_V6_DST)?,
        port: u16::from_be_bytes(protocol.get(PROTO_DST_PORT)?.value.try_into().ok()?),
        protocol: *protocol.get(PROTO_NUM)?.value.first()?,
        answering: address(attrs.get(TUPLE_REPLY)?.nested(), IP_V4_SRC, IP_V6_SRC)?,
        name,
    })
}

fn address(tuple: Reader<'_>, v4: u16, v6: u16) -> Option<IpAddr> {
    let addresses = tuple.get(TUPLE_IP)?.nested();
    if let Some(found) = addresses.get(v4) {
        return Some(Ipv4Addr::from(<[u8; 4]>::try_from(found.value).ok()?).into());
    }
    let found = addresses.get(v6)?;
    Some(Ipv6Addr::from(<[u8; 16]>::try_from(found.value).ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_entry_is_survived(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            read_entry(Family::Ip, &bytes);
        }
    }
}
