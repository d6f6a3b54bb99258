//! The `tuning` plugin's configuration.

use std::path::{Path, PathBuf};

use cni_types::json::{self, DecodeError};
use interface::config::{RuntimeMac, mac_of_args};
use netlink::MacAddr;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, de};
use skel::Request;

use crate::error::Error;
use crate::link::LinkSettings;
use crate::sysctl::{self, Sysctl};

/// Where backups are kept unless `dataDir` says otherwise, as in the reference set.
pub const DATA_DIR: &str = "/run/cni/tuning";

/// The keys that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Kernel settings of the container's network namespace.
    pub sysctl: Later<Pairs>,
    /// MAC address of the interface.
    pub mac: Later<String>,
    /// MTU of the interface, in bytes; 0 leaves it as it is.
    pub mtu: Later<i64>,
    /// Switch promiscuous mode on.
    pub promisc: Later<bool>,
    /// Switch the reception of all multicast frames on or off.
    pub allmulti: Later<bool>,
    /// Length of the transmit queue, in packets.
    #[serde(rename = "txQLen")]
    pub tx_queue_len: Later<i64>,
    /// Directory of the backups.
    pub data_dir: Later<String>,
    /// What the caller may set for this container alone.
    pub args: Later<Args>,
    /// What the runtime filled in.
    pub runtime_config: Later<RuntimeMac>,
    /// What the runtime may fill in.
    pub capabilities: Later<Capabilities>,
}

/// The `args` key.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Args {
    cni: CniArgs,
}

/// The keys of `args.cni` that this plugin reads; one that is there wins over the configuration's.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CniArgs {
    sysctl: Option<Pairs>,
    mac: Option<String>,
    mtu: Option<i64>,
    promisc: Option<bool>,
    allmulti: Option<bool>,
    #[serde(rename = "txQLen")]
    tx_queue_len: Option<i64>,
}

/// The part of `capabilities` that this plugin has.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Capabilities {
    mac: bool,
}

/// A value that is judged when it is asked for: a key of the wrong type must not keep a DEL from reading the
/// others.
#[derive(Debug, Clone)]
pub struct Later<T>(Result<Option<T>, DecodeError>);

impl<T> Default for Later<T> {
    fn default() -> Self {
        Self(Ok(None))
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Later<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(
            Option::deserialize(deserializer).map_err(de::Error::custom),
        ))
    }
}

impl<T: Clone> Later<T> {
    /// The value, if there is one.
    ///
    /// # Errors
    /// [`Error::Key`] if it is not of its type.
    fn get(&self, key: &'static str) -> Result<Option<T>, Error> {
        self.0.clone().map_err(|source| Error::Key { key, source })
    }
}

/// Keys and values as text, in the order of the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs(pub Vec<(String, String)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Pairs, E> {
        Ok(Pairs::default())
    }
}

/// Everything that is asked for, from all places, with good values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Kernel settings, in their order.
    pub sysctls: Vec<Sysctl>,
    /// Settings of the interface.
    pub link: LinkSettings,
}

impl Settings {
    /// What a request asks for.
    ///
    /// # Errors
    /// When a value is not good, or the request names one sysctl twice.
    pub fn of(request: &Request<Config>) -> Result<Self, Error> {
        let repeated = json::repeated_keys(&request.stdin, "sysctl");
        if !repeated.is_empty() {
            return Err(Error::RepeatedSysctls(repeated));
        }
        let mac = mac_of_args(&request.args);
        request.config.settings(mac, request.ifname.as_str())
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.sysctls.is_empty() && self.link.is_empty()
    }
}

impl Config {
    /// Where this configuration's backups are. A `dataDir` that is none counts as not given.
    pub fn data_dir(&self) -> PathBuf {
        match &self.data_dir.0 {
            Ok(Some(path)) if !path.is_empty() => PathBuf::from(path),
            _ => PathBuf::from(DATA_DIR),
        }
    }

