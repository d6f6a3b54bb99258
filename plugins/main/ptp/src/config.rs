//! The `ptp` plugin's configuration.

use interface::config::DnsConfig;
use ipnetwork::IpNetwork;
use netfilter::Backend;
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;

/// The keys that this plugin reads; those up to `dns` as in the reference set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Masquerade what leaves the container for another subnet.
    pub ip_masq: bool,
    /// Who masquerades: `nftables` or `iptables`.
    pub ip_masq_backend: Option<String>,
    /// MTU of the pair, in bytes; 0 for the kernel's.
    pub mtu: i64,
    /// Name servers for the container; replaces what IPAM says.
    pub dns: Option<DnsConfig>,
    /// Accept router advertisements on an interface whose addresses come from IPAM.
    #[serde(rename = "acceptRA")]
    pub accept_ra: bool,
    /// The IPAM plugin's part, for the subnets that it mentions.
    pub ipam: Option<Value>,
}

impl Config {
    /// The checks that an ADD makes before the first change.
    pub fn validate(&self) -> Result<(), Error> {
        self.mtu()?;
        self.masquerade_backend()?;
        Ok(())
    }

    /// MTU to set, in bytes.
    pub fn mtu(&self) -> Result<Option<u32>, Error> {
        Ok(interface::config::mtu(self.mtu)?)
    }

    /// Every subnet or address that the IPAM part mentions.
    pub fn subnets(&self) -> Vec<IpNetwork> {
        interface::config::subnets(&self.ipam)
    }

    /// The backend named by `ipMasqBackend`.
    pub fn masquerade_backend(&self) -> Result<Option<Backend>, Error> {
        Ok(interface::masquerade::backend(
            self.ip_masq_backend.as_deref(),
        )?)
    }
}
