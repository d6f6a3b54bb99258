//! The system calls that have no safe wrapper.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;

/// `_IO(0xb7, 0x3)`: the kind of a namespace file (linux/nsfs.h, since 4.11).
const NS_GET_NSTYPE: libc::Ioctl = 0xb703;

/// What a number set by [`tun_set`] means (linux/if_tun.h).
pub(crate) use libc::{TUNSETGROUP, TUNSETOWNER, TUNSETPERSIST};

/// The `CLONE_NEW*` constant of the namespace behind a file; `ENOTTY` if it is no namespace file.
pub(crate) fn namespace_type(file: impl AsFd) -> nix::Result<libc::c_int> {
    // SAFETY: NS_GET_NSTYPE takes no argument and writes no memory; the descriptor is open for as long as `file` lives.
    let kind = unsafe { libc::ioctl(file.as_fd().as_raw_fd(), NS_GET_NSTYPE) };
    nix::errno::Errno::result(kind)
}

/// `N` bytes from the kernel's random generator (getrandom(2) never gives less than asked for up to 256 bytes).
pub(crate) fn random<const N: usize>() -> io::Result<[u8; N]> {
    const { assert!(N <= 256) };
    let mut bytes = [0_u8; N];
    // SAFETY: the pointer and length describe `bytes`, which outlives the call.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    match usize::try_from(got) {
        Ok(n) if n == N => Ok(bytes),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// Ties an open `/dev/net/tun` to the link of that name, which is made unless it is there (`TUNSETIFF`, linux/if_tun.h), and
/// gives the name that it has, which is another one if a pattern such as `tap%d` was asked for.
pub(crate) fn tun_attach(file: impl AsFd, name: &str, flags: libc::c_int) -> nix::Result<String> {
    // SAFETY: ifreq is plain data for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero: the name ends there at the latest.
    let (_, room) = request.ifr_name.split_last_mut().unzip();
    for (to, from) in room.into_iter().flatten().zip(name.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    // The field has sixteen bits, the highest of which is a flag of its own.
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: TUNSETIFF reads and writes one ifreq, which `request` is; it outlives the call, and so does the descriptor.
    let verdict = unsafe {
        libc::ioctl(
            file.as_fd().as_raw_fd(),
            libc::TUNSETIFF,
            std::ptr::from_mut(&mut request),
        )
    };
    nix::errno::Errno::result(verdict)?;
    let bytes = request.ifr_name.map(|c| c.to_ne_bytes()[0]);
    Ok(crate::nla::as_text(&bytes))
}

/// Sets a number of the tap behind an open `/dev/net/tun`: owner, group, or whether it stays.
pub(crate) fn tun_set(file: impl AsFd, request: libc::Ioctl, value: u32) -> nix::Result<()> {
    // SAFETY: these requests take a number in place of a pointer and touch no memory of ours; the descriptor is open for as
    // long as `file` lives.
    let verdict = unsafe {
        libc::ioctl(
            file.as_fd().as_raw_fd(),
            request,
            libc::c_ulong::from(value),
        )
    };
    nix::errno::Errno::result(verdict).map(drop)
}

/// An address of the `AF_PACKET` family: a link, and on it perhaps a station.
fn link_address(
    index: u32,
    ethertype: u16,
    station: Option<[u8; 6]>,
) -> io::Result<libc::sockaddr_ll> {
    // SAFETY: sockaddr_ll is plain data for which all zeroes is a valid value.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = ethertype.to_be();
    address.sll_ifindex = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
    if let Some(mac) = station {
        let [a, b, c, d, e, f] = mac;
        address.sll_halen = 6;
        address.sll_addr = [a, b, c, d, e, f, 0, 0];
    }
    Ok(address)
}

/// Makes a socket receive only what a classic BPF program picks (SO_ATTACH_FILTER, socket(7)).
pub(crate) fn attach_filter(socket: impl AsFd, program: &[libc::sock_filter]) -> io::Result<()> {
    let description = libc::sock_fprog {
        len: libc::c_ushort::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the description and the program it points to outlive the call, and the kernel only reads them.
    let set = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            std::ptr::from_ref(&description).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    Ok(nix::errno::Errno::result(set).map(drop)?)
}

/// Binds an `AF_PACKET` socket to one protocol on one link.
pub(crate) fn bind_packet(socket: impl AsFd, index: u32, ethertype: u16) -> io::Result<()> {
    let address = link_address(index, ethertype, None)?;
    // SAFETY: the address is valid for the length given, and the kernel only reads it.
    let bound = unsafe {
        libc::bind(
            socket.as_fd().as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    Ok(nix::errno::Errno::result(bound).map(drop)?)
}

/// Sends through an `AF_PACKET` socket, out of the link with that index: a frame with its link-layer header through a raw
/// one, a packet to a station through a datagram one, which makes the header.
pub(crate) fn send_packet(
    socket: impl AsFd,
    index: u32,
    ethertype: u16,
    station: Option<[u8; 6]>,
    packet: &[u8],
) -> io::Result<()> {
    let to = link_address(index, ethertype, station)?;
    // SAFETY: packet and address are valid for the lengths given, and the kernel only reads them.
    let sent = unsafe {
        libc::sendto(
            socket.as_fd().as_raw_fd(),
            packet.as_ptr().cast(),
            packet.len(),
            0,
            std::ptr::from_ref(&to).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    Ok(nix::errno::Errno::result(sent).map(drop)?)
}

/// Receives one packet from an `AF_PACKET` socket, with the station it came from (zeroes on a link without such).
pub(crate) fn receive_packet(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, [u8; 6])> {
    // SAFETY: sockaddr_ll is plain data for which all zeroes is a valid value.
    let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: buffer and address are valid for writes of the lengths given, which the kernel does not exceed.
    let received = unsafe {
        libc::recvfrom(
            socket.as_fd().as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            0,
            std::ptr::from_mut(&mut from).cast(),
            &mut length,
        )
    };
    let size = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let [a, b, c, d, e, f, ..] = from.sll_addr;
    Ok((size, [a, b, c, d, e, f]))
}
