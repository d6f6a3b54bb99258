//! The `bridge` plugin's configuration: as the JSON gives it, and as the steps want it.

use std::collections::BTreeSet;

use cni_types::result::Dns;
use cni_types::{Args, IfName};
use interface::config::DnsConfig;
use ipnetwork::IpNetwork;
use netfilter::Backend;
use netlink::MacAddr;
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;

/// The highest VLAN ID (IEEE 802.1Q; 0 and 4095 are reserved).
const VLAN_MAX: i64 = 4094;

/// The keys that this plugin reads. Field by field as in the reference set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Config {
    /// Name of the bridge; `cni0` where it is not given.
    pub bridge: Option<String>,
    /// Give the bridge the gateway address of each subnet, and forward for it.
    pub is_gateway: bool,
    /// As `isGateway`, and route everything of the container through it.
    pub is_default_gateway: bool,
    /// Replace an address of the bridge that is in the way, instead of failing.
    pub force_address: bool,
    /// Masquerade what leaves the container for another subnet.
    pub ip_masq: bool,
    /// Who masquerades: `nftables` or `iptables`.
    pub ip_masq_backend: Option<String>,
    /// MTU of the pair and of a new bridge, in bytes.
    pub mtu: i64,
    /// Whether a frame may leave through the port it came in by. Absent means: as the other plugins of the
    /// chain need it.
    pub hairpin_mode: Option<bool>,
    /// Set the bridge promiscuous.
    pub promisc_mode: bool,
    /// VLAN of the port, untagged towards the container.
    pub vlan: i64,
    /// VLANs that reach the container tagged.
    pub vlan_trunk: Option<Vec<Option<TrunkItem>>>,
    /// Keep the VLAN that the kernel gives to every new port.
    pub preserve_default_vlan: bool,
    /// Drop frames from the container that carry another MAC address than its own.
    pub macspoofchk: bool,
    /// Leave duplicate address detection on in the container.
    pub enabledad: bool,
    /// Leave the container's interface down.
    pub disable_container_interface: bool,
    /// Keep the port from talking to other isolated ports.
    pub port_isolation: bool,
    /// Accept router advertisements on an interface whose addresses come from IPAM.
    #[serde(rename = "acceptRA")]
    pub accept_ra: bool,
    /// Name servers for the container; replaces what IPAM says.
    pub dns: Option<DnsConfig>,
    /// The IPAM plugin's part, for the subnets that it mentions.
    pub ipam: Option<Value>,
    /// What the runtime filled in.
    pub runtime_config: RuntimeConfig,
    /// Arguments in the configuration.
    pub args: ArgsConfig,
}

/// One element of `vlanTrunk`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct TrunkItem {
    /// First VLAN of a range.
    #[serde(rename = "minID")]
    pub min_id: Option<i64>,
    /// Last VLAN of a range.
    #[serde(rename = "maxID")]
    pub max_id: Option<i64>,
    /// A single VLAN.
    pub id: Option<i64>,
}

/// The part of `runtimeConfig` that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeConfig {
    mac: String,
    ip_ranges: Value,
}

/// The `args` key.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ArgsConfig {
    cni: ArgsCni,
}

/// The `args.cni` key.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ArgsCni {
    mac: String,
}

/// The settings of the port, checked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortVlans {
    /// The untagged VLAN.
    pub access: Option<u16>,
    /// The tagged VLANs.
    pub trunk: BTreeSet<u16>,
    /// Whether the bridge must filter VLANs.
    pub filtering: bool,
    /// Whether the VLAN that the kernel gives to a new port stays.
    pub keep_default: bool,
}

impl Config {
    /// Name of the bridge.
    pub fn bridge_name(&self) -> Result<&str, Error> {
        let name = self.bridge.as_deref().unwrap_or("cni0");
        match IfName::new(name) {
            Ok(_) => Ok(name),
            Err(why) => Err(Error::BridgeName {
                name: name.to_owned(),
                why,
            }),
        }
    }

    /// Whether the bridge is the container's gateway.
    pub fn gateway(&self) -> bool {
        self.is_gateway || self.is_default_gateway
    }

    /// MTU to set, in bytes.
    pub fn mtu(&self) -> Option<u32> {
        interface::config::mtu(self.mtu).ok().flatten()
    }

