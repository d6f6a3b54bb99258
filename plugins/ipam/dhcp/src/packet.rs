//! DHCP messages (RFC 2131) in UDP datagrams in IPv4 packets.

use std::net::Ipv4Addr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dhcproto::v4::{DhcpOption, Flags, Message, MessageType, OptionCode, UnknownOption};
use dhcproto::{Decodable, Decoder, Encodable, Encoder};
use serde::{Deserialize, Serialize};

/// The ports of the protocol.
pub const SERVER_PORT: u16 = 67;
/// The port a client listens at.
pub const CLIENT_PORT: u16 = 68;

/// BOOTP relays want messages of this size at least, in bytes (RFC 1542, 2.1).
const MESSAGE_MIN: usize = 300;
/// The longest message that we say we can take: what fits into a packet on Ethernet.
const MESSAGE_MAX: u16 = 1500;

const IP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
const UDP: u8 = 17;
const TTL: u8 = 64;

/// Who asks, and for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    /// The link's hardware address.
    #[serde(with = "crate::hex")]
    pub mac: [u8; 6],
    /// Option 61, by which servers know the attachment.
    #[serde(with = "crate::hex")]
    pub id: Vec<u8>,
    /// Options that the configuration wants to be sent.
    #[serde(with = "crate::hex::options")]
    pub provide: Vec<(u8, Vec<u8>)>,
    /// Options to ask for.
    pub request: Vec<u8>,
    /// Whether servers are to answer by broadcast.
    pub broadcast: bool,
}

/// What a message is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Looks for servers; with an address that would be welcome.
    Discover {
        /// That address.
        wanted: Option<Ipv4Addr>,
    },
    /// Takes a server's offer.
    Select {
        /// What was offered.
        address: Ipv4Addr,
        /// By whom.
        server: Ipv4Addr,
    },
    /// Asks to keep an address for longer, of its own server or of any.
    Extend {
        /// The address.
        address: Ipv4Addr,
    },
    /// Gives an address back.
    Release {
        /// The address.
        address: Ipv4Addr,
        /// The server it is of.
        server: Ipv4Addr,
    },
}

/// A number for an exchange that nobody can guess.
pub fn transaction_id() -> u32 {
    Message::default().xid()
}

/// A message, ready to be put into a packet. `seconds` is how long it has been tried.
pub fn message(client: &Client, xid: u32, seconds: u16, purpose: Purpose) -> Vec<u8> {
    let none = Ipv4Addr::UNSPECIFIED;
    let own = match purpose {
        Purpose::Extend { address } | Purpose::Release { address, .. } => address,
        Purpose::Discover { .. } | Purpose::Select { .. } => none,
    };
    let mut message = Message::new_with_id(xid, own, none, none, none, &client.mac);
    let release = matches!(purpose, Purpose::Release { .. });
    if client.broadcast && own == none {
        message.set_flags(Flags::default().set_broadcast());
    }
    if !release {
        message.set_secs(seconds);
    }
    let options = message.opts_mut();
    let mut raw = |code: u8, value: &[u8]| {
        let option = UnknownOption::new(OptionCode::from(code), value.to_vec());
        options.insert(DhcpOption::Unknown(option));
    };
    if !release {
        // What frames the options is not for the configuration to say, nor is which address or server a client that
        // has one means (RFC 2131, 4.3.6).
        let extend = matches!(purpose, Purpose::Extend { .. });
        for (code, value) in &client.provide {
            let withheld = match code {
                0 | 52 | 54 | 255 => true,
                50 => extend,
                _ => false,
            };
            if !withheld {
                raw(*code, value);
            }
        }
        raw(55, &client.request);
        raw(57, &MESSAGE_MAX.to_be_bytes());
    }
    raw(61, &client.id);
    match purpose {
        Purpose::Discover { wanted } => {
            wanted.iter().for_each(|ip| raw(50, &ip.octets()));
            raw(53, &[1]);
        }
        Purpose::Select { address, server } => {
            raw(50, &address.octets());
            raw(53, &[3]);
            raw(54, &server.octets());
        }
        Purpose::Extend { .. } => raw(53, &[3]),
        Purpose::Release { server, .. } => {
            raw(53, &[7]);
            raw(54, &server.octets());
        }
    }
    let mut bytes = Vec::with_capacity(MESSAGE_MIN);
    // Writing to memory cannot fail.
    let _ = message.encode(&mut Encoder::new(&mut bytes));
    bytes.resize(bytes.len().max(MESSAGE_MIN), 0);
    bytes
}

