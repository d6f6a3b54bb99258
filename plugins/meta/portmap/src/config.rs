//! The `portmap` plugin's configuration.

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use netfilter::{Backend, Intent, MarkStyle, Protocol, PublishedPort, Snat};
use serde::Deserialize;

use crate::error::Error;

/// Bit of the packet mark that asks for masquerade (iptables), unless the configuration names another.
const DEFAULT_MARK_BIT: u8 = 13;

/// The keys that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Who forwards: `nftables` or `iptables`.
    pub backend: Option<String>,
    /// Whether connections from the container's own subnet and from 127.0.0.0/8 are masqueraded, without
    /// which they cannot use a published port; true where it is not given.
    pub snat: Option<bool>,
    /// Masquerade every connection to a published port.
    pub masq_all: bool,
    /// Bit of the packet mark for masquerade, 0 to 31 (iptables).
    pub mark_masq_bit: Option<i64>,
    /// Chain of somebody else's that sets a mark for masquerade (iptables).
    pub external_set_mark_chain: Option<String>,
    /// Further matches for IPv4.
    pub conditions_v4: Option<Vec<String>>,
    /// Further matches for IPv6.
    pub conditions_v6: Option<Vec<String>>,
    /// What the runtime filled in.
    pub runtime_config: RuntimeConfig,
}

/// The part of `runtimeConfig` that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeConfig {
    /// The ports to publish.
    pub port_mappings: Option<Vec<Option<Mapping>>>,
}

/// One port to publish.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Mapping {
    host_port: i64,
    container_port: i64,
    protocol: String,
    #[serde(rename = "hostIP")]
    host_ip: String,
}

/// A mapping whose values are known to be good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Where it is published.
    pub host: PublishedPort,
    /// The port in the container.
    pub container_port: u16,
}

impl Config {
    /// The ports, checked.
    pub fn ports(&self) -> Result<Vec<Port>, Error> {
        let mappings = self.runtime_config.port_mappings.iter().flatten();
        // What stands for nothing is a mapping without a port, as in the reference set.
        let none = Mapping::default();
        mappings
            .map(|mapping| mapping.as_ref().unwrap_or(&none).checked())
            .collect()
    }

    /// Those ports that are good, for a DEL, which must not fail for the others.
    pub fn good_ports(&self) -> Vec<PublishedPort> {
        let mappings = self.runtime_config.port_mappings.iter().flatten().flatten();
        mappings
            .filter_map(|m| m.checked().ok())
            .map(|port| port.host)
            .collect()
    }

    /// The backend that is asked for, by name or by options that only one has.
    pub fn backend(&self) -> Result<Option<Backend>, Error> {
        let named = match self.backend.as_deref() {
            None => None,
            Some("nftables") => Some(Backend::Nftables),
            Some("iptables") => Some(Backend::Iptables),
            Some(other) => return Err(Error::Backend(other.to_owned())),
        };
        let iptables = self.options_of(Backend::Iptables);
        let nftables = self.options_of(Backend::Nftables);
        match named {
            Some(Backend::Iptables) if !nftables.is_empty() => {
                Err(Error::foreign(Backend::Iptables, nftables))
            }
            Some(Backend::Nftables) if !iptables.is_empty() => {
                Err(Error::foreign(Backend::Nftables, iptables))
            }
            Some(backend) => Ok(Some(backend)),
            None if !iptables.is_empty() && !nftables.is_empty() => Err(Error::MixedOptions),
            None if !iptables.is_empty() => Ok(Some(Backend::Iptables)),
            None if !nftables.is_empty() => Ok(Some(Backend::Nftables)),
            None => Ok(None),
        }
    }

