//! The `ipvlan` plugin's configuration.

use interface::addressing::Dad;
use interface::config::DnsConfig;
use netlink::IpvlanMode;
use serde::Deserialize;

use crate::error::Error;

/// The keys that this plugin reads. Those up to `dns` as in the reference set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// The interface to sit on; empty for that of the plugin before in a chain, or of the default route.
    pub master: String,
    /// `l2` (also if empty), `l3` or `l3s`.
    pub mode: String,
    /// MTU in bytes; 0 or less for the master's.
    pub mtu: i64,
    /// The master is in the container.
    pub link_in_container: bool,
    /// Name servers for the container; replaces what IPAM says.
    pub dns: Option<DnsConfig>,
    /// Duplicate address detection; absent for `optimistic`.
    pub dad: Option<Dad>,
    /// Accept router advertisements on an interface whose addresses come from IPAM.
    #[serde(rename = "acceptRA")]
    pub accept_ra: bool,
    /// The IPAM plugin's part, for whether there is one.
    pub ipam: IpamConfig,
}

/// The part of `ipam` that tells whether addresses come from there.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct IpamConfig {
    r#type: String,
}

impl Config {
    /// The mode.
    pub fn mode(&self) -> Result<IpvlanMode, Error> {
        if self.mode.is_empty() {
            return Ok(IpvlanMode::default());
        }
        let unknown = |_| Error::UnknownMode(self.mode.clone());
        self.mode.parse().map_err(unknown)
    }

    /// Whether addresses come from IPAM.
    pub fn has_ipam(&self) -> bool {
        !self.ipam.r#type.is_empty()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let value = cni_types::json::parse(text.as_bytes()).unwrap();
        cni_types::json::from_value(&value).unwrap()
    }

    #[test]
    fn modes() {
        assert_eq!(config("{}").mode().unwrap(), IpvlanMode::L2);
        assert_eq!(config(r#"{"mode":"l3s"}"#).mode().unwrap(), IpvlanMode::L3s);
        let error = config(r#"{"mode":"l4"}"#).mode().unwrap_err();
        assert_eq!(error.to_string(), r#"unknown ipvlan mode: "l4""#);
    }

    #[test]
    fn whether_there_is_ipam() {
        assert!(config(r#"{"ipam":{"type":"host-local"}}"#).has_ipam());
        for without in ["{}", r#"{"ipam":{}}"#, r#"{"ipam":null}"#] {
            assert!(!config(without).has_ipam(), "{without}");
        }
    }
}
