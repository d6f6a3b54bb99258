//! The network lists that real runtimes ship, as they stand there.

use serde_json::{Value, json};

/// The list Nomad has shipped.
pub const NOMAD: &str = r#"{"cniVersion":"0.4.0","name":"nomad","plugins":[
 {"type":"bridge","bridge":"nomad","isDefaultGateway":true,"ipMasq":true,"ipam":{"type":"host-local","ranges":[[{"subnet":"172.26.66.0/23"}]]}},
 {"type":"firewall"},
 {"type":"portmap","capabilities":{"portMappings":true}}]}"#;

/// The list Nomad ships today: dual stack, loopback first under the attachment's own ifname.
pub const NOMAD_DUAL: &str = r#"{"cniVersion":"0.4.0","name":"nomad","plugins":[
 {"type":"loopback"},
 {"type":"bridge","bridge":"nomad","ipMasq":true,"isGateway":true,"forceAddress":true,"hairpinMode":false,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"172.26.64.0/20"}],[{"subnet":"fd00:a110:c8::/64"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}},
 {"type":"firewall","backend":"iptables","iptablesAdminChainName":"NOMAD-ADMIN"},
 {"type":"portmap","capabilities":{"portMappings":true},"snat":true}]}"#;

/// An operator's list for a bridge that exists already.
pub const OPERATOR: &str = r#"{"name":"test","cniVersion":"0.4.0","plugins":[
 {"type":"bridge","name":"my-bridge","bridge":"virbr0","isDefaultGateway":true,"ipMasq":true,"hairpinMode":true,
  "ipam":{"type":"host-local","resolvConf":"/etc/resolv.conf","dataDir":"/run/networks","subnet":"192.168.40.0/24","rangeStart":"192.168.40.32","gateway":"192.168.40.1"}}]}"#;

/// A single configuration as Mesos runs it: an early version and no `CNI_ARGS`.
pub const MESOS: &str = r#"{"cniVersion":"0.2.0","name":"mesos-net","type":"bridge","bridge":"mesos-cni0","isGateway":true,"ipMasq":true,"vlanId":5,
 "ipam":{"type":"host-local","ranges":[[{"subnet":"10.10.0.0/16","rangeStart":"10.10.0.10","rangeEnd":"10.10.0.250"}]],"routes":[{"dst":"0.0.0.0/0"}]}}"#;

/// The list of a driver for microVMs: a routed pair, whose end in the container gives way to a tap.
pub const MICROVM: &str = r#"{"cniVersion":"1.0.0","name":"fcnet","plugins":[
 {"type":"ptp","ipMasq":true,"ipam":{"type":"host-local","subnet":"192.168.127.0/24","resolvConf":"/etc/resolv.conf"}},
 {"type":"firewall"},
 {"type":"tc-redirect-tap"}]}"#;

/// The same with limits.
pub const LIMITED_MICROVM: &str = r#"{"cniVersion":"1.0.0","name":"fcnet","plugins":[
 {"type":"ptp","ipMasq":true,"ipam":{"type":"host-local","subnet":"192.168.127.0/24","resolvConf":"/etc/resolv.conf"}},
 {"type":"firewall"},
 {"type":"bandwidth","ingressRate":80000000,"ingressBurst":8000000,"egressRate":80000000,"egressBurst":8000000},
 {"type":"tc-redirect-tap"}]}"#;

/// A tap with addresses of its own, for a machine that runs in the container.
pub const TAP: &str = r#"{"cniVersion":"1.0.0","name":"taps","plugins":[
 {"type":"tap","owner":0,"group":0,"multiQueue":true,"mtu":1400,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"10.96.0.0/24"}],[{"subnet":"fd00:96::/64"}]]}}]}"#;

/// A card of the host, which the runtime chooses.
pub const CARD: &str = r#"{"cniVersion":"1.0.0","name":"cards","plugins":[
 {"type":"host-device","capabilities":{"deviceID":true},
  "ipam":{"type":"host-local","ranges":[[{"subnet":"10.90.0.0/24"}],[{"subnet":"fd00:90::/64"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}]}"#;

/// A pair with routes at both ends instead of a bridge.
pub const PTP: &str = r#"{"cniVersion":"1.0.0","name":"routed","plugins":[
 {"type":"ptp","ipMasq":true,"mtu":1400,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"10.95.0.0/24"}],[{"subnet":"fd00:95::/64"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}},
 {"type":"firewall"},
 {"type":"portmap","capabilities":{"portMappings":true}}]}"#;

/// An interface on the network of the host's uplink, with addresses of both families there.
pub const MACVLAN: &str = r#"{"cniVersion":"1.0.0","name":"segment","plugins":[
 {"type":"macvlan","master":"up0",
  "ipam":{"type":"host-local","ranges":[[{"subnet":"192.0.2.0/24","rangeStart":"192.0.2.100","gateway":"192.0.2.9"}],
   [{"subnet":"2001:db8::/64","rangeStart":"2001:db8::100","gateway":"2001:db8::9"}]],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}}]}"#;

/// A bridge to the segment outside, with addresses from a DHCP server there.
pub const LAN: &str = r#"{"cniVersion":"1.0.0","name":"lan","plugins":[
 {"type":"bridge","bridge":"br0","ipam":{"type":"dhcp"}}]}"#;

/// Port mappings as Nomad passes them: every port for both protocols, keys capitalised.
#[must_use]
pub fn nomad_ports(host: u16, container: u16) -> Value {
    json!([
        {"HostPort": host, "ContainerPort": container, "Protocol": "tcp"},
        {"HostPort": host, "ContainerPort": container, "Protocol": "udp"},
    ])
}
