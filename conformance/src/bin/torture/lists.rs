//! The networks that are tortured.

use conformance::chain::Network;
use conformance::lists::{LIMITED_MICROVM, MACVLAN, NOMAD, NOMAD_DUAL, PTP, TAP};
use conformance::{Error, Result};

/// A network, and what of it stays on the host for the next container.
#[derive(Clone, Copy, Debug)]
pub struct List {
    /// Its name on the command line.
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The configuration.
    pub text: &'static str,
    /// Its bridge; empty if it has none.
    pub bridge: &'static str,
    /// Whether it needs the iptables tools.
    pub iptables: bool,
    /// Whether some of what it makes is in the container alone, out of reach for who does not know the namespace. It goes
    /// with the namespace.
    pub contained: bool,
}

/// A bridge port with a guard against foreign MAC addresses, hairpin mode and isolation; and the
/// nftables backend throughout, closed to other bridges.
const GUARDED: &str = r#"{"cniVersion":"1.0.0","name":"guarded","plugins":[
 {"type":"loopback"},
 {"type":"bridge","bridge":"gbr0","isGateway":true,"isDefaultGateway":true,"ipMasq":true,"ipMasqBackend":"nftables",
  "hairpinMode":true,"macspoofchk":true,"portIsolation":true,"mtu":1400,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"10.99.0.0/24"}],[{"subnet":"fd00:99::/64"}]]}},
 {"type":"firewall","backend":"nftables","ingressPolicy":"same-bridge"},
 {"type":"portmap","backend":"nftables","capabilities":{"portMappings":true},"snat":true}]}"#;

/// One subnet, and the iptables backend throughout.
const TABLES: &str = r#"{"cniVersion":"1.0.0","name":"tables","plugins":[
 {"type":"bridge","bridge":"tbr0","isGateway":true,"isDefaultGateway":true,"ipMasq":true,"ipMasqBackend":"iptables",
  "ipam":{"type":"host-local","ranges":[[{"subnet":"10.98.0.0/24"}],[{"subnet":"fd00:98::/64"}]]}},
 {"type":"firewall","backend":"iptables","ingressPolicy":"isolated"},
 {"type":"portmap","backend":"iptables","capabilities":{"portMappings":true},"snat":true}]}"#;

/// All of them.
pub const LISTS: [List; 8] = [
    List {
        key: "a",
        title: "the list Nomad has shipped: IPv4, nftables",
        text: NOMAD,
        bridge: "nomad",
        iptables: false,
        contained: false,
    },
    List {
        key: "b",
        title: "the list Nomad ships today: dual stack, firewall by iptables",
        text: NOMAD_DUAL,
        bridge: "nomad",
        iptables: true,
        contained: false,
    },
    List {
        key: "g",
        title: "dual stack, nftables throughout; MAC guard, hairpin, isolation",
        text: GUARDED,
        bridge: "gbr0",
        iptables: false,
        contained: false,
    },
    List {
        key: "t",
        title: "dual stack, iptables throughout",
        text: TABLES,
        bridge: "tbr0",
        iptables: true,
        contained: false,
    },
    List {
        key: "v",
        title: "a microVM behind a tap, with limits",
        text: LIMITED_MICROVM,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "p",
        title: "a tap with addresses of its own",
        text: TAP,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "r",
        title: "a pair with routes; dual stack",
        text: PTP,
        bridge: "",
        iptables: false,
        contained: false,
    },
    List {
        key: "m",
        title: "macvlan on the uplink; dual stack",
        text: MACVLAN,
        bridge: "",
        iptables: false,
        contained: true,
    },
];

impl List {
    /// The list of this name.
    pub fn named(key: &str) -> Result<Self> {
        LISTS
            .into_iter()
            .find(|list| list.key == key)
            .ok_or_else(|| Error::Missing {
                what: format!("a list called {key}"),
            })
    }

    /// The network as it is configured.
    pub fn network(&self) -> Result<Network> {
        Network::parse(self.text)
    }

    /// The types of its plugins, in their order.
    pub fn plugins(&self) -> Result<Vec<String>> {
        let network = self.network()?;
        let types = network.plugins.iter();
        Ok(types.map(|plugin| type_of(plugin).to_owned()).collect())
    }
}

/// The plugin that a configuration is for.
pub fn type_of(plugin: &serde_json::Value) -> &str {
    plugin
        .get("type")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
}
