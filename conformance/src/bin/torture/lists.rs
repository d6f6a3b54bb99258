//! The networks that are tortured.

use conformance::chain::Network;
use conformance::lists::{CARD, LIMITED_MICROVM, MACVLAN, NOMAD, NOMAD_DUAL, PTP, TAP};
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

/// Every setting of the interface changed, and routes moved into tables of their own.
const TUNED: &str = r#"{"cniVersion":"1.0.0","name":"tuned","plugins":[
 {"type":"bridge","bridge":"sbr0","isGateway":true,"isDefaultGateway":true,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"10.97.0.0/24"}],[{"subnet":"fd00:97::/64"}]]}},
 {"type":"tuning","sysctl":{"net.core.somaxconn":"512","net.ipv4.conf.IFNAME.arp_filter":"1"},
  "mac":"02:00:00:00:97:01","mtu":1400,"promisc":true,"allmulti":true,"txQLen":100},
 {"type":"sbr"}]}"#;

/// The same addresses as the other plugins have that sit on the uplink.
const IPVLAN: &str = r#"{"cniVersion":"1.0.0","name":"shared","plugins":[
 {"type":"ipvlan","master":"up0",
  "ipam":{"type":"host-local","ranges":[[{"subnet":"192.0.2.0/24","rangeStart":"192.0.2.100","gateway":"192.0.2.9"}],
   [{"subnet":"2001:db8::/64","rangeStart":"2001:db8::100","gateway":"2001:db8::9"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}]}"#;

/// A VLAN of the uplink, in which nobody else is.
const VLAN: &str = r#"{"cniVersion":"1.0.0","name":"tagged","plugins":[
 {"type":"vlan","master":"up0","vlanId":5,"mtu":1400,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"10.94.0.0/24"}],[{"subnet":"fd00:94::/64"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}]}"#;

/// An interface that only holds addresses.
const DUMMY: &str = r#"{"cniVersion":"1.0.0","name":"nowhere","plugins":[
 {"type":"dummy","ipam":{"type":"host-local","ranges":[[{"subnet":"10.93.0.0/24"}],[{"subnet":"fd00:93::/64"}]]}}]}"#;

/// A bridge port that is moved into a VRF of the container, with its routes.
const IN_VRF: &str = r#"{"cniVersion":"1.0.0","name":"separate","plugins":[
 {"type":"bridge","bridge":"wbr0","isGateway":true,"isDefaultGateway":true,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"10.90.0.0/24"}],[{"subnet":"fd00:90::/64"}]]}},
 {"type":"vrf","vrfname":"blue"}]}"#;

/// Addresses that are in the configuration.
const FIXED: &str = r#"{"cniVersion":"1.0.0","name":"fixed","plugins":[
 {"type":"tap","ipam":{"type":"static","addresses":[{"address":"10.92.0.2/24"},{"address":"fd00:92::2/64"}],
  "routes":[{"dst":"10.91.0.0/16","gw":"10.92.0.1"}]}}]}"#;

/// An interface on the segment outside, with an address from a DHCP server there.
const LEASED: &str = r#"{"cniVersion":"1.0.0","name":"lan","plugins":[
 {"type":"macvlan","master":"up0","ipam":{"type":"dhcp"}}]}"#;

/// Plugins whose kinds of links many kernels lack. Their lists are played only where they are asked for by name.
pub const RARE: [&str; 4] = ["ipvlan", "vlan", "dummy", "vrf"];

/// All of them.
pub const LISTS: [List; 16] = [
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
        key: "e",
        title: "macvlan with an address from a DHCP server",
        text: LEASED,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "m",
        title: "macvlan on the uplink; dual stack",
        text: MACVLAN,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "f",
        title: "a tap with addresses of the configuration",
        text: FIXED,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "i",
        title: "ipvlan on the uplink; dual stack",
        text: IPVLAN,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "l",
        title: "a VLAN of the uplink; dual stack",
        text: VLAN,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "d",
        title: "an interface that leads nowhere; dual stack",
        text: DUMMY,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "h",
        title: "a card of the host; dual stack",
        text: CARD,
        bridge: "",
        iptables: false,
        contained: true,
    },
    List {
        key: "s",
        title: "a bridge, settings of the interface, source based routing; dual stack",
        text: TUNED,
        bridge: "sbr0",
        iptables: false,
        contained: false,
    },
    List {
        key: "w",
        title: "a bridge port in a VRF of the container; dual stack",
        text: IN_VRF,
        bridge: "wbr0",
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

    /// Whether its addresses come from a DHCP server.
    pub fn has_dhcp(&self) -> bool {
        self.text.contains(r#""ipam":{"type":"dhcp""#)
    }

    /// Whether each container takes a card of the host.
    pub fn takes_cards(&self) -> bool {
        self.key == "h"
    }

    /// The types of its plugins, in their order.
    pub fn plugins(&self) -> Result<Vec<String>> {
        let network = self.network()?;
        let types = network.plugins.iter();
        Ok(types.map(|plugin| type_of(plugin).to_owned()).collect())
    }

    /// The plugin of it whose links many kernels lack.
    pub fn rare(&self) -> Option<&'static str> {
        let plugins = self.plugins().unwrap_or_default();
        let found = plugins
            .iter()
            .find_map(|plugin| RARE.iter().find(|rare| *rare == plugin));
        found.copied()
    }

    /// Whether only one container can be attached at a time: a VLAN of a master is one interface.
    pub fn is_for_one(&self) -> bool {
        self.rare() == Some("vlan")
    }
}

/// The plugin that a configuration is for.
pub fn type_of(plugin: &serde_json::Value) -> &str {
    plugin
        .get("type")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default()
}