    /// The checks that an ADD makes before the first change.
    pub fn validate(&self, has_ipam: bool) -> Result<(), Error> {
        self.bridge_name()?;
        self.vlans()?;
        self.masquerade_backend()?;
        interface::config::mtu(self.mtu)?;
        if has_ipam && self.disable_container_interface {
            return Err(Error::IpamOnDisabledInterface);
        }
        if self.hairpin_mode == Some(true) && self.promisc_mode {
            return Err(Error::HairpinAndPromiscuous);
        }
        Ok(())
    }

    /// The backend named by `ipMasqBackend`.
    pub fn masquerade_backend(&self) -> Result<Option<Backend>, Error> {
        Ok(interface::masquerade::backend(
            self.ip_masq_backend.as_deref(),
        )?)
    }

    /// VLANs of the port.
    pub fn vlans(&self) -> Result<PortVlans, Error> {
        if !(0..=VLAN_MAX).contains(&self.vlan) {
            return Err(Error::VlanId(self.vlan));
        }
        let mut trunk = BTreeSet::new();
        for item in self.vlan_trunk.iter().flatten().flatten() {
            item.collect(&mut trunk)?;
        }
        let access = vlan_id(self.vlan);
        // The untagged VLAN wins over the same one in the trunk: a port cannot have it both ways.
        if let Some(id) = access {
            trunk.remove(&id);
        }
        Ok(PortVlans {
            access,
            trunk,
            filtering: access.is_some() || self.vlan_trunk.is_some(),
            keep_default: self.preserve_default_vlan,
        })
    }

    /// The container's MAC address if one is asked for: by the runtime, else by `args.cni`, else by
    /// `CNI_ARGS`.
    pub fn mac(&self, args: &Args) -> Result<Option<MacAddr>, Error> {
        Ok(interface::config::mac([
            self.runtime_config.mac.as_str(),
            self.args.cni.mac.as_str(),
            interface::config::mac_of_args(args),
        ])?)
    }

    /// The result's DNS: the configuration's if it says anything, else IPAM's.
    pub fn dns(&self, from_ipam: Dns) -> Dns {
        interface::config::dns(self.dns.as_ref(), from_ipam)
    }

    /// Every subnet that the IPAM part mentions. The bridge may carry the gateways of all of them.
    pub fn subnets(&self) -> Vec<IpNetwork> {
        interface::config::subnets(self.ipam.iter().chain([&self.runtime_config.ip_ranges]))
    }
}

impl TrunkItem {
    fn collect(&self, trunk: &mut BTreeSet<u16>) -> Result<(), Error> {
        match (self.min_id, self.max_id) {
            (None, None) => {}
            (None, Some(_)) => {
                return Err(Error::Trunk(
                    "minID and maxID should be configured simultaneously, minID is missing",
                ));
            }
            (Some(_), None) => {
                return Err(Error::Trunk(
                    "minID and maxID should be configured simultaneously, maxID is missing",
                ));
            }
            (Some(min), Some(max)) => {
                let first = vlan_id(min).ok_or(Error::Trunk("incorrect trunk minID parameter"))?;
                let last = vlan_id(max).ok_or(Error::Trunk("incorrect trunk maxID parameter"))?;
                if first > last {
                    return Err(Error::Trunk(
                        "minID is greater than maxID in trunk parameter",
                    ));
                }
                trunk.extend(first..=last);
            }
        }
        if let Some(id) = self.id {
            trunk.insert(vlan_id(id).ok_or(Error::Trunk("incorrect trunk id parameter"))?);
        }
        Ok(())
    }
}

