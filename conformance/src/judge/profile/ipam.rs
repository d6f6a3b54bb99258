//! Plugins that give addresses.

use serde_json::json;

use super::{PLAIN, Profile, Role};

const IPAM: Profile = Profile {
    role: Role::Ipam,
    ..PLAIN
};

/// All of them.
pub const ALL: &[Profile] = &[
    Profile {
        name: "host-local",
        keys: |place| {
            let net = 100 + place.number % 100;
            json!({"ipam": {"type": "host-local", "ranges": [[{"subnet": format!("10.{net}.7.0/24")}]],
                "routes": [{"dst": "0.0.0.0/0"}]}})
        },
        ..IPAM
    },
    Profile {
        name: "static",
        keys: |place| {
            let addresses = place.own(0);
            json!({"ipam": {"type": "static", "addresses": [{"address": addresses.v4, "gateway": addresses.gateway_v4}],
                "routes": [{"dst": "0.0.0.0/0"}]}})
        },
        ..IPAM
    },
    Profile {
        name: "dhcp",
        keys: |_| json!({"ipam": {"type": "dhcp"}}),
        needs_daemon: true,
        ..IPAM
    },
];
