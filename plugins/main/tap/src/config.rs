//! The `tap` plugin's configuration.

use cni_types::result::Dns;
use cni_types::{Args, IfName};
use interface::config::{self, DnsConfig, RuntimeMac};
use netlink::MacAddr;
use netlink::tun::NewTap;
use serde::Deserialize;

use crate::error::Error;

/// The keys that this plugin reads. Field by field as in the reference set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Whether the tap has many queues and can be opened more than once.
    pub multi_queue: bool,
    /// MTU in bytes; 0 leaves it to the kernel.
    pub mtu: i64,
    /// MAC address, unless the runtime names one.
    pub mac: String,
    /// The user that may open the tap.
    pub owner: Option<u32>,
    /// The group that may open the tap.
    pub group: Option<u32>,
    /// The SELinux context that the tap gets.
    pub selinux_context: String,
    /// A bridge in the container of which the tap becomes a port.
    pub bridge: String,
    /// Accept router advertisements on an interface whose addresses come from IPAM.
    #[serde(rename = "acceptRA")]
    pub accept_ra: bool,
    /// Name servers for the container; replaces what IPAM says.
    pub dns: Option<DnsConfig>,
    /// What the runtime filled in.
    pub runtime_config: RuntimeMac,
}

impl Config {
    /// Refuses what no call could carry out.
    ///
    /// # Errors
    /// The first key with a value that is none.
    pub fn validate(&self) -> Result<(), Error> {
        self.mtu()?;
        config::mac([self.runtime_config.mac.as_str(), &self.mac])?;
        if !self.bridge.is_empty() {
            IfName::new(&self.bridge).map_err(|why| Error::BridgeName {
                name: self.bridge.clone(),
                why,
            })?;
        }
        Ok(())
    }

    /// The MTU to set, in bytes.
    ///
    /// # Errors
    /// If no interface can be that small.
    pub fn mtu(&self) -> Result<Option<u32>, Error> {
        Ok(config::mtu(self.mtu)?)
    }

    /// The MAC address that is asked for: by the runtime, else by `CNI_ARGS`, else by the configuration.
    ///
    /// # Errors
    /// If that is none.
    pub fn mac(&self, args: &Args) -> Result<Option<MacAddr>, Error> {
        let places = [
            self.runtime_config.mac.as_str(),
            config::mac_of_args(args),
            &self.mac,
        ];
        Ok(config::mac(places)?)
    }

    /// The tap to make, under that name.
    pub fn tap(&self, ifname: &IfName) -> NewTap {
        NewTap {
            name: Some(ifname.as_str().to_owned()),
            multi_queue: self.multi_queue,
            vnet_hdr: false,
            owner: self.owner,
            group: self.group,
        }
    }

    /// The DNS settings: those of the configuration if there are any, else IPAM's.
    pub fn dns(&self, from_ipam: Dns) -> Dns {
        config::dns(self.dns.as_ref(), from_ipam)
    }
}
