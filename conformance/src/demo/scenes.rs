//! The four lists and what can be expected of each.

use crate::lists;

/// A network list and the circumstances it is meant for.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Letter by which it is chosen.
    pub key: &'static str,
    /// What it is.
    pub title: &'static str,
    /// The list as it stands.
    pub list: &'static str,
    /// The bridge it names.
    pub bridge: &'static str,
    /// The bridge is there before the first container.
    pub bridge_exists: bool,
    /// It publishes ports.
    pub publishes: bool,
    /// It forbids by name that a container reaches its own published port.
    pub hairpin_forbidden: bool,
    /// It asks for iptables by name.
    pub iptables: bool,
}

const SCENES: [Scene; 4] = [
    Scene {
        key: "a",
        title: "the list Nomad has shipped",
        list: lists::NOMAD,
        bridge: "nomad",
        bridge_exists: false,
        publishes: true,
        hairpin_forbidden: false,
        iptables: false,
    },
    Scene {
        key: "b",
        title: "the list Nomad ships today: dual stack, iptables by name",
        list: lists::NOMAD_DUAL,
        bridge: "nomad",
        bridge_exists: false,
        publishes: true,
        hairpin_forbidden: true,
        iptables: true,
    },
    Scene {
        key: "c",
        title: "an operator's list on a bridge that exists already",
        list: lists::OPERATOR,
        bridge: "virbr0",
        bridge_exists: true,
        publishes: false,
        hairpin_forbidden: false,
        iptables: false,
    },
    Scene {
        key: "d",
        title: "a single configuration of version 0.2.0, as Mesos runs it",
        list: lists::MESOS,
        bridge: "mesos-cni0",
        bridge_exists: false,
        publishes: false,
        hairpin_forbidden: false,
        iptables: false,
    },
];

impl Scene {
    /// All four, in their order.
    #[must_use]
    pub fn all() -> &'static [Self] {
        &SCENES
    }

    /// The list of this letter.
    #[must_use]
    pub fn named(key: &str) -> Option<Self> {
        SCENES.into_iter().find(|scene| scene.key == key)
    }
}
