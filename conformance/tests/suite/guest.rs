//! A stand-in for a virtual machine: it has a tap open and speaks bare Ethernet by it.

use std::fs::File;
use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use conformance::net::Netns;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

const BROADCAST: [u8; 6] = [0xff; 6];
const ARP: [u8; 2] = [8, 6];
const IPV4: [u8; 2] = [8, 0];
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const ECHO_REQUEST: u8 = 8;
const ECHO_REPLY: u8 = 0;

/// How long the answer of a neighbour may take.
const ONCE_MORE: Duration = Duration::from_millis(200);

/// A machine with one network card.
pub struct Guest {
    card: File,
    mac: [u8; 6],
    address: Ipv4Addr,
}

impl Guest {
    /// Opens a tap of a namespace, and works with these addresses.
    pub fn start(netns: &Netns, tap: &str, mac: &str, address: Ipv4Addr) -> Self {
        let handle = netlink::Handle::open(&netlink::Netns::open(netns.path()).unwrap()).unwrap();
        let link = handle.link(tap).unwrap();
        let card = handle.open_tap(&link).unwrap_or_else(|error| {
            panic!("{error}: this test needs /dev/net/tun, open to everybody as udev makes it")
        });
        Self {
            card,
            mac: mac.parse::<netlink::MacAddr>().unwrap().octets(),
            address,
        }
    }

    /// The hardware address of a neighbour. It is asked for more than once, as every machine does: the kernel needs a
    /// moment to notice that somebody has opened the tap, and drops what it would send there.
    pub fn resolve(&mut self, neighbour: Ipv4Addr, limit: Duration) -> Option<[u8; 6]> {
        let end = Instant::now() + limit;
        let asked = neighbour.octets();
        while Instant::now() < end {
            self.send(BROADCAST, ARP, &self.arp(REQUEST, [0; 6], neighbour));
            let found = self.listen(ONCE_MORE, |frame| {
                let body = frame.strip_arp(REPLY)?;
                (body[14..18] == asked).then(|| body[8..14].try_into().unwrap())
            });
            if found.is_some() {
                return found;
            }
        }
        None
    }

    /// Whether an echo request sent by way of a gateway is answered.
    pub fn ping(&mut self, gateway: Ipv4Addr, to: Ipv4Addr, limit: Duration) -> bool {
        let Some(mac) = self.resolve(gateway, limit) else {
            return false;
        };
        let echo = icmp(ECHO_REQUEST, b"fe\0\x01ping from a guest");
        self.send(mac, IPV4, &ipv4(self.address, to, &echo));
        let answered = self.listen(limit, |frame| {
            let (from, message) = frame.echo(ECHO_REPLY)?;
            (from == to && message[4..] == echo[4..]).then_some(())
        });
        answered.is_some()
    }

    /// Answers whoever asks, until told to stop.
    pub fn serve(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            self.listen(Duration::from_millis(20), |_| None::<()>);
        }
    }

    /// Takes in frames, and answers requests, until `wanted` finds what it wants.
    fn listen<T>(&mut self, limit: Duration, wanted: impl Fn(&Frame) -> Option<T>) -> Option<T> {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let mut waiting = [PollFd::new(self.card.as_fd(), PollFlags::POLLIN)];
            let timeout = PollTimeout::try_from(left).unwrap();
            if left.is_zero() || poll(&mut waiting, timeout).unwrap() == 0 {
                return None;
            }
            let mut buffer = [0; 70_000];
            let length = self.card.read(&mut buffer).unwrap();
            let frame = Frame(&buffer[..length]);
            if let Some(found) = wanted(&frame) {
                return Some(found);
            }
            self.answer(&frame);
        }
    }

    fn answer(&mut self, frame: &Frame<'_>) {
        if let Some(body) = frame.strip_arp(REQUEST)
            && body[24..28] == self.address.octets()
        {
            let asker: [u8; 6] = body[8..14].try_into().unwrap();
            let from = Ipv4Addr::from(<[u8; 4]>::try_from(&body[14..18]).unwrap());
            let reply = self.arp(REPLY, asker, from);
            self.send(asker, ARP, &reply);
        }
        if let Some((from, message)) = frame.echo(ECHO_REQUEST) {
            let reply = icmp(ECHO_REPLY, &message[4..]);
            let back = frame.0[6..12].try_into().unwrap();
            self.send(back, IPV4, &ipv4(self.address, from, &reply));
        }
    }

    fn arp(&self, operation: u8, to: [u8; 6], address: Ipv4Addr) -> Vec<u8> {
        let head = [0, 1, 8, 0, 6, 4, 0, operation];
        let (mine, theirs) = (self.address.octets(), address.octets());
        [&head[..], &self.mac, &mine, &to, &theirs].concat()
    }

    fn send(&mut self, to: [u8; 6], kind: [u8; 2], body: &[u8]) {
        let mut frame = [&to[..], &self.mac, &kind, body].concat();
        frame.resize(frame.len().max(60), 0);
        // Full queues lose frames, as wires do.
        let _ = self.card.write(&frame);
    }
}

struct Frame<'a>(&'a [u8]);

impl Frame<'_> {
    fn body(&self, kind: [u8; 2]) -> Option<&[u8]> {
        (self.0.get(12..14)? == kind).then(|| &self.0[14..])
    }

    fn strip_arp(&self, operation: u8) -> Option<&[u8]> {
        let body = self.body(ARP)?.get(..28)?;
        (body[7] == operation).then_some(body)
    }

    /// Who sent an ICMP message of that type, and the message.
    fn echo(&self, kind: u8) -> Option<(Ipv4Addr, &[u8])> {
        let packet = self.body(IPV4)?;
        let header = usize::from(packet.first()? & 0x0f) * 4;
        let length = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
        let message = packet.get(header..length)?;
        let is_icmp = packet.get(9) == Some(&1) && message.first() == Some(&kind);
        let from = <[u8; 4]>::try_from(packet.get(12..16)?).ok()?;
        is_icmp.then(|| (from.into(), message))
    }
}

fn icmp(kind: u8, rest: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, 0, 0, 0], rest].concat();
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    message
}

fn ipv4(from: Ipv4Addr, to: Ipv4Addr, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(20 + payload.len()).unwrap().to_be_bytes();
    let head = [0x45, 0, length[0], length[1], 0, 1, 0, 0, 64, 1, 0, 0];
    let mut header = [&head[..], &from.octets(), &to.octets()].concat();
    let sum = checksum(&header);
    header[10..12].copy_from_slice(&sum);
    [&header[..], payload].concat()
}

/// Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let mut sum: u32 = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    (!u16::try_from(sum).unwrap()).to_be_bytes()
}
