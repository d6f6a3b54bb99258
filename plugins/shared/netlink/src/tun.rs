//! Taps: links whose other end is a file, in the hands of a virtual machine.
//!
//! They are made through `/dev/net/tun` (linux/if_tun.h); the kernel offers no other way.

use std::fs::{File, OpenOptions};
use std::io;

use nix::errno::Errno;
use nix::libc;

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::Link;
use crate::name;
use crate::sys;

/// The device of taps.
const DEVICE: &str = "/dev/net/tun";

/// The other end of a tap, as `IFLA_INFO_DATA` describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TunSettings {
    /// Whether it carries Ethernet frames (tap), not IP packets (tun).
    pub tap: bool,
    /// The user that may open it.
    pub owner: Option<u32>,
    /// The group that may open it.
    pub group: Option<u32>,
    /// Whether it can be opened more than once.
    pub multi_queue: bool,
    /// Whether it stays when nobody has it open.
    pub persistent: bool,
    /// Whether the frames carry a header for offloads.
    pub vnet_hdr: bool,
    /// Whether the frames carry a header with their protocol.
    pub packet_info: bool,
}

/// A tap to be made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewTap {
    /// Its name; none leaves it to the kernel, which takes the first of `tap0`, `tap1`, ... that is free.
    pub name: Option<String>,
    /// Whether it can be opened more than once, up to once for each queue.
    pub multi_queue: bool,
    /// Whether the frames carry a header for offloads. Who opens the tap can change that.
    pub vnet_hdr: bool,
    /// The user that may open it; none means everybody who may change the network.
    pub owner: Option<u32>,
    /// The group that may open it, likewise.
    pub group: Option<u32>,
}

/// A tap that goes away with this value unless it is told to [stay](Tap::persist).
#[derive(Debug)]
pub struct Tap {
    file: File,
    name: String,
}

impl Tap {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Makes it stay when nobody has it open. To be called last, so that a tap that stays is a whole one.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn persist(self) -> Result<()> {
        sys::tun_set(&self.file, sys::TUNSETPERSIST, 1)
            .map_err(|errno| refused("keep tap", &self.name, errno))
    }
}

impl Handle {
    /// Makes a tap in this namespace. It is down.
    ///
    /// # Errors
    /// [`is_exists`](Error::is_exists) if the name is taken, by whatever; [`Error::Io`] if `/dev/net/tun` cannot be opened.
    pub fn create_tap(&self, tap: &NewTap) -> Result<Tap> {
        let asked = tap.name.as_deref().unwrap_or("tap%d");
        if let Some(name) = &tap.name {
            name::check_name(name)?;
        }
        let file = self.inside(open)??;
        let mut flags = libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_TUN_EXCL;
        for (wanted, flag) in [
            (tap.multi_queue, libc::IFF_MULTI_QUEUE),
            (tap.vnet_hdr, libc::IFF_VNET_HDR),
        ] {
            if wanted {
                flags |= flag;
            }
        }
        let name = sys::tun_attach(&file, asked, flags).map_err(|errno| match errno {
            // What the kernel says of a name that is taken.
            Errno::EBUSY => refused("create tap", asked, Errno::EEXIST),
            other => refused("create tap", asked, other),
        })?;
        let ids = [
            (tap.owner, sys::TUNSETOWNER, "set the owner of tap"),
            (tap.group, sys::TUNSETGROUP, "set the group of tap"),
        ];
        for (id, request, what) in ids {
            if let Some(id) = id {
                sys::tun_set(&file, request, id).map_err(|errno| refused(what, &name, errno))?;
            }
        }
        Ok(Tap { file, name })
    }

    /// Opens the other end of a tap that is there, as a virtual machine does: what is written to the file comes out of the
    /// link, what is sent out of the link is read from the file, one frame at a time without any header.
    ///
    /// # Errors
    /// If it is no tap, belongs to somebody else or is in use.
    pub fn open_tap(&self, link: &Link) -> Result<File> {
        let mut flags = libc::IFF_TAP | libc::IFF_NO_PI;
        if link.tun.is_some_and(|tun| tun.multi_queue) {
            flags |= libc::IFF_MULTI_QUEUE;
        }
        let file = self.inside(open)??;
        sys::tun_attach(&file, &link.name, flags)
            .map_err(|errno| refused("open tap", &link.name, errno))?;
        Ok(file)
    }
}

/// Whether taps can be made on this host, as far as opening the device tells.
///
/// # Errors
/// [`Error::Io`] if it cannot be opened.
pub fn require_tun() -> Result<()> {
    open().map(drop)
}

/// The file belongs to the namespace that the thread stands in.
fn open() -> Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .open(DEVICE)
        .map_err(|source: io::Error| Error::Io {
            what: "open",
            object: DEVICE.to_owned(),
            source,
        })
}

fn refused(what: &'static str, name: &str, errno: Errno) -> Error {
    Error::Kernel {
        what,
        object: name.to_owned(),
        errno,
        message: None,
    }
}
