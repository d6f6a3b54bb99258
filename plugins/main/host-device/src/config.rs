//! The `host-device` plugin's configuration.

use interface::addressing::Dad;
use interface::config::DnsConfig;
use serde::Deserialize;

/// The keys that this plugin reads; those up to `runtimeConfig` as in the reference set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Name of the interface on the host, which may be an alternative name.
    pub device: String,
    /// Its MAC address.
    pub hwaddr: String,
    /// A directory below `/sys/devices/` that has the interface under `net`.
    #[serde(rename = "kernelpath")]
    pub kernel_path: String,
    /// Its PCI address.
    #[serde(rename = "pciBusID")]
    pub pci_bus_id: String,
    /// Name servers for the container; replaces what IPAM says.
    pub dns: Option<DnsConfig>,
    /// What the runtime filled in.
    pub runtime_config: RuntimeConfig,
    /// Duplicate address detection; absent for `optimistic`.
    pub dad: Option<Dad>,
    /// Accept router advertisements on an interface whose addresses come from IPAM.
    #[serde(rename = "acceptRA")]
    pub accept_ra: bool,
}

/// The part of `runtimeConfig` that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RuntimeConfig {
    /// A PCI address, or the name of a device on the auxiliary bus.
    #[serde(rename = "deviceID")]
    pub device_id: String,
}
