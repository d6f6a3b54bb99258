//! Network cards of the host, for plugins that move one into a container.
//!
//! A card is a veth whose far end is outside, and it stands on a made-up auxiliary bus, so that runtimes can name it by
//! its id there, as they do with what a device plugin has chosen.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use nix::mount::{MsFlags, mount};

use super::host::Host;
use super::rtnl::Rtnl;
use crate::error::{Context, Result};

const BUS: &str = "/sys/bus";
const AUXILIARY: &str = "/sys/bus/auxiliary/devices";

/// Far ends have names of their own: that of a card that is gone may go a moment later.
static FAR_ENDS: AtomicU32 = AtomicU32::new(0);

/// The name of a card on the host.
#[must_use]
pub fn card_name(number: u8) -> String {
    format!("nic{number}")
}

/// The id of a card on its bus, for `runtimeConfig.deviceID`.
#[must_use]
pub fn card_id(number: u8) -> String {
    format!("ferrule.nic.{number}")
}

/// Provides the host of a sandbox with a card, which is down. Its MAC address is always the same.
///
/// # Errors
/// When the host has an interface of that name, or what the kernel refused.
pub fn provide_card(host: &Host, number: u8) -> Result<()> {
    let name = card_name(number);
    let far_end = format!("far{}", FAR_ENDS.fetch_add(1, Ordering::Relaxed));
    host.rtnl().add_veth(&name, host.outside(), &far_end)?;
    host.rtnl().set_mac(&name, [2, 0, 0, 0, 0xca, number])?;
    Rtnl::open(host.outside())?.set_up(&far_end)?;
    list(number, &name)
}

/// Writes a card into a file system that covers what the kernel tells about buses.
fn list(number: u8, name: &str) -> Result<()> {
    if !is_covered() {
        mount(
            Some("tmpfs"),
            BUS,
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .doing(|| format!("cover {BUS}"))?;
    }
    let directory = Path::new(AUXILIARY)
        .join(card_id(number))
        .join("net")
        .join(name);
    fs::create_dir_all(&directory).doing(|| format!("create {}", directory.display()))
}

/// Whether there is no other bus, as on no machine.
fn is_covered() -> bool {
    fs::read_dir(BUS)
        .is_ok_and(|mut buses| buses.all(|bus| bus.is_ok_and(|bus| bus.file_name() == "auxiliary")))
}
