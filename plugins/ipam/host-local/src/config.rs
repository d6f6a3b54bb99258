//! The configuration: the caller's whole network configuration, of which host-local reads its own part.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;

use cni_types::json::{self, DecodeError, Key};
use cni_types::net::{optional_cidr, optional_ip, parse_cidr, parse_ip};
use cni_types::{Args, Route, SpecVersion, Value};
use ipam_store::{RangeSet, RangeSpec, SetError, parse_sets};
use ipnetwork::IpNetwork;
use serde::Deserialize;
use thiserror::Error;

/// Where leases are kept unless `dataDir` says otherwise; a directory per network is in it.
pub(crate) const DATA_DIR: &str = "/var/lib/cni/networks";

/// Why a configuration cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A value of the wrong type.
    #[error("error parsing configuration: {0}")]
    Decode(#[from] DecodeError),
    /// There is no `ipam` object.
    #[error("IPAM config missing 'ipam' key")]
    NoIpam,
    /// The ranges make no sense.
    #[error("{0}")]
    Sets(#[from] SetError),
    /// Results of early versions have room for one address of each family.
    #[error(
        "CNI version {version} does not support more than 1 address per family, but there are {count} {family} range sets; use 0.3.0 or newer"
    )]
    TooManySets {
        /// The configuration's version.
        version: SpecVersion,
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// How many there are.
        count: usize,
    },
    /// A requested address is none.
    #[error(
        "invalid requested address {text:?} in {place}: expected an address, with or without a prefix length"
    )]
    Requested {
        /// What was given.
        text: String,
        /// Where.
        place: &'static str,
    },
}

impl ConfigError {
    /// What to do about it, in a sentence.
    pub(crate) fn next_step(&self) -> String {
        match self {
            Self::Decode(_) => {
                "correct that key; the page of host-local lists them all".to_owned()
            }
            Self::NoIpam => "host-local is no plugin of a list: name it as \"type\" in the \"ipam\" of another".to_owned(),
            Self::Sets(_) => {
                "a range is {\"subnet\": \"10.1.2.0/24\"}, with rangeStart, rangeEnd and gateway if you like; \"ranges\" is a \
                 list of lists of them, one address from each list"
                    .to_owned()
            }
            Self::TooManySets { .. } => "set \"cniVersion\" to 1.0.0, or keep one range set of each family".to_owned(),
            Self::Requested { .. } => "correct the request of the runtime".to_owned(),
        }
    }
}

/// Where the leases are, and how they are treated. Can be told from any configuration, however broken the rest of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The network's directory.
    pub(crate) dir: PathBuf,
    /// Whether leases of an earlier boot belong to nobody.
    pub(crate) reclaim: bool,
}

impl Place {
    /// Reads `ipam.dataDir` and `ipam.reclaimAfterReboot`; what is missing or of the wrong type has its default.
    pub(crate) fn of(config: &Value, network: &str) -> Self {
        let ipam = json::get(config, "ipam").unwrap_or(&Value::Null);
        let data_dir = json::get(ipam, "dataDir").and_then(Value::as_str);
        let reclaim = json::get(ipam, "reclaimAfterReboot").and_then(Value::as_bool);
        let data_dir = data_dir.filter(|dir| !dir.is_empty()).unwrap_or(DATA_DIR);
        Self {
            dir: PathBuf::from(data_dir).join(network),
            reclaim: reclaim.unwrap_or(true),
        }
    }
}

/// Everything that ADD needs, checked.
#[derive(Debug)]
pub(crate) struct Config {
    /// One address is given of each.
    pub(crate) sets: Vec<RangeSet>,
    /// Passed on into the result.
    pub(crate) routes: Vec<Route>,
    /// The file that the result's DNS comes from.
    pub(crate) resolv_conf: Option<PathBuf>,
    /// Addresses that somebody asked for, in order of precedence.
    pub(crate) requested: Vec<IpAddr>,
}

impl Config {
    /// Reads and checks the configuration.
    ///
    /// Range sets come from `runtimeConfig.ipRanges`, then `ipam.subnet` and its companions, then `ipam.ranges`.
    /// Requested addresses come from `CNI_ARGS`, then `args.cni.ips`, then `runtimeConfig.ips`.
    pub(crate) fn decode(
        value: &Value,
        version: SpecVersion,
        args: &Args,
    ) -> Result<Self, ConfigError> {
        let file: File = json::from_value(value)?;
        let ipam = file.ipam.ok_or(ConfigError::NoIpam)?;
        let sets = parse_sets(range_sets(&ipam, &file.runtime_config))?;
        allowed_for(version, &sets)?;
        Ok(Self {
            sets,
            requested: requested(args, &file.args, &file.runtime_config)?,
            routes: ipam.routes,
            resolv_conf: (!ipam.resolv_conf.is_empty()).then(|| ipam.resolv_conf.into()),
        })
    }
}

