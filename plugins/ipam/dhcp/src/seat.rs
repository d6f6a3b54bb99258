//! The container's interface, as daemon and plugin come to it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use netlink::{Handle, Link, MacAddr, Netns};
use skel::log;

use crate::books::Seat;
use crate::exchange::{Outgoing, release};
use crate::lease::Lease;
use crate::packet::{CLIENT_PORT, Client};

/// A namespace's path as seen from here, with what the daemon was told to put before it.
pub fn path(prefix: &str, netns: &Path) -> PathBuf {
    let mut path = std::ffi::OsString::from(prefix);
    path.push(netns);
    path.into()
}

/// Device and inode of a namespace, by which it is known whatever its path.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let meta = fs::metadata(path).ok()?;
    Some((meta.dev(), meta.ino()))
}

/// Finds the interface of a new attachment.
pub fn find(prefix: &str, netns: &Path, ifname: &str) -> netlink::Result<(Seat, Handle, Link)> {
    let path = path(prefix, netns);
    let handle = Handle::open(&Netns::open(&path)?)?;
    let link = handle.link(ifname)?;
    let seat = Seat {
        netns: netns.to_owned(),
        identity: identity(&path).ok_or(netlink::Error::NetnsGone { path })?,
        index: link.index,
    };
    Ok((seat, handle, link))
}

/// Comes back to an interface; `None` if it is gone, or another is in its place.
pub fn open(prefix: &str, seat: &Seat, ifname: &str) -> netlink::Result<Option<(Handle, Link)>> {
    let path = path(prefix, &seat.netns);
    if identity(&path) != Some(seat.identity) {
        return Ok(None);
    }
    let handle = match Netns::open(&path).and_then(|netns| Handle::open(&netns)) {
        Err(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => return Ok(None),
        other => other?,
    };
    let link = match handle.link_by_index(seat.index) {
        Err(error) if error.is_not_found() => return Ok(None),
        other => other?,
    };
    // A workload may have renamed it, which changes nothing about the lease.
    if link.name != ifname {
        log::info(format_args!("{ifname} is called {} now", link.name));
    }
    Ok(Some((handle, link)))
}

/// Gives a lease back: one packet from the leased address to the server. It goes out of the link the lease was had on,
/// if that is still there; what comes of it nobody tells.
pub fn give_back(
    prefix: &str,
    seat: &Seat,
    ifname: &str,
    client: &Client,
    lease: &Lease,
) -> netlink::Result<Option<netlink::PacketSocket>> {
    let Some((handle, link)) = open(prefix, seat, ifname)? else {
        log::info(format_args!(
            "{ifname} is gone; {} is not told to {}",
            lease.address, lease.server
        ));
        return Ok(None);
    };
    let socket = handle.packet_socket(&link, CLIENT_PORT)?;
    let Outgoing { station, packet } =
        release(client, lease.address, lease.server, lease.server_mac);
    if let Err(error) = socket.send(MacAddr::new(station), &packet) {
        log::warn(format_args!(
            "cannot tell {} that {} is free: {error}",
            lease.server, lease.address
        ));
    }
    Ok(Some(socket))
}
