//! The `macvlan` plugin's configuration.

use cni_types::Args;
use interface::addressing::Dad;
use interface::config::{DnsConfig, RuntimeMac};
use netlink::{MacAddr, MacvlanMode};
use serde::Deserialize;

use crate::error::Error;

/// The keys that this plugin reads. Those up to `runtimeConfig` as in the reference set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// The interface to sit on; empty for that of the default route.
    pub master: String,
    /// `bridge` (also if empty), `private`, `vepa` or `passthru`.
    pub mode: String,
    /// MTU in bytes; 0 for the master's.
    pub mtu: i64,
    /// MAC address, unless the runtime or `CNI_ARGS` give one.
    pub mac: String,
    /// The master is in the container.
    pub link_in_container: bool,
    /// Length of the queue for broadcast packets; 0 for the kernel's (1000).
    pub bcqueuelen: u32,
    /// Name servers for the container; replaces what IPAM says.
    pub dns: Option<DnsConfig>,
    /// What the runtime filled in.
    pub runtime_config: RuntimeMac,
    /// Duplicate address detection; absent for `optimistic`.
    pub dad: Option<Dad>,
    /// Accept router advertisements on an interface whose addresses come from IPAM.
    #[serde(rename = "acceptRA")]
    pub accept_ra: bool,
}

impl Config {
    /// The mode.
    pub fn mode(&self) -> Result<MacvlanMode, Error> {
        if self.mode.is_empty() {
            return Ok(MacvlanMode::default());
        }
        let unknown = |_| Error::UnknownMode(self.mode.clone());
        self.mode.parse().map_err(unknown)
    }

    /// The MAC address that is asked for: by the runtime, else by `CNI_ARGS`, else by the configuration.
    pub fn mac(&self, args: &Args) -> Result<Option<MacAddr>, Error> {
        Ok(interface::config::mac([
            self.runtime_config.mac.as_str(),
            interface::config::mac_of_args(args),
            self.mac.as_str(),
        ])?)
    }

    /// The length of the queue for broadcast packets, if one is asked for.
    pub fn bc_queue_len(&self) -> Option<u32> {
        Some(self.bcqueuelen).filter(|length| *length > 0)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let value = cni_types::json::parse(text.as_bytes()).unwrap();
        cni_types::json::from_value(&value).unwrap()
    }

    #[test]
    fn modes() {
        assert_eq!(config("{}").mode().unwrap(), MacvlanMode::Bridge);
        assert_eq!(
            config(r#"{"mode":""}"#).mode().unwrap(),
            MacvlanMode::Bridge
        );
        assert_eq!(
            config(r#"{"Mode":"passthru"}"#).mode().unwrap(),
            MacvlanMode::Passthru
        );
        let error = config(r#"{"mode":"source"}"#).mode().unwrap_err();
        assert_eq!(error.to_string(), r#"unknown macvlan mode: "source""#);
    }

    #[test]
    fn mac_precedence() {
        let args = Args::parse("IgnoreUnknown=true;MAC=02:00:00:00:00:02");
        let all = r#"{"mac":"02:00:00:00:00:01","runtimeConfig":{"Mac":"02:00:00:00:00:03"}}"#;
        assert_eq!(config(all).mac(&args).unwrap().unwrap().octets()[5], 3);
        let own = config(r#"{"mac":"02:00:00:00:00:01"}"#);
        assert_eq!(own.mac(&args).unwrap().unwrap().octets()[5], 2);
        let no_args = Args::default();
        assert_eq!(own.mac(&no_args).unwrap().unwrap().octets()[5], 1);
        assert_eq!(config("{}").mac(&no_args).unwrap(), None);
        config(r#"{"mac":"nonsense"}"#).mac(&no_args).unwrap_err();
    }

    #[test]
    fn duplicate_address_detection() {
        assert_eq!(config("{}").dad, None);
        assert_eq!(config(r#"{"dad":"wait"}"#).dad, Some(Dad::Wait));
        assert_eq!(config(r#"{"DAD":"off"}"#).dad, Some(Dad::Off));
        let value = cni_types::json::parse(br#"{"dad":"sometimes"}"#).unwrap();
        let error = cni_types::json::from_value::<Config>(&value).unwrap_err();
        assert!(error.to_string().contains("optimistic"), "{error}");
    }
}
