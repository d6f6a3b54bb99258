//! The configuration: the caller's whole network configuration, of which this plugin reads its own part.

use std::net::IpAddr;

use cni_types::json::{self, DecodeError, Key};
use cni_types::net::{optional_ip, parse_cidr, parse_ip};
use cni_types::result::{Dns, Ip, Route};
use cni_types::{Args, SpecVersion, Value};
use ipnetwork::IpNetwork;
use serde::Deserialize;
use thiserror::Error;

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
    /// An address is none.
    #[error("invalid address {text:?} in {place}: expected an address with a prefix length")]
    Address {
        /// What was given.
        text: String,
        /// Where.
        place: &'static str,
    },
    /// An address that no interface can have.
    #[error("invalid address {address} in {place}: no interface can have it")]
    OfNobody {
        /// The address.
        address: IpNetwork,
        /// Where.
        place: &'static str,
    },
    /// A gateway is no address.
    #[error("invalid gateway {0:?} in CNI_ARGS: expected an address")]
    Gateway(String),
    /// Results of early versions have room for one address of each family.
    #[error(
        "CNI version {version} does not support more than 1 address per family, but there are {count} {family} addresses; use 0.3.0 or newer"
    )]
    TooMany {
        /// The configuration's version.
        version: SpecVersion,
        /// `IPv4` or `IPv6`.
        family: &'static str,
        /// How many there are.
        count: usize,
    },
}

impl ConfigError {
    /// What to do about it, in a sentence.
    pub(crate) fn next_step(&self) -> String {
        match self {
            Self::Decode(_) => {
                "correct that key; the page of static lists them all".to_owned()
            }
            Self::NoIpam => {
                "static is no plugin of a list: name it as \"type\" in the \"ipam\" of another".to_owned()
            }
            Self::Address { .. } | Self::OfNobody { .. } => {
                "write it as {\"address\": \"10.1.2.3/24\", \"gateway\": \"10.1.2.1\"}; a runtime as 10.1.2.3/24".to_owned()
            }
            Self::Gateway(_) => "write it as GATEWAY=10.1.2.1".to_owned(),
            Self::TooMany { .. } => {
                "set \"cniVersion\" to 1.0.0, or keep one address of each family".to_owned()
            }
        }
    }
}

/// What ADD answers.
#[derive(Debug)]
pub(crate) struct Config {
    /// The addresses, in order.
    pub(crate) ips: Vec<Ip>,
    /// Passed on into the result.
    pub(crate) routes: Vec<Route>,
    /// Passed on into the result.
    pub(crate) dns: Dns,
}

