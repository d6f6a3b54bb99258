//! Unsolicited neighbour advertisements (RFC 4861, 7.2.6) through the kernel's own IPv6, for links and addresses that
//! the kernel announces by itself too feebly or not at all.
//!
//! For an address that is still optimistic (RFC 4429) the kernel leaves the override flag out, so a neighbour that knew
//! another holder goes on sending to that one; and it says nothing when the detection has ended. A link whose hardware
//! address cannot be set, such as ipvlan, is announced when it goes up only. Unlike a packet socket, the one used here
//! closes without waiting for an RCU grace period.

use std::io::{self, IoSlice};
use std::net::{Ipv6Addr, SocketAddrV6};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn6,
    sendmsg, socket,
};

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::LinkRef;
use crate::mac::MacAddr;

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A receiver trusts no other: the packet cannot have been forwarded.
const HOP_LIMIT: libc::c_int = 255;

const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
/// "Forget the hardware address that you knew."
const OVERRIDE: u8 = 0x20;
/// Option "target link-layer address", of one unit of eight bytes.
const TARGET_MAC: [u8; 2] = [2, 1];

impl Handle {
    /// Tells everybody on a link of this namespace, which must be up, that these addresses are at `mac`. The addresses must
    /// be on that link and not tentative, unless they are optimistic.
    ///
    /// # Errors
    /// If an advertisement cannot be sent, for one because the kernel has no IPv6.
    pub fn advertise(
        &self,
        link: &impl LinkRef,
        mac: MacAddr,
        addresses: &[Ipv6Addr],
    ) -> Result<()> {
        if addresses.is_empty() {
            return Ok(());
        }
        self.inside(|| {
            let socket = socket(
                AddressFamily::Inet6,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::IcmpV6,
            )
            .map_err(|errno| failed(link, addresses, errno))?;
            for address in addresses {
                send(&socket, link.index(), mac, *address)
                    .map_err(|errno| failed(link, &[*address], errno))?;
            }
            Ok(())
        })?
    }
}

fn send(socket: &impl AsRawFd, index: u32, mac: MacAddr, address: Ipv6Addr) -> nix::Result<()> {
    let from = libc::in6_pktinfo {
        ipi6_addr: libc::in6_addr {
            s6_addr: address.octets(),
        },
        ipi6_ifindex: index,
    };
    let to = SockaddrIn6::from(SocketAddrV6::new(ALL_NODES, 0, 0, index));
    sendmsg(
        socket.as_raw_fd(),
        &[IoSlice::new(&message(mac, address))],
        &[
            ControlMessage::Ipv6PacketInfo(&from),
            ControlMessage::Ipv6HopLimit(&HOP_LIMIT),
        ],
        MsgFlags::empty(),
        Some(&to),
    )
    .map(drop)
}

/// The kernel fills the checksum in.
fn message(mac: MacAddr, address: Ipv6Addr) -> Vec<u8> {
    let mut message = vec![NEIGHBOUR_ADVERTISEMENT, 0, 0, 0, OVERRIDE, 0, 0, 0];
    message.extend(address.octets());
    message.extend(TARGET_MAC);
    message.extend(mac.octets());
    message
}

fn failed(link: &impl LinkRef, addresses: &[Ipv6Addr], errno: nix::errno::Errno) -> Error {
    let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
    Error::Io {
        what: "advertise",
        object: format!("{} on {}", addresses.join(", "), link.label()),
        source: io::Error::from(errno),
    }
}