fn vlan_id(id: i64) -> Option<u16> {
    u16::try_from(id)
        .ok()
        .filter(|id| (1..=VLAN_MAX).contains(&i64::from(*id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        let value = cni_types::json::parse(text.as_bytes()).unwrap();
        cni_types::json::from_value(&value).unwrap()
    }

    fn trunk(text: &str) -> Result<Vec<u16>, Error> {
        config(&format!(r#"{{"vlanTrunk":{text}}}"#))
            .vlans()
            .map(|v| v.trunk.into_iter().collect())
    }

    #[test]
    fn trunk_lists() {
        assert!(trunk("[]").unwrap().is_empty());
        assert!(trunk("[null, {}]").unwrap().is_empty());
        assert_eq!(trunk(r#"[{"minID":10,"maxID":12}]"#).unwrap(), [10, 11, 12]);
        assert_eq!(trunk(r#"[{"id":5}]"#).unwrap(), [5]);
        assert_eq!(
            trunk(r#"[{"id":11},{"minID":10,"maxID":12}]"#).unwrap(),
            [10, 11, 12]
        );
    }

    #[test]
    fn trunk_refusals() {
        for (text, part) in [
            (r#"[{"minID":10}]"#, "maxID is missing"),
            (r#"[{"maxID":10}]"#, "minID is missing"),
            (r#"[{"minID":-1,"maxID":5}]"#, "incorrect trunk minID"),
            (r#"[{"minID":5000,"maxID":5001}]"#, "incorrect trunk minID"),
            (r#"[{"minID":1,"maxID":4095}]"#, "incorrect trunk maxID"),
            (r#"[{"minID":1,"maxID":-1}]"#, "incorrect trunk maxID"),
            (r#"[{"minID":12,"maxID":10}]"#, "minID is greater"),
            (r#"[{"id":4095}]"#, "incorrect trunk id"),
            (r#"[{"id":-3}]"#, "incorrect trunk id"),
        ] {
            let error = trunk(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn an_empty_trunk_still_filters() {
        assert!(config(r#"{"vlanTrunk":[]}"#).vlans().unwrap().filtering);
        assert!(!config("{}").vlans().unwrap().filtering);
        assert!(!config(r#"{"vlanTrunk":null}"#).vlans().unwrap().filtering);
    }

    #[test]
    fn vlan_range() {
        assert_eq!(config(r#"{"vlan":0}"#).vlans().unwrap().access, None);
        assert_eq!(config(r#"{"vlan":100}"#).vlans().unwrap().access, Some(100));
        assert!(config(r#"{"vlan":-100}"#).vlans().is_err());
        assert!(config(r#"{"vlan":5000}"#).vlans().is_err());
    }

    #[test]
    fn the_untagged_vlan_is_not_also_tagged() {
        let vlans = config(r#"{"vlan":100,"vlanTrunk":[{"minID":99,"maxID":101}]}"#)
            .vlans()
            .unwrap();
        assert_eq!(vlans.access, Some(100));
        assert_eq!(vlans.trunk.into_iter().collect::<Vec<_>>(), [99, 101]);
    }

    #[test]
    fn mac_precedence() {
        let args = Args::parse("MAC=02:00:00:00:00:01");
        let all = r#"{"runtimeConfig":{"mac":"02:00:00:00:00:03"},"args":{"cni":{"mac":"02:00:00:00:00:02"}}}"#;
        assert_eq!(config(all).mac(&args).unwrap().unwrap().octets()[5], 3);
        let two = r#"{"args":{"cni":{"mac":"02-00-00-00-00-02"}}}"#;
        assert_eq!(config(two).mac(&args).unwrap().unwrap().octets()[5], 2);
        assert_eq!(config("{}").mac(&args).unwrap().unwrap().octets()[5], 1);
        assert_eq!(config("{}").mac(&Args::default()).unwrap(), None);
        assert!(config("{}").mac(&Args::parse("MAC=nonsense")).is_err());
    }

    #[test]
    fn dns_of_the_configuration_replaces_ipam_only_if_it_says_something() {
        let ipam = Dns {
            nameservers: vec!["192.0.2.53".to_owned()],
            ..Dns::default()
        };
        assert_eq!(config("{}").dns(ipam.clone()), ipam);
        assert_eq!(config(r#"{"dns":{}}"#).dns(ipam.clone()), ipam);
        assert_eq!(
            config(r#"{"dns":{"nameservers":[]}}"#).dns(ipam.clone()),
            Dns::default()
        );
        assert_eq!(config(r#"{"dns":{"domain":"x"}}"#).dns(ipam).domain, "x");
    }

    #[test]
    fn subnets_of_all_ranges_but_no_routes() {
        let text = r#"{"ipam":{"ranges":[[{"subnet":"10.70.0.0/30"},{"subnet":"10.71.0.0/24"}]],
            "routes":[{"dst":"0.0.0.0/0"}]},"runtimeConfig":{"ipRanges":[[{"Subnet":"fd00::/64"}]]}}"#;
        let found: Vec<String> = config(text)
            .subnets()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, ["10.70.0.0/30", "10.71.0.0/24", "fd00::/64"]);
    }
}
