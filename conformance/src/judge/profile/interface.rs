//! Plugins that make an interface.

use serde_json::json;

use super::{PLAIN, Profile, Role};
use crate::net::UPLINK;

const INTERFACE: Profile = Profile {
    role: Role::Interface,
    ..PLAIN
};

/// All of them.
pub const ALL: &[Profile] = &[
    Profile {
        name: "bridge",
        kernel: Some("bridge"),
        keys: |place| json!({"bridge": place.bridge(), "isGateway": true}),
        has_gateway: true,
        without_ipam: true,
        ..INTERFACE
    },
    Profile {
        name: "ptp",
        kernel: Some("veth"),
        keys: |_| json!({}),
        has_gateway: true,
        ..INTERFACE
    },
    Profile {
        name: "macvlan",
        kernel: Some("macvlan"),
        keys: |_| json!({"master": UPLINK}),
        on_uplink: true,
        has_gateway: true,
        without_ipam: true,
        ..INTERFACE
    },
    Profile {
        name: "ipvlan",
        kernel: Some("ipvlan"),
        keys: |_| json!({"master": UPLINK}),
        on_uplink: true,
        has_gateway: true,
        ..INTERFACE
    },
    Profile {
        name: "vlan",
        kernel: Some("vlan"),
        keys: |place| json!({"master": UPLINK, "vlanId": 100 + u16::from(place.number)}),
        many_interfaces: false,
        ..INTERFACE
    },
    Profile {
        name: "dummy",
        kernel: Some("dummy"),
        ..INTERFACE
    },
    Profile {
        name: "tap",
        kernel: Some("tun"),
        without_ipam: true,
        ..INTERFACE
    },
    Profile {
        name: "host-device",
        kernel: Some("veth"),
        takes_device: true,
        without_ipam: true,
        many_interfaces: false,
        ..INTERFACE
    },
    Profile {
        name: "loopback",
        role: Role::Loopback,
        without_ipam: true,
        many_interfaces: false,
        ..PLAIN
    },
];