/// An IPv4 packet from the client's port to the server's.
pub fn packet(from: Ipv4Addr, to: Ipv4Addr, message: &[u8]) -> Vec<u8> {
    let length = |bytes: usize| u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes();
    let mut header = vec![0x45, 0];
    header.extend(length(IP_HEADER + UDP_HEADER + message.len()));
    header.extend([0, 0, 0, 0, TTL, UDP, 0, 0]);
    header.extend(from.octets());
    header.extend(to.octets());
    let sum = !add(0, &header);
    set(&mut header, 10, sum);

    let mut datagram = Vec::with_capacity(UDP_HEADER + message.len());
    datagram.extend(CLIENT_PORT.to_be_bytes());
    datagram.extend(SERVER_PORT.to_be_bytes());
    datagram.extend(length(UDP_HEADER + message.len()));
    datagram.extend([0, 0]);
    datagram.extend(message);
    let sum = !add(pseudo_header(from, to, datagram.len()), &datagram);
    // Zero would mean that there is none.
    set(&mut datagram, 6, if sum == 0 { 0xffff } else { sum });
    [header, datagram].concat()
}

fn set(bytes: &mut [u8], at: usize, value: u16) {
    if let Some(field) = bytes.get_mut(at..at + 2) {
        field.copy_from_slice(&value.to_be_bytes());
    }
}

/// Adds to a sum of the Internet checksum (RFC 1071).
fn add(sum: u16, bytes: &[u8]) -> u16 {
    let mut sum = u32::from(sum);
    for pair in bytes.chunks(2) {
        let high = pair.first().copied().unwrap_or(0);
        let low = pair.get(1).copied().unwrap_or(0);
        sum += u32::from(u16::from_be_bytes([high, low]));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // At most 0xffff.
    sum as u16
}

fn pseudo_header(from: Ipv4Addr, to: Ipv4Addr, length: usize) -> u16 {
    let length = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    let parts = [&from.octets()[..], &to.octets(), &[0, UDP], &length];
    add(0, &parts.concat())
}

/// The message in a packet to the client's port; `None` if it is not whole.
fn payload(packet: &[u8]) -> Option<&[u8]> {
    let octets = |at: usize| -> Option<Ipv4Addr> {
        Some(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?.into())
    };
    let half = |bytes: &[u8], at: usize| -> Option<u16> {
        Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
    };
    let header = usize::from(packet.first()? & 0x0f) * 4;
    if packet.first()? >> 4 != 4 || header < IP_HEADER || *packet.get(9)? != UDP {
        return None;
    }
    if add(0, packet.get(..header)?) != 0xffff {
        return None;
    }
    let packet_end = usize::from(half(packet, 2)?);
    let datagram = packet.get(header..packet_end)?;
    let length = usize::from(half(datagram, 4)?);
    let datagram = datagram.get(..length)?;
    let sum = half(datagram, 6)?;
    let pseudo = pseudo_header(octets(12)?, octets(16)?, length);
    // From a server on this machine the datagram comes with the first part of the sum only: the rest is left to
    // network hardware, which there is none on the way.
    if sum != 0 && sum != pseudo && add(pseudo, datagram) != 0xffff {
        return None;
    }
    if half(datagram, 2)? != CLIENT_PORT {
        return None;
    }
    datagram.get(UDP_HEADER..)
}

/// A server's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// OFFER, ACK or NAK.
    pub kind: MessageType,
    /// Who sent it (option 54).
    pub server: Ipv4Addr,
    /// The address it is about.
    pub address: Ipv4Addr,
    /// The options.
    pub options: dhcproto::v4::DhcpOptions,
}

