//! Telling the neighbours on a link which hardware address an IP address has now, so that those who knew another holder
//! forget it at once: a gratuitous ARP request (RFC 5227, 2.3) or an unsolicited neighbour advertisement (RFC 4861, 7.2.6).
//!
//! Closing the packet socket this needs waits for an RCU grace period, 10 ms and more. Where the settings `arp_notify` and
//! `ndisc_notify` of the link are on, the kernel announces all its addresses itself when the hardware address is set, be it to
//! the same value ([`LinkChange::mac`](crate::LinkChange::mac)), which costs nothing of the kind.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::LinkRef;
use crate::mac::MacAddr;
use crate::sys;

const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const ICMPV6: u8 = 58;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
const ALL_NODES_MAC: [u8; 6] = [0x33, 0x33, 0, 0, 0, 1];

/// What the announced address belongs to. A neighbour that hears a router say it is a plain host drops routes through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Station {
    /// An end system, such as a container.
    Host,
    /// A system that forwards, such as the host with its gateway address on a bridge.
    Router,
}

impl Handle {
    /// Announces `addresses` with the hardware address `mac` on a link of this namespace, which must be up.
    /// IPv6 addresses must not be tentative.
    ///
    /// # Errors
    /// If a frame cannot be sent, for one because the link is down.
    pub fn announce(
        &self,
        link: &impl LinkRef,
        mac: MacAddr,
        addresses: &[IpAddr],
        station: Station,
    ) -> Result<()> {
        self.inside(|| {
            let socket = socket(
                AddressFamily::Packet,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                None,
            )
            .map_err(|errno| failed(link, addresses, errno.into()))?;
            for address in addresses {
                let (ethertype, frame) = match address {
                    IpAddr::V4(ip) => (ETHERTYPE_ARP, gratuitous_arp(mac, *ip)),
                    IpAddr::V6(ip) => (ETHERTYPE_IPV6, neighbour_advertisement(mac, *ip, station)),
                };
                sys::send_packet(&socket, link.index(), ethertype, None, &frame)
                    .map_err(|source| failed(link, &[*address], source))?;
            }
            Ok(())
        })?
    }
}

fn failed(link: &impl LinkRef, addresses: &[IpAddr], source: std::io::Error) -> Error {
    let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    Error::Io {
        what: "announce",
        object: format!("{} on {}", addresses.join(", "), link.label()),
        source,
    }
}

fn ethernet(to: [u8; 6], from: MacAddr, ethertype: u16) -> Vec<u8> {
    [&to[..], &from.octets(), &ethertype.to_be_bytes()].concat()
}

fn gratuitous_arp(mac: MacAddr, ip: Ipv4Addr) -> Vec<u8> {
    let mut frame = ethernet(MacAddr::BROADCAST.octets(), mac, ETHERTYPE_ARP);
    // Hardware Ethernet (1), protocol IPv4, their address lengths, operation request (1).
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1]);
    frame.extend(mac.octets());
    frame.extend(ip.octets());
    frame.extend([0; 6]);
    frame.extend(ip.octets());
    frame
}

fn neighbour_advertisement(mac: MacAddr, ip: Ipv6Addr, station: Station) -> Vec<u8> {
    let flags = match station {
        Station::Host => 0x20,
        Station::Router => 0xa0,
    };
    // Type 136, code, checksum (below); flags (router, override), reserved; target; option 2 (target link-layer address).
    let mut icmp = vec![136, 0, 0, 0, flags, 0, 0, 0];
    icmp.extend(ip.octets());
    icmp.extend([2, 1]);
    icmp.extend(mac.octets());
    let sum = checksum(ip, &icmp).to_be_bytes();
    if let Some(field) = icmp.get_mut(2..4) {
        field.copy_from_slice(&sum);
    }

    let mut frame = ethernet(ALL_NODES_MAC, mac, ETHERTYPE_IPV6);
    let length = u16::try_from(icmp.len()).unwrap_or(u16::MAX).to_be_bytes();
    // Version 6, payload length, next header, hop limit 255: a receiver trusts no other.
    frame.extend([0x60, 0, 0, 0]);
    frame.extend(length);
    frame.extend([ICMPV6, 255]);
    frame.extend(ip.octets());
    frame.extend(ALL_NODES.octets());
    frame.extend(icmp);
    frame
}

/// The Internet checksum over the pseudo-header and the message (RFC 4443, 2.3).
fn checksum(from: Ipv6Addr, icmp: &[u8]) -> u16 {
    let length = u32::try_from(icmp.len()).unwrap_or(u32::MAX).to_be_bytes();
    let parts: [&[u8]; 5] = [
        &from.octets(),
        &ALL_NODES.octets(),
        &length,
        &[0, 0, 0, ICMPV6],
        icmp,
    ];
    let mut sum: u32 = 0;
    for part in parts {
        for pair in part.chunks(2) {
            let high = pair.first().copied().unwrap_or(0);
            let low = pair.get(1).copied().unwrap_or(0);
            sum += u32::from(u16::from_be_bytes([high, low]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !u16::try_from(sum).unwrap_or(0)
}
