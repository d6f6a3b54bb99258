//! Packets on a link that has no address yet: a socket below IP, for a DHCP client.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::libc::{self, sock_filter};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::LinkRef;
use crate::mac::MacAddr;
use crate::sys;

const ETHERTYPE_IPV4: u16 = 0x0800;
const UDP: u32 = 17;
/// A classic BPF program's verdicts: the number of bytes to take in.
const TAKE: u32 = 0xffff;
const DROP: u32 = 0;

/// A socket that sends IPv4 packets out of one link and receives those with a UDP datagram for one port, whatever
/// addresses the link has.
///
/// It keeps its network namespace alive, and costs every packet of the link a look, so it should be open only while an
/// answer is expected. Closing it waits for an RCU grace period, 10 ms and more.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    index: u32,
}

impl Handle {
    /// Opens such a socket on a link of this namespace, for datagrams to `port`. It never blocks.
    ///
    /// # Errors
    /// If the socket cannot be opened, for one because the link is gone.
    pub fn packet_socket(&self, link: &impl LinkRef, port: u16) -> Result<PacketSocket> {
        self.inside(|| open(link.index(), port))?
            .map_err(|source| Error::Io {
                what: "open a packet socket on",
                object: link.label().into_owned(),
                source,
            })
    }
}

fn open(index: u32, port: u16) -> io::Result<PacketSocket> {
    // Without a protocol it receives nothing until it is bound, so nothing can pass the filter by.
    let socket = socket(
        AddressFamily::Packet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        None,
    )?;
    sys::attach_filter(&socket, &udp_filter(port))?;
    sys::bind_packet(&socket, index, ETHERTYPE_IPV4)?;
    Ok(PacketSocket { socket, index })
}

impl PacketSocket {
    /// Sends one IPv4 packet, header included, to a station on the link.
    ///
    /// # Errors
    /// The system's, for one `ENETDOWN` and `ENXIO` if the link is down or gone.
    pub fn send(&self, to: MacAddr, packet: &[u8]) -> io::Result<()> {
        sys::send_packet(
            &self.socket,
            self.index,
            ETHERTYPE_IPV4,
            Some(to.octets()),
            packet,
        )
    }

    /// Receives one packet, header included, and tells which station it came from; `WouldBlock` if there is none.
    ///
    /// # Errors
    /// The system's.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<(usize, MacAddr)> {
        let (size, from) = sys::receive_packet(&self.socket, buffer)?;
        Ok((size, MacAddr::new(from)))
    }
}

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Picks unfragmented UDP datagrams for `port`. Offsets count from the IPv4 header.
fn udp_filter(port: u16) -> [sock_filter; 9] {
    const BYTE: u32 = libc::BPF_LD | libc::BPF_B | libc::BPF_ABS;
    const HALF: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_ABS;
    const HALF_AT_X: u32 = libc::BPF_LD | libc::BPF_H | libc::BPF_IND;
    const HEADER_LENGTH_TO_X: u32 = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
    const EQUAL: u32 = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    const ANY_BIT: u32 = libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K;
    const RETURN: u32 = libc::BPF_RET | libc::BPF_K;
    let step = |code: u32, yes: u8, no: u8, k: u32| sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    };
    [
        step(BYTE, 0, 0, 9),
        step(EQUAL, 0, 6, UDP),
        step(HALF, 0, 0, 6),
        // More fragments, or an offset.
        step(ANY_BIT, 4, 0, 0x3fff),
        step(HEADER_LENGTH_TO_X, 0, 0, 0),
        step(HALF_AT_X, 0, 0, 2),
        step(EQUAL, 0, 1, port.into()),
        step(RETURN, 0, 0, TAKE),
        step(RETURN, 0, 0, DROP),
    ]
}
