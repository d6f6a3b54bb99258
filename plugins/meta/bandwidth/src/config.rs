//! The `bandwidth` plugin's configuration.

use serde::Deserialize;

use crate::error::Error;
use crate::limit::{Direction, Limit};

/// The keys that this plugin reads. Field by field as in the reference set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Rate of what the container receives, in bits a second.
    pub ingress_rate: Option<u64>,
    /// What it may receive at once, in bits.
    pub ingress_burst: Option<u64>,
    /// Rate of what the container sends, in bits a second.
    pub egress_rate: Option<u64>,
    /// What it may send at once, in bits.
    pub egress_burst: Option<u64>,
    /// What the runtime filled in.
    pub runtime_config: RuntimeConfig,
}

/// The part of `runtimeConfig` that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct RuntimeConfig {
    /// The limits of this one container.
    pub bandwidth: Option<Bandwidth>,
}

/// The limits that a runtime sets.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Bandwidth {
    ingress_rate: u64,
    ingress_burst: u64,
    egress_rate: u64,
    egress_burst: u64,
}

/// The limits of an attachment, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// Of what the container receives.
    pub ingress: Option<Limit>,
    /// Of what the container sends.
    pub egress: Option<Limit>,
}

impl Limits {
    /// Whether there is nothing to limit.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Config {
    /// The limits to set: the network's own, or else those of the runtime. A network that says anything about limits, be it
    /// that one is 0, is not overruled.
    ///
    /// # Errors
    /// If a rate comes without a burst or the reverse, or one of them cannot be.
    pub fn limits(&self) -> Result<Limits, Error> {
        let own = [
            self.ingress_rate,
            self.ingress_burst,
            self.egress_rate,
            self.egress_burst,
        ];
        let asked = if own.iter().any(Option::is_some) {
            let [ingress_rate, ingress_burst, egress_rate, egress_burst] =
                own.map(Option::unwrap_or_default);
            Bandwidth {
                ingress_rate,
                ingress_burst,
                egress_rate,
                egress_burst,
            }
        } else {
            self.runtime_config.bandwidth.unwrap_or_default()
        };
        Ok(Limits {
            ingress: Limit::new(Direction::Ingress, asked.ingress_rate, asked.ingress_burst)?,
            egress: Limit::new(Direction::Egress, asked.egress_rate, asked.egress_burst)?,
        })
    }
}