    /// Names of the options that only that backend understands.
    fn options_of(&self, backend: Backend) -> Vec<&'static str> {
        let mut found = Vec::new();
        if backend == Backend::Iptables && self.external_set_mark_chain.is_some() {
            found.push("externalSetMarkChain");
        }
        for (name, list) in [
            ("conditionsV4", &self.conditions_v4),
            ("conditionsV6", &self.conditions_v6),
        ] {
            let first = list
                .iter()
                .flatten()
                .next()
                .map(String::as_str)
                .unwrap_or_default();
            let of = match first.chars().next() {
                None => continue,
                Some('-' | '!') => Backend::Iptables,
                Some(_) => Backend::Nftables,
            };
            if of == backend {
                found.push(name);
            }
        }
        found
    }

    /// Which connections get the host's address.
    pub fn snat(&self) -> Snat {
        match (self.snat.unwrap_or(true), self.masq_all) {
            (false, _) => Snat::None,
            (true, true) => Snat::All,
            (true, false) => Snat::Hairpin,
        }
    }

    fn mark(&self) -> Result<MarkStyle, Error> {
        match (&self.external_set_mark_chain, self.mark_masq_bit) {
            (Some(_), Some(_)) => Err(Error::MarkTwice),
            (Some(chain), None) => Ok(MarkStyle::Chain(chain.clone())),
            (None, None) => Ok(MarkStyle::Bit(DEFAULT_MARK_BIT)),
            (None, Some(bit)) => match u8::try_from(bit) {
                Ok(bit) if bit < 32 => Ok(MarkStyle::Bit(bit)),
                _ => Err(Error::MarkBit(bit)),
            },
        }
    }

    /// The intents that publish the ports on these addresses of the container. A host address of the other
    /// family skips a port for that address.
    pub fn intents(&self, addresses: &[IpNetwork]) -> Result<Vec<Intent>, Error> {
        let ports = self.ports()?;
        let mark = self.mark()?;
        let mut intents = Vec::new();
        for to in addresses {
            let conditions = if to.is_ipv4() {
                &self.conditions_v4
            } else {
                &self.conditions_v6
            };
            for port in ports
                .iter()
                .filter(|port| same_family(port.host.host_ip, *to))
            {
                intents.push(Intent::Publish {
                    host_ip: port.host.host_ip,
                    host_port: port.host.host_port,
                    protocol: port.host.protocol,
                    to: *to,
                    to_port: port.container_port,
                    snat: self.snat(),
                    conditions: conditions.clone().unwrap_or_default(),
                    mark: mark.clone(),
                });
            }
        }
        Ok(intents)
    }
}

fn same_family(host_ip: Option<IpAddr>, to: IpNetwork) -> bool {
    host_ip.is_none_or(|ip| ip.is_ipv4() == to.is_ipv4())
}

impl Mapping {
    fn checked(&self) -> Result<Port, Error> {
        Ok(Port {
            host: PublishedPort {
                host_ip: self.host_ip()?,
                host_port: port("hostPort", self.host_port)?,
                protocol: self.protocol()?,
            },
            container_port: port("containerPort", self.container_port)?,
        })
    }

    fn host_ip(&self) -> Result<Option<IpAddr>, Error> {
        if self.host_ip.is_empty() {
            return Ok(None);
        }
        let ip: IpAddr = self
            .host_ip
            .parse()
            .map_err(|_| Error::HostIp(self.host_ip.clone()))?;
        Ok(Some(ip.to_canonical()))
    }

    /// TCP where nothing is said, as every tool that publishes ports has it.
    fn protocol(&self) -> Result<Protocol, Error> {
        if self.protocol.is_empty() {
            return Ok(Protocol::Tcp);
        }
        Protocol::from_name(&self.protocol).ok_or_else(|| Error::Protocol(self.protocol.clone()))
    }
}