    /// The directories in which a backup may be: the configuration may have changed since the ADD.
    pub fn data_dirs(&self) -> Vec<PathBuf> {
        let mut all = vec![self.data_dir()];
        if all.iter().all(|one| one != Path::new(DATA_DIR)) {
            all.push(PathBuf::from(DATA_DIR));
        }
        all
    }

    /// Whether the runtime may ask for a MAC address.
    pub fn takes_mac(&self) -> bool {
        matches!(&self.capabilities.0, Ok(Some(Capabilities { mac: true })))
    }

    /// What is asked for, with the `MAC` of `CNI_ARGS`.
    ///
    /// # Errors
    /// When a value is not good.
    pub fn settings(&self, mac_of_args: &str, ifname: &str) -> Result<Settings, Error> {
        self.data_dir.get("dataDir")?;
        let args = self.args.get("args")?.unwrap_or_default().cni;
        let runtime_mac = self
            .runtime_config
            .get("runtimeConfig")?
            .unwrap_or_default()
            .mac;
        let mac = match args.mac {
            Some(mac) => mac,
            None => [runtime_mac, mac_of_args.to_owned()]
                .into_iter()
                .find(|mac| !mac.is_empty())
                .or(self.mac.get("mac")?)
                .unwrap_or_default(),
        };
        let promisc = args.promisc.or(self.promisc.get("promisc")?);
        Ok(Settings {
            sysctls: self.sysctls(args.sysctl, ifname)?,
            link: LinkSettings {
                mac: mac_address(&mac)?,
                mtu: mtu(args.mtu.or(self.mtu.get("mtu")?).unwrap_or_default())?,
                promisc: promisc == Some(true),
                all_multicast: args.allmulti.or(self.allmulti.get("allmulti")?),
                tx_queue_len: args
                    .tx_queue_len
                    .or(self.tx_queue_len.get("txQLen")?)
                    .map(queue_len)
                    .transpose()?,
            },
        })
    }

    /// The kernel settings: the configuration's, those of `args.cni` in the place of the same ones.
    fn sysctls(&self, args: Option<Pairs>, ifname: &str) -> Result<Vec<Sysctl>, Error> {
        let configured = self.sysctl.get("sysctl")?.unwrap_or_default();
        let mut all: Vec<Sysctl> = Vec::new();
        for (key, value) in configured.0 {
            let new = Sysctl::new(key, value, ifname)?;
            match all.iter().find(|known| known.path == new.path) {
                None => all.push(new),
                Some(known) if sysctl::same_value(&known.value, &new.value) => {}
                Some(known) => return Err(Error::Contradiction(known.key.clone(), new.key)),
            }
        }
        for (key, value) in args.unwrap_or_default().0 {
            let new = Sysctl::new(key, value, ifname)?;
            match all.iter_mut().find(|known| known.path == new.path) {
                None => all.push(new),
                Some(known) => *known = new,
            }
        }
        Ok(all)
    }
}

fn mac_address(text: &str) -> Result<Option<MacAddr>, Error> {
    Ok(interface::config::mac([text])?)
}

fn mtu(number: i64) -> Result<Option<u32>, Error> {
    if number < 0 {
        return Err(interface::Error::Mtu(number).into());
    }
    Ok(interface::config::mtu(number)?)
}

