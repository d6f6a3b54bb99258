//! Plugins that change what an earlier one made.

use serde_json::json;

use super::{PLAIN, Profile, Role};

const CHAINED: Profile = Profile {
    role: Role::Chained,
    checks_interface: false,
    ..PLAIN
};

/// All of them.
pub const ALL: &[Profile] = &[
    Profile {
        name: "firewall",
        ..CHAINED
    },
    Profile {
        name: "portmap",
        keys: |place| {
            json!({"capabilities": {"portMappings": true}, "runtimeConfig": {"portMappings":
                [{"hostPort": 18000 + u16::from(place.number), "containerPort": 80, "protocol": "tcp"}]}})
        },
        many_interfaces: false,
        ..CHAINED
    },
    Profile {
        name: "bandwidth",
        kernel: Some("ifb"),
        keys: |_| json!({"ingressRate": 8_000_000, "ingressBurst": 8_000_000, "egressRate": 8_000_000, "egressBurst": 8_000_000}),
        many_interfaces: false,
        ..CHAINED
    },
    Profile {
        name: "tuning",
        keys: |_| json!({"mtu": 1400, "sysctl": {"net.core.somaxconn": "512"}}),
        checks_interface: true,
        ..CHAINED
    },
    Profile {
        name: "sbr",
        oldest: "0.3.0",
        many_interfaces: false,
        ..CHAINED
    },
    Profile {
        name: "vrf",
        kernel: Some("vrf"),
        keys: |_| json!({"vrfname": "blue"}),
        many_interfaces: false,
        checks_interface: true,
        ..CHAINED
    },
    Profile {
        name: "tc-redirect-tap",
        oldest: "0.3.0",
        kernel: Some("tun"),
        many_interfaces: false,
        checks_interface: true,
        ..CHAINED
    },
];
