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
/// `IPCTNL_MSG_CT_GET_STATS`, and `CTA_STATS_GLOBAL_ENTRIES` in its answer.
const GET_STATS: u8 = 5;
const STATS_ENTRIES: u16 = 1;

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
/// Kernel-side filter on the protocol and on the destination port of the original direction.
const FILTER_PROTOCOL: u32 = 1 << 3;
const FILTER_PORT: u32 = 1 << 5;

/// The entries of the thread's network namespace as text, and how many of them are worth reading there.
const LIST: &str = "/proc/thread-self/net/nf_conntrack";
const LISTED_MAX: u32 = 2000;

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
    /// Whether there can be such flows of that family. A flow to a container has the family of one of its addresses,
    /// and so has one that would have been translated to it.
    fn concern(self, family: Family) -> bool {
        match self {
            Self::NotTo(addresses) | Self::To(addresses) => addresses
                .iter()
                .any(|address| is_of_family(*address, family)),
            Self::All => true,
        }
    }

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
///
/// The kernel finds them by walking its whole table under a lock for each bucket, which takes some 10 ms on a host of
/// usual size however few entries there are. So it walks once for all ports, only for address families that
/// matter, and not at all where the entries are few enough to see that none is of these ports.
pub(crate) fn forget(
    socket: &mut Socket,
    ports: &[PublishedPort],
    flows: Flows<'_>,
) -> Result<usize> {
    let ports: Vec<_> = ports
        .iter()
        .filter(|port| port.protocol == Protocol::Udp)
        .collect();
    if ports.is_empty() || none_listed(count(socket)?, &ports) {
        return Ok(0);
    }
    let mut forgotten = 0;
    let mut local = Local::default();
    for family in [Family::Ip, Family::Ip6] {
        let here: Vec<_> = ports
            .iter()
            .filter(|port| port.host_ip.is_none_or(|ip| is_of_family(ip, family)))
            .collect();
        if here.is_empty() || !flows.concern(family) {
            continue;
        }
        let number = here.first().map(|port| port.host_port);
        let single = number.filter(|number| here.iter().all(|port| port.host_port == *number));
        for entry in entries(socket, family, single)? {
            let ours = here.iter().try_fold(false, |known, port| {
                Ok::<_, Error>(known || is_of(&entry, port, &mut local)?)
            })?;
            if ours && flows.include(entry.answering) {
                delete(socket, &entry)?;
                forgotten += 1;
            }
        }
    }
    Ok(forgotten)
}

/// How many entries this network namespace has, if the kernel tells.
fn count(socket: &mut Socket) -> Result<Option<u32>> {
    let request = Request::of(SUBSYSTEM, GET_STATS, Family::Unspec, 0);
    socket.get(request, "number of conntrack entries", |_, body| {
        Reader::new(body).get(STATS_ENTRIES)?.u32()
    })
}

/// Whether the entries, if they are few, can be seen to have none of these ports. Their listing as text takes no lock
/// for an empty bucket, but the more for each entry. Not every kernel has it.
fn none_listed(count: Option<u32>, ports: &[&PublishedPort]) -> bool {
    match count {
        Some(0) => true,
        Some(1..=LISTED_MAX) => std::fs::read_to_string(LIST)
            .is_ok_and(|list| !ports.iter().any(|port| lists(&list, port.host_port))),
        _ => false,
    }
}

/// Whether a listing has a UDP entry with that destination port in either direction.
fn lists(list: &str, port: u16) -> bool {
    let wanted = format!("dport={port}");
    let of_udp = |line: &&str| line.contains("udp");
    list.lines()
        .filter(of_udp)
        .any(|line| line.split(' ').any(|word| word == wanted))
}

fn is_of_family(address: IpAddr, family: Family) -> bool {
    address.is_ipv4() == (family == Family::Ip)
}

/// Whether the flow was sent to the published port. Flows that only pass through the host (everybody's name
/// queries, when the port is 53) were sent elsewhere.
fn is_of(entry: &Entry, port: &PublishedPort, local: &mut Local) -> Result<bool> {
    if entry.port != port.host_port || entry.protocol != Protocol::Udp.number() {
        return Ok(false);
    }
    match port.host_ip.filter(|ip| !ip.is_unspecified()) {
        Some(exact) => Ok(entry.destination == exact),
        None => Ok(entry.destination.is_loopback() || local.contains(entry.destination)?),
    }
}

/// The addresses of this network namespace, listed when a flow is found that may be ours: the listing grows
/// with the number of interfaces, and mostly there is no such flow.
#[derive(Default)]
struct Local(Option<Vec<IpAddr>>);

impl Local {
    fn contains(&mut self, address: IpAddr) -> Result<bool> {
        let all = match &mut self.0 {
            Some(known) => known,
            unknown => unknown.insert(local_addresses()?),
        };
        Ok(all.contains(&address))
    }
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

/// The UDP entries with that destination port, or with any. Kernels before 5.9 do not filter, so the caller looks as
/// well.
fn entries(socket: &mut Socket, family: Family, port: Option<u16>) -> Result<Vec<Entry>> {
    let filter = FILTER_PROTOCOL | port.map_or(0, |_| FILTER_PORT);
    let request = Request::of(SUBSYSTEM, GET, family, 0).with(|w| {
        w.nest(TUPLE_ORIG, |w| {
            w.nest(TUPLE_PROTO, |w| {
                w.bytes(PROTO_NUM, &[Protocol::Udp.number()]);
                if let Some(port) = port {
                    w.bytes(PROTO_DST_PORT, &port.to_be_bytes());
                }
            });
        });
        w.nest(FILTER, |w| {
            w.bytes(FILTER_ORIG_FLAGS, &filter.to_ne_bytes());
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

    #[test]
    fn a_listing_is_read() {
        let list = "ipv4     2 udp      17 29 src=198.51.100.9 dst=192.0.2.1 sport=4000 dport=530 [UNREPLIED] \
                    src=10.88.0.2 dst=198.51.100.9 sport=53 dport=4000 mark=0 zone=0 use=2\n\
                    ipv4     2 tcp      6 299 ESTABLISHED src=198.51.100.9 dst=192.0.2.1 sport=1 dport=80 src=192.0.2.1 \
                    dst=198.51.100.9 sport=80 dport=1 [ASSURED] mark=0 zone=0 use=2\n";
        assert!(lists(list, 530) && lists(list, 4000));
        assert!(!lists(list, 53) && !lists(list, 80));
    }
}
