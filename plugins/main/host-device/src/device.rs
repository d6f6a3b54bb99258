//! Which interface of the host is meant.

use netlink::{Handle, Link, MacAddr};
use skel::log;

use crate::config::Config;
use crate::error::Error;
use crate::{home, sysfs};

/// What the configuration says about the device: the first of its keys that says anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// By name.
    Name(String),
    /// By MAC address.
    Mac(MacAddr),
    /// By directory below `/sys/devices`.
    KernelPath(String),
    /// By PCI address.
    Pci(String),
    /// By name on the auxiliary bus.
    Auxiliary(String),
    /// A PCI device that a program in user space drives: there is no interface to be moved.
    UserSpace,
}

/// An interface of the host to be moved.
#[derive(Debug)]
pub struct Device {
    /// The interface.
    pub link: Link,
    /// The name that it is to get back on the host.
    pub home: String,
}

/// Reads the configuration, which is the one of a runtime that has filled `deviceID` in where it knows it.
pub fn choose(config: &Config) -> Result<Selector, Error> {
    let (pci, auxiliary) = by_bus(config)?;
    if let Some(pci) = &pci
        && sysfs::is_in_user_space(pci)?
    {
        return Ok(Selector::UserSpace);
    }
    if !config.device.is_empty() {
        return Ok(Selector::Name(config.device.clone()));
    }
    if !config.hwaddr.is_empty() {
        let text = config.hwaddr.clone();
        let parsed = text.parse().map(Selector::Mac);
        return parsed.map_err(|source| Error::Mac { text, source });
    }
    if !config.kernel_path.is_empty() {
        sysfs::require_path(&config.kernel_path)?;
        return Ok(Selector::KernelPath(config.kernel_path.clone()));
    }
    let by_bus = pci.map(Selector::Pci);
    by_bus
        .or(auxiliary.map(Selector::Auxiliary))
        .ok_or(Error::NoSelector)
}

/// The device's address on the PCI bus or its name on the auxiliary one. What the runtime says comes first.
fn by_bus(config: &Config) -> Result<(Option<String>, Option<String>), Error> {
    let id = &config.runtime_config.device_id;
    if !id.is_empty() {
        sysfs::require_id("deviceID", id)?;
        if sysfs::is_pci(id) {
            return Ok((Some(id.clone()), None));
        }
        if sysfs::is_auxiliary(id) {
            return Ok((None, Some(id.clone())));
        }
        return Err(Error::UnknownId(id.clone()));
    }
    if config.pci_bus_id.is_empty() {
        return Ok((None, None));
    }
    sysfs::require_id("pciBusID", &config.pci_bus_id)?;
    Ok((Some(config.pci_bus_id.clone()), None))
}

/// Finds the interface on the host. `ifname` is the name that it may still have from an earlier container.
pub fn find(host: &Handle, selector: &Selector, ifname: &str) -> Result<Device, Error> {
    let link = match selector {
        Selector::Name(name) => return by_name(host, name, ifname),
        Selector::Mac(mac) => by_mac(host, *mac)?,
        Selector::KernelPath(path) => named(host, &sysfs::interface_of_path(path)?)?,
        Selector::Pci(id) => named(host, &sysfs::interface_of_pci(id)?)?,
        Selector::Auxiliary(id) => named(host, &sysfs::interface_of_auxiliary(id)?)?,
        Selector::UserSpace => return Err(Error::NoSelector),
    };
    recognised(host, link)
}

fn named(host: &Handle, name: &str) -> Result<Link, Error> {
    let found = host.find_link(name)?;
    found.ok_or_else(|| Error::NotFound(name.to_owned()))
}

/// The interface of that name, or one that had it and came back from a dead container under another.
fn by_name(host: &Handle, name: &str, ifname: &str) -> Result<Device, Error> {
    if let Some(link) = host.find_link(name)? {
        return recognised(host, link);
    }
    let may_be_back =
        |link: &Link| !link.up || link.name == ifname || home::has_fallback_name(link);
    let mut links = host.links()?.into_iter();
    let lost = links.find(|link| home::of(link) == Some(name) && may_be_back(link));
    match lost {
        Some(link) => Ok(Device {
            home: name.to_owned(),
            link,
        }),
        None => Err(Error::NotFound(name.to_owned())),
    }
}

/// An interface that is known by something else than a name that it lost.
fn recognised(host: &Handle, link: Link) -> Result<Device, Error> {
    if link.loopback {
        return Err(Error::Loopback(link.name));
    }
    let lost = match home::has_fallback_name(&link) {
        true => home::lost(host, &link)?,
        false => None,
    };
    Ok(Device {
        home: lost.unwrap_or_else(|| link.name.clone()),
        link,
    })
}

/// The interface with that MAC address. What sits on another interface, or has it for a port, often has the address of
/// that one; then it is the one below that is meant. Of hardware it is the one that carries the other.
fn by_mac(host: &Handle, mac: MacAddr) -> Result<Link, Error> {
    let mut found: Vec<Link> = host.links()?;
    found.retain(|link| link.mac == Some(mac) && !link.loopback);
    let indices: Vec<u32> = found.iter().map(|link| link.index).collect();
    let is_port = |link: &Link| link.master.is_some_and(|master| indices.contains(&master));
    found.sort_by_key(|link| (link.kind.is_some(), is_port(link), link.index));
    if let [first, _, ..] = found.as_slice() {
        let names: Vec<&str> = found.iter().map(|link| link.name.as_str()).collect();
        log::warn(format_args!(
            "several interfaces have MAC address {mac}: {}; taking {}",
            names.join(", "),
            first.name
        ));
    }
    let first = found.into_iter().next();
    first.ok_or_else(|| Error::NotFound(mac.to_string()))
}