fn queue_len(number: i64) -> Result<u32, Error> {
    u32::try_from(number).map_err(|_| Error::QueueLen(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let value = json::parse(text.as_bytes()).unwrap();
        json::from_value(&value).unwrap()
    }

    fn settings(text: &str) -> Result<Settings, Error> {
        config(text).settings("", "eth0")
    }

    fn keys(text: &str) -> Vec<(String, String)> {
        let sysctls = settings(text).unwrap().sysctls;
        sysctls
            .into_iter()
            .map(|one| (one.key, one.value))
            .collect()
    }

    #[test]
    fn the_nearest_place_gives_the_mac() {
        let mac = |text: &str, args: &str| {
            let settings = config(text).settings(args, "eth0").unwrap();
            settings.link.mac.map(|mac| mac.octets()[5])
        };
        let one = r#""mac":"02:00:00:00:00:01""#;
        let three = r#""runtimeConfig":{"mac":"02:00:00:00:00:03"}"#;
        let four = r#""args":{"cni":{"mac":"02:00:00:00:00:04"}}"#;
        assert_eq!(mac("{}", ""), None);
        assert_eq!(mac(&format!("{{{one}}}"), ""), Some(1));
        assert_eq!(mac(&format!("{{{one}}}"), "02:00:00:00:00:02"), Some(2));
        assert_eq!(
            mac(&format!("{{{one},{three}}}"), "02:00:00:00:00:02"),
            Some(3)
        );
        assert_eq!(
            mac(&format!("{{{one},{three},{four}}}"), "02:00:00:00:00:02"),
            Some(4)
        );
    }

    #[test]
    fn arguments_need_no_map_in_the_configuration() {
        let text = r#"{"args":{"cni":{"sysctl":{"net.core.somaxconn":"5"}}}}"#;
        assert_eq!(
            keys(text),
            [("net.core.somaxconn".to_owned(), "5".to_owned())]
        );
    }

    #[test]
    fn arguments_win_whatever_their_spelling() {
        let text = r#"{"sysctl":{"net.core.somaxconn":"5","net.ipv4.ip_forward":"1"},"args":{"cni":{"sysctl":{"net/core/somaxconn":"6"}}}}"#;
        assert_eq!(
            keys(text),
            [
                ("net/core/somaxconn".to_owned(), "6".to_owned()),
                ("net.ipv4.ip_forward".to_owned(), "1".to_owned())
            ]
        );
    }

    #[test]
    fn two_spellings_of_one_setting_must_agree() {
        let text =
            r#"{"sysctl":{"net.ipv4.ping_group_range":"0 7","net/ipv4/ping_group_range":"0\t7"}}"#;
        assert_eq!(keys(text).len(), 1);
        let text = r#"{"sysctl":{"net.core.somaxconn":"5","net/core/somaxconn":"6"}}"#;
        assert!(matches!(settings(text), Err(Error::Contradiction(..))));
    }

    #[test]
    fn only_true_asks_for_promiscuous_mode() {
        let promisc = |text: &str| settings(text).unwrap().link.promisc;
        assert!(promisc(r#"{"promisc":true}"#));
        assert!(!promisc(r#"{"promisc":false}"#));
        assert!(promisc(
            r#"{"promisc":false,"args":{"cni":{"promisc":true}}}"#
        ));
        assert!(!promisc(
            r#"{"promisc":true,"args":{"cni":{"promisc":false}}}"#
        ));
    }

    #[test]
    fn zero_is_a_queue_length_but_no_mtu() {
        let link = settings(r#"{"mtu":0,"txQLen":0,"allmulti":false}"#)
            .unwrap()
            .link;
        assert_eq!((link.mtu, link.tx_queue_len), (None, Some(0)));
        assert_eq!(link.all_multicast, Some(false));
        assert!(settings("{}").unwrap().is_empty());
    }

    #[test]
    fn values_that_no_interface_has() {
        for text in [
            r#"{"mtu":-5}"#,
            r#"{"mtu":60}"#,
            r#"{"txQLen":-1}"#,
            r#"{"txQLen":4294967296}"#,
            r#"{"mac":"nonsense"}"#,
            r#"{"mac":7}"#,
            r#"{"sysctl":{"net.core.somaxconn":5}}"#,
            r#"{"args":7}"#,
        ] {
            use skel::PluginError;
            assert_eq!(settings(text).unwrap_err().code(), 7, "{text}");
        }
    }

    #[test]
    fn a_broken_key_hides_no_directory() {
        let config = config(r#"{"mtu":"wide","sysctl":[],"dataDir":"/run/here"}"#);
        assert_eq!(config.data_dir(), Path::new("/run/here"));
        assert_eq!(config.data_dirs().len(), 2);
        assert_eq!(Config::default().data_dirs(), [Path::new(DATA_DIR)]);
    }
}
