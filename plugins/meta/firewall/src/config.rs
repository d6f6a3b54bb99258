//! The `firewall` plugin's configuration.

use netfilter::{Backend, Policy};
use serde::Deserialize;

use crate::error::Error;

/// Chain of an administrator's own rules, unless the configuration names another.
const ADMIN_CHAIN: &str = "CNI-ADMIN";

/// The keys that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Who lets the traffic through: `nftables`, `iptables` or `firewalld`; anything else means: see which
    /// fits the host.
    pub backend: String,
    /// Chain that is asked before ours (iptables).
    pub iptables_admin_chain_name: String,
    /// Zone of the container's addresses (firewalld).
    pub firewalld_zone: String,
    /// What may reach the container: `open`, `same-bridge` or `isolated`.
    pub ingress_policy: String,
}

impl Config {
    /// The backend, if one is named.
    pub fn backend(&self) -> Option<Backend> {
        let found = Backend::from_name(&self.backend);
        if found.is_none() && !self.backend.is_empty() {
            skel::log::warn(format_args!(
                "firewall: unknown backend {:?}; taking what fits this host (known: nftables, iptables, firewalld)",
                self.backend
            ));
        }
        found
    }

    /// Name of the admin chain.
    pub fn admin_chain(&self) -> String {
        or_default(&self.iptables_admin_chain_name, ADMIN_CHAIN)
    }

    /// Name of the zone.
    pub fn zone(&self) -> String {
        or_default(&self.firewalld_zone, "trusted")
    }

    /// The ingress policy; `None` is `open`.
    pub fn policy(&self) -> Result<Option<Policy>, Error> {
        match self.ingress_policy.as_str() {
            "" | "open" => Ok(None),
            "same-bridge" => Ok(Some(Policy::SameBridge)),
            "isolated" => Ok(Some(Policy::Isolated)),
            other => Err(Error::IngressPolicy(other.to_owned())),
        }
    }
}

fn or_default(text: &str, default: &str) -> String {
    if text.is_empty() { default } else { text }.to_owned()
}
