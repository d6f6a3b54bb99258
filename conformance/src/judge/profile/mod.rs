//! What the suite knows of plugins by their names.

mod chained;
mod interface;
mod ipam;

use serde_json::Value;

use super::place::Place;

/// What a plugin does in a list.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// Makes an interface in the container, with addresses from an IPAM plugin.
    Interface,
    /// Sets up the container's own `lo`.
    Loopback,
    /// Gives addresses.
    Ipam,
    /// Changes what an earlier plugin made, and hands its result on.
    Chained,
    /// Unknown to the suite.
    Unknown,
}

/// What an interface plugin needs and promises.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The plugin's name.
    pub name: &'static str,
    /// What it does in a list.
    pub role: Role,
    /// The kind of link that the kernel must be able to make.
    pub kernel: Option<&'static str>,
    /// The keys of a configuration that works, apart from those that all have.
    pub keys: fn(Place) -> Value,
    /// The first version in which an ADD works.
    pub oldest: &'static str,
    /// Its addresses are of the host's uplink, not behind the host.
    pub on_uplink: bool,
    /// It moves a device of the host, which has to be made for each container.
    pub takes_device: bool,
    /// The container can reach its gateway.
    pub has_gateway: bool,
    /// Works without an IPAM plugin.
    pub without_ipam: bool,
    /// Each container can have several interfaces of it.
    pub many_interfaces: bool,
    /// It needs something that runs beside it, so that an ADD cannot be tried.
    pub needs_daemon: bool,
    /// CHECK looks at something that can be taken away: the container's interface.
    pub checks_interface: bool,
}

/// Nothing special.
const PLAIN: Profile = Profile {
    name: "",
    role: Role::Unknown,
    kernel: None,
    keys: |_| Value::Object(serde_json::Map::new()),
    oldest: "0.1.0",
    on_uplink: false,
    takes_device: false,
    has_gateway: false,
    without_ipam: false,
    many_interfaces: true,
    needs_daemon: false,
    checks_interface: true,
};

/// The profile of this name; one that promises nothing if the suite does not know the name.
#[must_use]
pub fn of(name: &str) -> Profile {
    known()
        .into_iter()
        .find(|profile| profile.name == name)
        .unwrap_or(PLAIN)
}

/// All that the suite knows.
#[must_use]
pub fn known() -> Vec<Profile> {
    [interface::ALL, ipam::ALL, chained::ALL].concat()
}
