//! The plugins that make one link, and what is different about them here.

use serde_json::{Value, json};

use crate::error::Result;
use crate::net::{Host, UPLINK};

use super::site::ip;

/// The VLAN that the outside is in, too.
pub const VLAN: u16 = 5;

/// Addresses of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// IPv4 network.
    pub v4: &'static str,
    /// IPv6 network.
    pub v6: &'static str,
    /// The first address of the IPv4 range.
    pub first_v4: &'static str,
    /// The first address of the IPv6 range.
    pub first_v6: &'static str,
    /// The station outside with these addresses; none if there is no outside.
    pub gateway: Option<Gateway>,
}

/// The station outside.
#[derive(Clone, Copy, Debug)]
pub struct Gateway {
    /// Its IPv4 address.
    pub v4: &'static str,
    /// Its IPv6 address.
    pub v6: &'static str,
    /// Its interface.
    pub link: &'static str,
}

/// A plugin under test.
#[derive(Clone, Debug)]
pub struct Kind {
    /// The plugin; the kernel calls the kind of link the same.
    pub plugin: &'static str,
    /// The keys with which an ADD works.
    pub keys: Value,
    /// Keys with which CHECK must not find what ADD made.
    pub others: Option<Value>,
    /// Where its links lead.
    pub segment: Segment,
    /// Whether it sits on another link.
    pub has_master: bool,
    /// Whether its links have the hardware address of their master.
    pub shares_mac: bool,
    /// Configurations that are refused before the first change, with a word of the error.
    pub refused: Vec<(Value, &'static str)>,
}

/// The uplink's own segment.
const UPLINK_SEGMENT: Segment = Segment {
    v4: "192.0.2.0/24",
    v6: "2001:db8::/64",
    first_v4: "192.0.2.100",
    first_v6: "2001:db8::100",
    gateway: Some(Gateway {
        v4: "192.0.2.9",
        v6: "2001:db8::9",
        link: "eth0",
    }),
};

const VLAN_SEGMENT: Segment = Segment {
    v4: "198.51.100.0/24",
    v6: "2001:db8:5::/64",
    first_v4: "198.51.100.100",
    first_v6: "2001:db8:5::100",
    gateway: Some(Gateway {
        v4: "198.51.100.9",
        v6: "2001:db8:5::9",
        link: "eth0.5",
    }),
};

const NO_SEGMENT: Segment = Segment {
    v4: "10.9.0.0/24",
    v6: "fd00:9::/64",
    first_v4: "10.9.0.100",
    first_v6: "fd00:9::100",
    gateway: None,
};

impl Kind {
    /// macvlan on the host's uplink.
    #[must_use]
    pub fn macvlan() -> Self {
        let mut refused = of_master();
        refused.extend([
            (json!({"mode": "source"}), "unknown macvlan mode"),
            (json!({"mac": "nonsense"}), "nonsense"),
            (json!({"mtu": -1}), "invalid MTU -1"),
            (json!({"mtu": 1501}), "master MTU(1500)"),
            (json!({"master": "port0"}), "port of a bridge"),
            (json!({"bcqueuelen": -1}), "bcqueuelen"),
        ]);
        Self {
            plugin: "macvlan",
            keys: json!({"master": UPLINK}),
            others: Some(json!({"mode": "private"})),
            segment: UPLINK_SEGMENT,
            has_master: true,
            shares_mac: false,
            refused,
        }
    }

    /// ipvlan on the host's uplink.
    #[must_use]
    pub fn ipvlan() -> Self {
        let mut refused = of_master();
        refused.extend([
            (json!({"mode": "l4"}), "unknown ipvlan mode"),
            (json!({"master": "port0"}), "port of a bridge"),
        ]);
        Self {
            plugin: "ipvlan",
            keys: json!({"master": UPLINK}),
            others: Some(json!({"mode": "l3"})),
            segment: UPLINK_SEGMENT,
            has_master: true,
            shares_mac: true,
            refused,
        }
    }

    /// Makes the outside a member of the VLAN.
    ///
    /// # Errors
    /// When the kernel has no VLANs.
    pub fn join_vlan(host: &Host) -> Result<()> {
        for command in [
            "link add link eth0 name eth0.5 type vlan id 5",
            "addr add 198.51.100.9/24 dev eth0.5",
            "addr add 2001:db8:5::9/64 dev eth0.5 nodad",
            "link set eth0.5 up",
        ] {
            ip(host.outside(), command)?;
        }
        Ok(())
    }

    /// A VLAN of the host's uplink. [`Self::join_vlan`] brings the outside into it.
    #[must_use]
    pub fn vlan() -> Self {
        let mut refused = of_master();
        refused.extend([
            (json!({"master": ""}), "\"master\" field is required"),
            (json!({"vlanId": -1}), "invalid VLAN ID -1"),
            (json!({"vlanId": 4095}), "invalid VLAN ID 4095"),
            (json!({"mtu": -1}), "invalid MTU -1"),
            (json!({"mtu": 1501}), "master MTU(1500)"),
            (json!({"master": "down0"}), "is down"),
        ]);
        Self {
            plugin: "vlan",
            keys: json!({"master": UPLINK, "vlanId": VLAN}),
            others: Some(json!({"vlanId": 6})),
            segment: VLAN_SEGMENT,
            has_master: true,
            shares_mac: true,
            refused,
        }
    }

    /// dummy, which leads nowhere.
    #[must_use]
    pub fn dummy() -> Self {
        Self {
            plugin: "dummy",
            keys: json!({}),
            others: None,
            segment: NO_SEGMENT,
            has_master: false,
            shares_mac: false,
            refused: Vec::new(),
        }
    }
}

/// What every plugin with a master refuses.
fn of_master() -> Vec<(Value, &'static str)> {
    vec![
        (json!({"master": "nowhere"}), "\"nowhere\" not found"),
        (json!({"master": "lo"}), "loopback"),
        (json!({"mtu": 67}), "68"),
        (json!({"dad": "sometimes"}), "optimistic"),
    ]
}
