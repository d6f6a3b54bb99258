//! The configuration: the caller's whole network configuration, of which plugin and daemon read their own part.

use std::path::PathBuf;

use cni_types::json::{self, DecodeError, Key};
use cni_types::{Args, Value};
use serde::Deserialize;
use thiserror::Error;

/// Where the daemon listens unless somebody says otherwise.
pub const SOCKET: &str = "/run/cni/dhcp.sock";

/// The most that an option can hold, in bytes.
const OPTION_LIMIT: usize = 255;

/// Option codes that a configuration can name, and that a client asks for of its own accord.
const NAMES: [(&str, u8); 6] = [
    ("dhcp-client-identifier", 61),
    ("subnet-mask", 1),
    ("routers", 3),
    ("host-name", 12),
    ("user-class", 77),
    ("vendor-class-identifier", 60),
];
const ROUTERS: u8 = 3;
const SUBNET_MASK: u8 = 1;

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
    /// An option that is none.
    #[error(
        "cannot use DHCP option {name:?} in ipam.{list}: expected a number from 0 to 255 or one of {}",
        NAMES.map(|(name, _)| name).join(", ")
    )]
    Option {
        /// What was given.
        name: String,
        /// `provide` or `request`.
        list: &'static str,
    },
    /// A value that no packet has room for.
    #[error(
        "the value for DHCP option {code} has {length} bytes; an option holds {OPTION_LIMIT} at most"
    )]
    TooLong {
        /// The option.
        code: u8,
        /// How long the value is.
        length: usize,
    },
}

/// Where the plugin looks for the daemon. Can be told from any configuration, however broken the rest of it.
pub fn socket(config: &Value) -> PathBuf {
    let ipam = json::get(config, "ipam").unwrap_or(&Value::Null);
    let path = json::get(ipam, "daemonSocketPath").and_then(Value::as_str);
    path.filter(|path| !path.is_empty())
        .unwrap_or(SOCKET)
        .into()
}

/// What is asked of a server, checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// Options to send, by code; of a code that comes twice the last counts.
    pub provide: Vec<(u8, Vec<u8>)>,
    /// Options to ask for.
    pub request: Vec<u8>,
    /// The metric of every route; 0 for none.
    pub priority: i64,
}

impl Config {
    /// Reads and checks the configuration. Values may come from `CNI_ARGS`.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn decode(value: &Value, args: &Args) -> Result<Self, ConfigError> {
        let file: File = json::from_value(value)?;
        let ipam = file.ipam.ok_or(ConfigError::NoIpam)?;
        Ok(Self {
            provide: provide(&ipam.provide, args)?,
            request: request(&ipam.request)?,
            priority: ipam.priority,
        })
    }
}

/// The keys of the configuration.
pub(crate) fn keys() -> Vec<Key> {
    json::keys::<File>()
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    ipam: Option<Ipam>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Ipam {
    provide: Vec<Provide>,
    request: Vec<Request>,
    priority: i64,
    // Read by `socket`; here so that a wrong type is reported.
    #[serde(rename = "daemonSocketPath")]
    _daemon_socket_path: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Provide {
    option: String,
    value: String,
    from_arg: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Request {
    skip_default: bool,
    option: String,
}

fn code(name: &str, list: &'static str) -> Result<u8, ConfigError> {
    let named = NAMES.iter().find(|(known, _)| *known == name);
    named
        .map(|(_, code)| *code)
        .or_else(|| name.parse().ok())
        .ok_or_else(|| ConfigError::Option {
            name: name.to_owned(),
            list,
        })
}

/// An argument's value comes behind the fixed one and so counts where there are both; an empty one is none.
fn provide(entries: &[Provide], args: &Args) -> Result<Vec<(u8, Vec<u8>)>, ConfigError> {
    let mut options: Vec<(u8, Vec<u8>)> = Vec::new();
    for entry in entries {
        let code = code(&entry.option, "provide")?;
        let argument = args.get(&entry.from_arg).unwrap_or_default();
        for value in [entry.value.as_str(), argument] {
            if value.len() > OPTION_LIMIT {
                return Err(ConfigError::TooLong {
                    code,
                    length: value.len(),
                });
            }
            if !value.is_empty() {
                options.retain(|(other, _)| *other != code);
                options.push((code, value.as_bytes().to_vec()));
            }
        }
    }
    Ok(options)
}

fn request(entries: &[Request]) -> Result<Vec<u8>, ConfigError> {
    let mut codes = Vec::new();
    let mut with_defaults = true;
    for entry in entries {
        with_defaults &= !entry.skip_default;
        // An entry may be there for `skipDefault` alone.
        if !entry.option.is_empty() {
            codes.push(code(&entry.option, "request")?);
        }
    }
    for default in [ROUTERS, SUBNET_MASK] {
        if with_defaults && !codes.contains(&default) {
            codes.push(default);
        }
    }
    if codes.is_empty() {
        // What the reference set's library asks for then.
        codes = vec![1, 3, 15, 6];
    }
    Ok(codes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn decode(ipam: Value, args: &str) -> Result<Config, ConfigError> {
        Config::decode(&json!({ "ipam": ipam }), &Args::parse(args))
    }

    #[test]
    fn without_anything_routers_and_mask_are_asked_for() {
        let config = decode(json!({}), "").unwrap();
        assert_eq!(config.request, [3, 1]);
        assert!(config.provide.is_empty());
    }

    #[test]
    fn options_have_names_and_numbers() {
        let ipam = json!({"provide": [
            {"option": "host-name", "value": "fixed", "fromArg": "K8S_POD_NAME"},
            {"option": "60", "value": "ferrule"},
            {"option": "user-class", "fromArg": "Absent"},
            {"option": "61", "value": "id"},
        ], "request": [{"option": "subnet-mask"}, {"option": "121"}], "priority": 7});
        let config = decode(ipam, "K8S_POD_NAME=web;junk;a=b=c").unwrap();
        assert_eq!(
            config.provide,
            [
                (12, b"web".to_vec()),
                (60, b"ferrule".to_vec()),
                (61, b"id".to_vec())
            ]
        );
        assert_eq!(config.request, [1, 121, 3]);
        assert_eq!(config.priority, 7);
        let skipped = decode(
            json!({"request": [{"skipDefault": true, "option": "6"}]}),
            "",
        );
        assert_eq!(skipped.unwrap().request, [6]);
        let nothing = decode(json!({"request": [{"skipDefault": true}]}), "");
        assert_eq!(nothing.unwrap().request, [1, 3, 15, 6]);
    }

    #[test]
    fn nonsense_is_refused() {
        for ipam in [
            json!({"provide": [{"option": "nonsense", "value": "x"}]}),
            json!({"provide": [{"option": "256", "value": "x"}]}),
            json!({"provide": [{"option": "-1", "value": "x"}]}),
            json!({"provide": [{"value": "x"}]}),
            json!({"provide": [{"option": "12", "value": "x".repeat(256)}]}),
            json!({"request": [{"option": "nonsense"}]}),
            json!({"request": 5}),
            json!({"priority": "x"}),
            json!({"daemonSocketPath": 5}),
            json!(null),
        ] {
            assert!(decode(ipam.clone(), "").is_err(), "{ipam}");
        }
    }
}
