//! The `vlan` plugin's configuration.

use interface::addressing::Dad;
use interface::config::DnsConfig;
use serde::Deserialize;

use crate::error::Error;

/// The highest VLAN ID (IEEE 802.1Q; 4095 is reserved, and 0 is a priority without a VLAN).
const VLAN_MAX: u16 = 4094;

/// The keys that this plugin reads. Those up to `dns` as in the reference set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// The interface whose VLAN it is.
    pub master: String,
    /// The VLAN, 0 to 4094.
    pub vlan_id: i64,
    /// MTU in bytes; 0 for the master's.
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
}

impl Config {
    /// The interface whose VLAN it is.
    pub fn master(&self) -> Result<&str, Error> {
        match self.master.as_str() {
            "" => Err(Error::NoMaster),
            name => Ok(name),
        }
    }

    /// The VLAN.
    pub fn vlan_id(&self) -> Result<u16, Error> {
        u16::try_from(self.vlan_id)
            .ok()
            .filter(|id| *id <= VLAN_MAX)
            .ok_or(Error::VlanId(self.vlan_id))
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
    fn vlan_ids() {
        for (text, id) in [("{}", 0), (r#"{"vlanid":4094}"#, 4094)] {
            assert_eq!(config(text).vlan_id().unwrap(), id);
        }
        for id in [-1, 4095, 65536, 65541] {
            let config = config(&format!(r#"{{"vlanId":{id}}}"#));
            let error = config.vlan_id().unwrap_err().to_string();
            assert!(error.contains(&format!("invalid VLAN ID {id} ")), "{error}");
        }
    }

    #[test]
    fn a_master_is_required() {
        let error = config("{}").master().unwrap_err().to_string();
        assert!(error.contains("\"master\" field is required"), "{error}");
        assert_eq!(config(r#"{"master":"eth0"}"#).master().unwrap(), "eth0");
    }
}
