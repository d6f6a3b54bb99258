//! The system calls that have no safe wrapper.
#![allow(unsafe_code)]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd};

use nix::libc;

/// `_IO(0xb7, 0x3)`: the kind of a namespace file (linux/nsfs.h, since 4.11).
const NS_GET_NSTYPE: libc::Ioctl = 0xb703;

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

/// Sends one link-layer frame (header included) out of the link with that index through an `AF_PACKET` raw socket.
pub(crate) fn send_frame(
    socket: impl AsFd,
    index: u32,
    ethertype: u16,
    frame: &[u8],
) -> io::Result<()> {
    // SAFETY: sockaddr_ll is plain data for which all zeroes is a valid value.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    to.sll_family = libc::AF_PACKET as libc::c_ushort;
    to.sll_protocol = ethertype.to_be();
    to.sll_ifindex = i32::try_from(index).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: frame and address are valid for the lengths given, and the kernel only reads them.
    let sent = unsafe {
        libc::sendto(
            socket.as_fd().as_raw_fd(),
            frame.as_ptr().cast(),
            frame.len(),
            0,
            std::ptr::from_ref(&to).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
