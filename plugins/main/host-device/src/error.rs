//! What can go wrong in `host-device`.

use std::path::PathBuf;

use cni_types::code;
use skel::{DelegateError, PluginError};

/// What can go wrong in `host-device`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration says nothing about the device.
    #[error(r#"specify either "device", "hwaddr", "kernelpath" or "pciBusID""#)]
    NoSelector,
    /// `hwaddr` is no MAC address.
    #[error("failed to find host device: failed to parse MAC address {text:?}: {source}")]
    Mac {
        /// The text.
        text: String,
        /// What is wrong with it.
        source: netlink::Error,
    },
    /// `kernelpath` is somewhere else.
    #[error(
        "failed to find host device: kernel device path {0:?} must be absolute and begin with /sys/devices/"
    )]
    KernelPath(String),
    /// A device's address or name that cannot be one.
    #[error("{key} {value:?} is no name of a device")]
    BadId {
        /// The key of the configuration.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// `runtimeConfig.deviceID` is on neither bus.
    #[error("runtime config DeviceID {0} not found or unsupported")]
    UnknownId(String),
    /// There is no such PCI device, or it has no driver.
    #[error("error with host device: {path:?}: {source}")]
    NoDriver {
        /// The link to the driver in sysfs.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A device without a network interface.
    #[error("failed to find host device: no network interface below {0:?}")]
    NoInterface(PathBuf),
    /// No interface fits.
    #[error("failed to find host device: {0}: Link not found")]
    NotFound(String),
    /// The interface cannot be moved.
    #[error("interface {0:?} is the loopback interface, which every namespace has its own of")]
    Loopback(String),
    /// The kernel would not move it.
    #[error("failed to move link {device:?} to the container as {ifname:?}: {source}")]
    NotMoved {
        /// Its name on the host.
        device: String,
        /// The name in the container.
        ifname: String,
        /// The kernel's reason.
        source: Box<netlink::Error>,
    },
    /// The name of the interface on the host belongs to another one by now.
    #[error(
        "failed to move {ifname:?} back to the host: an interface {name:?} already exists there"
    )]
    NameTaken {
        /// The name in the container.
        ifname: String,
        /// The name on the host.
        name: String,
    },
    /// What can go wrong with any plugin's interface.
    #[error(transparent)]
    Interface(#[from] interface::Error),
    /// The kernel refused a change.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// STATUS: an ADD would fail, and this is how.
    #[error(transparent)]
    NotReady(Box<Error>),
    /// Several things failed; a DEL or GC goes on past each.
    #[error("{}", skel::listed(.0))]
    Several(Vec<Error>),
}

impl Error {
    /// Nothing if the list is empty, the error if it is one, else all of them together.
    pub(crate) fn join(errors: Vec<Self>) -> Result<(), Self> {
        skel::join(errors, Self::Several)
    }
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::NoSelector | Self::Mac { .. } | Self::KernelPath(_) | Self::BadId { .. } => {
                code::INVALID_NETWORK_CONFIG
            }
            Self::Interface(error) => error.code(),
            Self::Netlink(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                code::INVALID_NETNS
            }
            Self::NotReady(_) => code::PLUGIN_NOT_AVAILABLE,
            _ => code::INTERNAL,
        }
    }

    fn details(&self) -> String {
        match self {
            Self::NotFound(_) | Self::NoInterface(_) => {
                "it may be in another container, or its driver is not loaded".to_owned()
            }
            Self::NameTaken { ifname, name } => format!(
                "rename or remove the interface {name:?} of the host and repeat the DEL; until then {ifname:?} \
                 stays in the container as it is"
            ),
            Self::Interface(error) => error.details(),
            Self::NotReady(error) => error.details(),
            Self::Netlink(error) => error.next_step(),
            Self::Several(errors) => errors.first().map(PluginError::details).unwrap_or_default(),
            Self::NoSelector => "name the device, as with \"device\": \"eth1\"".to_owned(),
            Self::Mac { source, .. } => source.next_step(),
            Self::KernelPath(_) => "give the path that readlink -f /sys/class/net/NAME/device prints".to_owned(),
            Self::BadId { .. } => "write it as /sys/bus/pci/devices has it, such as 0000:00:1f.6".to_owned(),
            Self::UnknownId(_) => "see to the device plugin that gave this id; ls /sys/bus/pci/devices lists what is there".to_owned(),
            Self::NoDriver { .. } => "see to the address, and that a driver has the device (lspci -k)".to_owned(),
            Self::Loopback(_) => "name another device".to_owned(),
            Self::NotMoved { source, .. } => source.next_step(),
        }
    }

    fn delegated(&self) -> Option<&DelegateError> {
        match self {
            Self::Interface(error) => error.delegated(),
            _ => None,
        }
    }
}
