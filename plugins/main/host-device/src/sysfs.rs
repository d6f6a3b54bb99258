//! What the kernel tells about devices in `/sys`.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::error::Error;

const PCI_DEVICES: &str = "/sys/bus/pci/devices";
const AUXILIARY_DEVICES: &str = "/sys/bus/auxiliary/devices";
const DEVICES: &str = "/sys/devices";

/// Drivers that give a device to a program in user space, so that it has no network interface (dpdk.org, "Linux Drivers").
const USER_SPACE_DRIVERS: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// What begins the name of a device on the virtio bus, below the PCI device that it is made of.
const VIRTIO: &str = "virtio";

/// Whether there is a PCI device of that address.
pub fn is_pci(id: &str) -> bool {
    Path::new(PCI_DEVICES).join(id).exists()
}

/// Whether there is a device of that name on the auxiliary bus.
pub fn is_auxiliary(id: &str) -> bool {
    Path::new(AUXILIARY_DEVICES).join(id).exists()
}

/// Refuses what would be another path than a device's.
pub fn require_id(key: &'static str, value: &str) -> Result<(), Error> {
    let mut parts = Path::new(value).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == value && !value.contains('\0') => Ok(()),
        _ => Err(Error::BadId {
            key,
            value: value.to_owned(),
        }),
    }
}

/// Whether a program in user space drives a PCI device.
pub fn is_in_user_space(pci: &str) -> Result<bool, Error> {
    let path = Path::new(PCI_DEVICES).join(pci).join("driver");
    match fs::read_link(&path) {
        Ok(driver) => {
            let name = driver.file_name().unwrap_or_default();
            Ok(USER_SPACE_DRIVERS.iter().any(|known| name == *known))
        }
        Err(source) => Err(Error::NoDriver { path, source }),
    }
}

/// The interface of a PCI device, which may be a virtio device.
pub fn interface_of_pci(id: &str) -> Result<String, Error> {
    let device = Path::new(PCI_DEVICES).join(id);
    if let Some(name) = first(&device.join("net")) {
        return Ok(name);
    }
    let mut parts = entries(&device).unwrap_or_default();
    parts.retain(|part| part.starts_with(VIRTIO));
    let found = parts
        .iter()
        .find_map(|part| first(&device.join(part).join("net")));
    found.ok_or(Error::NoInterface(device))
}

/// The interface of a device on the auxiliary bus.
pub fn interface_of_auxiliary(id: &str) -> Result<String, Error> {
    let device = Path::new(AUXILIARY_DEVICES).join(id);
    first(&device.join("net")).ok_or(Error::NoInterface(device))
}

/// The interface of the device in that directory below `/sys/devices`.
pub fn interface_of_path(path: &str) -> Result<String, Error> {
    require_path(path)?;
    let device = PathBuf::from(path);
    first(&device.join("net")).ok_or(Error::NoInterface(device))
}

/// Refuses a directory that is not below `/sys/devices`.
pub fn require_path(path: &str) -> Result<(), Error> {
    let below = Path::new(path).strip_prefix(DEVICES);
    let fits = below.is_ok_and(|rest| {
        rest.components().next().is_some()
            && rest
                .components()
                .all(|part| matches!(part, Component::Normal(_)))
    });
    if fits {
        Ok(())
    } else {
        Err(Error::KernelPath(path.to_owned()))
    }
}

/// The first entry of a directory by name.
fn first(directory: &Path) -> Option<String> {
    entries(directory).ok()?.into_iter().next()
}

fn entries(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        names.extend(entry?.file_name().into_string().ok());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_part_of_a_path() {
        for id in ["0000:00:1f.6", "mlx5_core.sf.4"] {
            require_id("pciBusID", id).unwrap();
        }
        for id in ["", ".", "..", "a/b", "/a", "a/", "a\0"] {
            assert!(require_id("pciBusID", id).is_err(), "{id:?}");
        }
    }

    #[test]
    fn a_kernel_path_is_below_the_devices() {
        require_path("/sys/devices/pci0000:00/0000:00:1f.6").unwrap();
        for path in [
            "",
            "/sys/devices",
            "/sys/devices/",
            "/sys/class/net",
            "sys/devices/a",
            "/sys/devices/../class/net",
            "/sys/devicesx/a",
        ] {
            assert!(require_path(path).is_err(), "{path:?}");
        }
    }
}