/// The message to this client in this exchange that a packet holds, if it does.
pub fn read(packet: &[u8], client: &Client, xid: u32) -> Option<Answer> {
    let payload = payload(packet)?;
    // One packet that the decoder does not foresee must not end every lease.
    let decoded = catch_unwind(AssertUnwindSafe(|| {
        Message::decode(&mut Decoder::new(payload)).ok()
    }));
    let message = decoded.ok().flatten()?;
    let ours = message.opcode() == dhcproto::v4::Opcode::BootReply
        && message.xid() == xid
        && usize::from(message.hlen()) <= 16
        && message.chaddr() == client.mac;
    if !ours {
        return None;
    }
    let options = message.opts();
    let server = match options.get(OptionCode::ServerIdentifier) {
        Some(DhcpOption::ServerIdentifier(server)) => *server,
        _ => return None,
    };
    let kind = match options.get(OptionCode::MessageType) {
        Some(DhcpOption::MessageType(kind)) => *kind,
        _ => return None,
    };
    Some(Answer {
        kind,
        server,
        address: message.yiaddr(),
        options: options.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client() -> Client {
        Client {
            mac: [2, 0, 0, 0, 0, 1],
            id: b"\0id".to_vec(),
            provide: vec![(12, b"web".to_vec()), (255, b"x".to_vec()), (53, vec![9])],
            request: vec![3, 1],
            broadcast: true,
        }
    }

    /// A packet of ours, turned into a server's.
    fn answer(purpose: Purpose) -> Vec<u8> {
        let mut message = message(&client(), 7, 0, purpose);
        message[0] = 2;
        let mut bytes = packet(
            Ipv4Addr::new(10, 0, 0, 1),
            Ipv4Addr::new(10, 0, 0, 2),
            &message,
        );
        // The ports change places, which the sum does not notice.
        bytes[20..24].copy_from_slice(&[0, 67, 0, 68]);
        bytes
    }

    fn select() -> Purpose {
        Purpose::Select {
            address: Ipv4Addr::new(10, 0, 0, 2),
            server: Ipv4Addr::new(10, 0, 0, 1),
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let bytes = answer(select());
        let read = read(&bytes, &client(), 7).unwrap();
        assert_eq!(read.kind, MessageType::Request);
        assert_eq!(read.server, Ipv4Addr::new(10, 0, 0, 1));
        let option = |code: u8| read.options.get(OptionCode::from(code)).cloned();
        assert_eq!(option(12), Some(DhcpOption::Hostname("web".into())));
        assert_eq!(
            option(61),
            Some(DhcpOption::ClientIdentifier(b"\0id".to_vec()))
        );
        assert_eq!(
            option(50),
            Some(DhcpOption::RequestedIpAddress(Ipv4Addr::new(10, 0, 0, 2)))
        );
        assert!(super::read(&bytes, &client(), 8).is_none());
        let other = Client {
            mac: [2; 6],
            ..client()
        };
        assert!(super::read(&bytes, &other, 7).is_none());
    }

    #[test]
    fn a_sum_that_was_left_to_hardware_is_taken_and_a_wrong_one_is_not() {
        let mut bytes = answer(select());
        let length = bytes.len() - 20;
        let pseudo = pseudo_header(
            Ipv4Addr::new(10, 0, 0, 1),
            Ipv4Addr::new(10, 0, 0, 2),
            length,
        );
        set(&mut bytes, 26, pseudo);
        assert!(read(&bytes, &client(), 7).is_some());
        set(&mut bytes, 26, pseudo ^ 1);
        assert!(read(&bytes, &client(), 7).is_none());
        set(&mut bytes, 26, 0);
        assert!(read(&bytes, &client(), 7).is_some());
    }

    #[test]
    fn a_release_says_only_who_and_what() {
        let purpose = Purpose::Release {
            address: Ipv4Addr::new(10, 0, 0, 2),
            server: Ipv4Addr::new(10, 0, 0, 1),
        };
        let read = read(&answer(purpose), &client(), 7).unwrap();
        let codes: Vec<u8> = read
            .options
            .iter()
            .map(|(code, _)| (*code).into())
            .collect();
        assert_eq!(codes, [53, 54, 61]);
    }

    proptest! {
        #[test]
        fn damaged_packets_are_survived(
            damage in proptest::collection::vec((0..350_usize, any::<u8>()), 0..6),
            tail in proptest::collection::vec(any::<u8>(), 0..300),
        ) {
            let mut bytes = answer(Purpose::Discover { wanted: None });
            bytes.truncate(20 + 8 + 240);
            bytes.extend(tail);
            let end = u16::try_from(bytes.len()).unwrap();
            set(&mut bytes, 2, end);
            set(&mut bytes, 24, end - 20);
            set(&mut bytes, 26, 0);
            for (at, byte) in damage {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            set(&mut bytes, 10, 0);
            let sum = !add(0, &bytes[..20]);
            set(&mut bytes, 10, sum);
            let _ = read(&bytes, &client(), 7);
        }
    }
}