impl Config {
    /// Reads and checks the configuration.
    ///
    /// Addresses are `runtimeConfig.ips`, else `args.cni.ips`, else those of `ipam.addresses` and `CNI_ARGS` together.
    pub(crate) fn decode(
        value: &Value,
        version: SpecVersion,
        args: &Args,
    ) -> Result<Self, ConfigError> {
        let file: File = json::from_value(value)?;
        let ipam = file.ipam.ok_or(ConfigError::NoIpam)?;
        // All places are looked at, so that a mistake shows in each.
        let mut ips = configured(&ipam.addresses)?;
        ips.extend(from_args(args)?);
        for (list, place) in [
            (&file.args.cni.ips, "args.cni.ips"),
            (&file.runtime_config.ips, "runtimeConfig.ips"),
        ] {
            if !list.is_empty() {
                ips = list
                    .iter()
                    .map(|text| address(text, place))
                    .collect::<Result<_, _>>()?;
            }
        }
        allowed_for(version, &ips)?;
        Ok(Self {
            ips,
            routes: ipam.routes,
            dns: ipam.dns,
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
    runtime_config: Ips,
    args: ArgsSection,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ipam {
    addresses: Vec<AddressFields>,
    routes: Vec<Route>,
    dns: Dns,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AddressFields {
    address: String,
    #[serde(deserialize_with = "optional_ip")]
    gateway: Option<IpAddr>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ArgsSection {
    cni: Ips,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ips {
    ips: Vec<String>,
}

fn configured(fields: &[AddressFields]) -> Result<Vec<Ip>, ConfigError> {
    let ip = |fields: &AddressFields| {
        Ok(Ip {
            gateway: fields.gateway,
            ..address(&fields.address, "ipam.addresses")?
        })
    };
    fields.iter().map(ip).collect()
}

/// `IP` is a list of addresses, and `GATEWAY` one of gateways; each is the gateway of the addresses in whose network it
/// lies.
fn from_args(args: &Args) -> Result<Vec<Ip>, ConfigError> {
    let mut ips = list(args, "IP")
        .map(|text| address(text, "CNI_ARGS"))
        .collect::<Result<Vec<Ip>, _>>()?;
    for text in list(args, "GATEWAY") {
        let gateway = parse_ip(text).map_err(|_| ConfigError::Gateway(text.to_owned()))?;
        for ip in ips.iter_mut().filter(|ip| ip.address.contains(gateway)) {
            ip.gateway = Some(gateway);
        }
    }
    Ok(ips)
}

/// The elements of a list in `CNI_ARGS`, separated by commas.
fn list<'a>(args: &'a Args, key: &str) -> impl Iterator<Item = &'a str> {
    args.get_nonempty(key)
        .into_iter()
        .flat_map(|text| text.split(','))
        .map(str::trim)
}

fn address(text: &str, place: &'static str) -> Result<Ip, ConfigError> {
    let address = parse_cidr(text).map_err(|_| ConfigError::Address {
        text: text.to_owned(),
        place,
    })?;
    if address.ip().is_unspecified() {
        return Err(ConfigError::OfNobody { address, place });
    }
    Ok(Ip::new(address))
}

fn allowed_for(version: SpecVersion, ips: &[Ip]) -> Result<(), ConfigError> {
    let v4 = ips.iter().filter(|ip| ip.address.is_ipv4()).count();
    for (family, count) in [("IPv4", v4), ("IPv6", ips.len() - v4)] {
        if count > 1 && version < SpecVersion::V0_3_0 {
            return Err(ConfigError::TooMany {
                version,
                family,
                count,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decode(config: &Value, args: &str) -> Result<Config, ConfigError> {
        Config::decode(config, SpecVersion::CURRENT, &Args::parse(args))
    }

    fn texts(config: &Config) -> Vec<String> {
        let gateway = |ip: &Ip| ip.gateway.map(|g| format!(" via {g}")).unwrap_or_default();
        let ips = config.ips.iter();
        ips.map(|ip| format!("{}{}", ip.address, gateway(ip)))
            .collect()
    }

    #[test]
    fn a_gateway_of_the_arguments_is_for_their_addresses_only() {
        let config = json!({"ipam": {"addresses": [{"address": "10.10.0.1/24"}]}});
        let args =
            "IP=10.10.0.2/24, 11.0.0.1/24,fd00::2/64;GATEWAY=10.10.0.254,fd00::1;Other=anything";
        assert_eq!(
            texts(&decode(&config, args).unwrap()),
            [
                "10.10.0.1/24",
                "10.10.0.2/24 via 10.10.0.254",
                "11.0.0.1/24",
                "fd00::2/64 via fd00::1"
            ]
        );
    }

    #[test]
    fn the_runtime_comes_before_structured_arguments_before_the_rest() {
        let mut config =
            json!({"ipam": {"addresses": [{"address": "10.0.0.1/8", "gateway": "10.0.0.9"}]}});
        config["args"] = json!({"cni": {"ips": ["10.0.0.2/8"]}});
        let of = |config: &Value| texts(&decode(config, "IP=10.0.0.7/8").unwrap());
        assert_eq!(of(&config), ["10.0.0.2/8"]);
        config["runtimeConfig"] = json!({"ips": ["10.0.0.3/8"]});
        assert_eq!(of(&config), ["10.0.0.3/8"]);
        config["args"] = json!(null);
        config["runtimeConfig"] = json!({"ips": []});
        assert_eq!(of(&config), ["10.0.0.1/8 via 10.0.0.9", "10.0.0.7/8"]);
    }

    #[test]
    fn what_cannot_be_meant_is_named_with_its_place() {
        let with = |place: &str, value: Value| {
            let mut config = json!({"ipam": {}});
            *config.pointer_mut(place).unwrap() = value;
            decode(&config, "").unwrap_err().to_string()
        };
        let text = with("/ipam", json!({"addresses": [{"address": "10.0.0.1"}]}));
        assert!(
            text.contains("10.0.0.1") && text.contains("ipam.addresses"),
            "{text}"
        );
        let text = with("", json!({"ipam": {}, "args": {"cni": {"ips": ["x"]}}}));
        assert!(text.contains("args.cni.ips"), "{text}");
        let text = with("", json!({"ipam": {}, "runtimeConfig": {"ips": [""]}}));
        assert!(text.contains("runtimeConfig.ips"), "{text}");
        for args in ["IP=10.0.0.1", "IP=10.0.0.1/8,", "GATEWAY=x"] {
            let text = decode(&json!({"ipam": {}}), args).unwrap_err().to_string();
            assert!(text.contains("CNI_ARGS"), "{text}");
        }
        let text = with("", json!({"args": {"cni": {"ips": ["10.0.0.1/8"]}}}));
        assert!(text.contains("ipam"), "{text}");
    }
}