fn port(key: &'static str, number: i64) -> Result<u16, Error> {
    match u16::try_from(number) {
        Ok(port) if port > 0 => Ok(port),
        _ => Err(Error::Port { key, number }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let value = cni_types::json::parse(text.as_bytes()).unwrap();
        cni_types::json::from_value(&value).unwrap()
    }

    fn with_mapping(mapping: &str) -> Config {
        config(&format!(
            r#"{{"runtimeConfig":{{"portMappings":[{mapping}]}}}}"#
        ))
    }

    #[test]
    fn both_spellings_of_the_keys() {
        for text in [
            r#"{"hostPort":8080,"containerPort":80,"protocol":"tcp","hostIP":"192.0.2.1"}"#,
            r#"{"HostPort":8080,"ContainerPort":80,"Protocol":"TCP","HostIP":"192.0.2.1"}"#,
        ] {
            let ports = with_mapping(text).ports().unwrap();
            assert_eq!(ports[0].host.host_port, 8080);
            assert_eq!(ports[0].host.protocol, Protocol::Tcp);
            assert_eq!(ports[0].host.host_ip, Some("192.0.2.1".parse().unwrap()));
            assert_eq!(ports[0].container_port, 80);
        }
    }

    #[test]
    fn an_empty_host_address_is_every_address() {
        let ports =
            with_mapping(r#"{"HostPort":1,"ContainerPort":1,"Protocol":"udp","HostIP":""}"#)
                .ports()
                .unwrap();
        assert_eq!(ports[0].host.host_ip, None);
        assert!(
            config(r#"{"runtimeConfig":{"portMappings":null}}"#)
                .ports()
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn bad_mappings_are_named() {
        for (text, part) in [
            (
                r#"{"hostPort":0,"containerPort":80,"protocol":"tcp"}"#,
                "hostPort 0",
            ),
            (
                r#"{"hostPort":80,"containerPort":70000,"protocol":"tcp"}"#,
                "containerPort 70000",
            ),
            (
                r#"{"hostPort":-1,"containerPort":80,"protocol":"tcp"}"#,
                "hostPort -1",
            ),
            (
                r#"{"hostPort":80,"containerPort":80,"protocol":"icmp"}"#,
                "icmp",
            ),
            (
                r#"{"hostPort":80,"containerPort":80,"protocol":"tcp","hostIP":"bogus"}"#,
                "bogus",
            ),
        ] {
            let error = with_mapping(text).ports().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_host_address_belongs_to_one_family() {
        let config =
            with_mapping(r#"{"hostPort":80,"containerPort":80,"protocol":"tcp","hostIP":"::1"}"#);
        let addresses: Vec<IpNetwork> = vec![
            "10.0.0.2/24".parse().unwrap(),
            "fd00::2/64".parse().unwrap(),
        ];
        assert_eq!(config.intents(&addresses).unwrap().len(), 1);
    }

    #[test]
    fn options_choose_the_backend() {
        assert_eq!(config("{}").backend().unwrap(), None);
        assert_eq!(
            config(r#"{"backend":"nftables"}"#).backend().unwrap(),
            Some(Backend::Nftables)
        );
        assert!(config(r#"{"backend":""}"#).backend().is_err());
        let external = r#"{"externalSetMarkChain":"KUBE-MARK-MASQ"}"#;
        assert_eq!(config(external).backend().unwrap(), Some(Backend::Iptables));
        assert_eq!(
            config(r#"{"conditionsV4":["!","-d","192.0.2.0/24"]}"#)
                .backend()
                .unwrap(),
            Some(Backend::Iptables)
        );
        assert_eq!(
            config(r#"{"conditionsV6":["ip6","saddr","::1"]}"#)
                .backend()
                .unwrap(),
            Some(Backend::Nftables)
        );
        assert_eq!(
            config(r#"{"conditionsV4":[],"conditionsV6":[""]}"#)
                .backend()
                .unwrap(),
            None
        );
        assert!(
            config(r#"{"conditionsV4":["-d"],"conditionsV6":["ip6"]}"#)
                .backend()
                .is_err()
        );
        let foreign =
            config(r#"{"backend":"nftables","externalSetMarkChain":"X","conditionsV4":["-d"]}"#);
        let error = foreign.backend().unwrap_err().to_string();
        assert!(
            error.contains("externalSetMarkChain conditionsV4"),
            "{error}"
        );
    }

    #[test]
    fn mark_bits() {
        assert!(config(r#"{"markMasqBit":31}"#).mark().is_ok());
        assert!(config(r#"{"markMasqBit":32}"#).mark().is_err());
        assert!(config(r#"{"markMasqBit":-1}"#).mark().is_err());
        assert!(
            config(r#"{"markMasqBit":0,"externalSetMarkChain":"X"}"#)
                .mark()
                .is_err()
        );
    }

    #[test]
    fn snat_is_on_by_default() {
        assert_eq!(config("{}").snat(), Snat::Hairpin);
        assert_eq!(config(r#"{"snat":null,"masqAll":true}"#).snat(), Snat::All);
        assert_eq!(
            config(r#"{"snat":false,"masqAll":true}"#).snat(),
            Snat::None
        );
    }
}