/// The keys of the configuration.
pub(crate) fn keys() -> Vec<Key> {
    json::keys::<File>()
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct File {
    ipam: Option<Ipam>,
    runtime_config: RuntimeConfig,
    args: ArgsSection,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ipam {
    #[serde(deserialize_with = "optional_cidr")]
    subnet: Option<IpNetwork>,
    #[serde(deserialize_with = "optional_ip")]
    range_start: Option<IpAddr>,
    #[serde(deserialize_with = "optional_ip")]
    range_end: Option<IpAddr>,
    #[serde(deserialize_with = "optional_ip")]
    gateway: Option<IpAddr>,
    ranges: Vec<Vec<RangeFields>>,
    routes: Vec<Route>,
    resolv_conf: String,
    // Read by `Place`; here so that a wrong type is reported.
    #[serde(rename = "dataDir")]
    _data_dir: String,
    #[serde(rename = "reclaimAfterReboot")]
    _reclaim_after_reboot: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RangeFields {
    #[serde(deserialize_with = "optional_cidr")]
    subnet: Option<IpNetwork>,
    #[serde(deserialize_with = "optional_ip")]
    range_start: Option<IpAddr>,
    #[serde(deserialize_with = "optional_ip")]
    range_end: Option<IpAddr>,
    #[serde(deserialize_with = "optional_ip")]
    gateway: Option<IpAddr>,
}

impl From<&RangeFields> for RangeSpec {
    fn from(fields: &RangeFields) -> Self {
        RangeSpec {
            subnet: fields.subnet,
            start: fields.range_start,
            end: fields.range_end,
            gateway: fields.gateway,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RuntimeConfig {
    ip_ranges: Vec<Vec<RangeFields>>,
    ips: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ArgsSection {
    cni: CniArgs,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CniArgs {
    ips: Vec<String>,
}

fn range_sets(ipam: &Ipam, runtime: &RuntimeConfig) -> Vec<Vec<RangeSpec>> {
    let legacy = ipam.subnet.map(|subnet| {
        vec![RangeSpec {
            subnet: Some(subnet),
            start: ipam.range_start,
            end: ipam.range_end,
            gateway: ipam.gateway,
        }]
    });
    let specs = |set: &Vec<RangeFields>| set.iter().map(RangeSpec::from).collect();
    let mut sets: Vec<Vec<RangeSpec>> = runtime.ip_ranges.iter().map(specs).collect();
    sets.extend(legacy);
    sets.extend(ipam.ranges.iter().map(specs));
    sets
}

fn allowed_for(version: SpecVersion, sets: &[RangeSet]) -> Result<(), ConfigError> {
    let mut counts: HashMap<&'static str, usize> = HashMap::new();
    for set in sets {
        let family = if set.is_ipv4() { "IPv4" } else { "IPv6" };
        *counts.entry(family).or_default() += 1;
    }
    match counts.into_iter().find(|(_, count)| *count > 1) {
        Some((family, count)) if version < SpecVersion::V0_3_0 => Err(ConfigError::TooManySets {
            version,
            family,
            count,
        }),
        _ => Ok(()),
    }
}

fn requested(
    args: &Args,
    structured: &ArgsSection,
    runtime: &RuntimeConfig,
) -> Result<Vec<IpAddr>, ConfigError> {
    let from_args = args.get_nonempty("IP").map(|text| (text, "CNI_ARGS"));
    let from_structured = structured
        .cni
        .ips
        .iter()
        .map(|text| (text.as_str(), "args.cni.ips"));
    let from_runtime = runtime
        .ips
        .iter()
        .map(|text| (text.as_str(), "runtimeConfig.ips"));
    let mut requested = Vec::new();
    for (text, place) in from_args
        .into_iter()
        .chain(from_structured)
        .chain(from_runtime)
    {
        let address = address(text).ok_or_else(|| ConfigError::Requested {
            text: text.to_owned(),
            place,
        })?;
        // A runtime may say the same in several places.
        if !requested.contains(&address) {
            requested.push(address);
        }
    }
    Ok(requested)
}

/// An address, of which a prefix length is checked and then ignored.
fn address(text: &str) -> Option<IpAddr> {
    if text.contains('/') {
        Some(parse_cidr(text).ok()?.ip())
    } else {
        parse_ip(text).ok()
    }
}

#[cfg(test)]
mod tests;
