//! What ADD answers, in one model for all versions.
//!
//! The model has the newest version's fields. [`CniResult::encode`] writes the true shape of any
//! version, [`CniResult::decode`] reads any version, including the shapes that the reference set
//! prints although the version says otherwise, and [`convert`] does both to a printed result.

mod decode;
mod encode;

pub use encode::convert;

use crate::json::DecodeError;
use crate::names::IfName;
use crate::net::optional_ip;
use ipnetwork::IpNetwork;
use serde::Deserialize;
use std::net::IpAddr;

/// A result of ADD, or what a later plugin finds in `prevResult`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CniResult {
    /// The interfaces made, on the host and in the container.
    pub interfaces: Vec<Interface>,
    /// The addresses given to them.
    pub ips: Vec<Ip>,
    /// The routes in the container.
    pub routes: Vec<Route>,
    /// Names for the container.
    pub dns: Dns,
}

/// An interface in a result. Integers may be negative on input, as in the reference set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Interface {
    /// The name in its namespace.
    pub name: String,
    /// The hardware address as text, or empty.
    pub mac: String,
    /// Bytes; 0 if not given. Since 1.1.0.
    pub mtu: i64,
    /// Where it is: the namespace path of a container, an id of a virtual machine; empty for
    /// the host.
    pub sandbox: String,
    /// Path to a socket that stands for the interface, or empty. Since 1.1.0.
    pub socket_path: String,
    /// The PCI device behind the interface, or empty. Since 1.1.0.
    #[serde(rename = "pciID")]
    pub pci_id: String,
}

/// An address in a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ip {
    /// The address with the prefix length of its network.
    pub address: IpNetwork,
    /// The gateway of that network.
    pub gateway: Option<IpAddr>,
    /// Index into [`CniResult::interfaces`]. Not trusted: see [`CniResult::interface_of`].
    pub interface: Option<i64>,
}

/// A route in a result or a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// The destination.
    pub dst: IpNetwork,
    /// The next hop; if unset, whoever makes the route takes the address's gateway.
    pub gw: Option<IpAddr>,
    /// Bytes; 0 if not given. Since 1.1.0, as the four below.
    pub mtu: i64,
    /// Bytes; 0 if not given.
    pub advmss: i64,
    /// Metric; 0 if not given.
    pub priority: i64,
    /// Routing table; unset is the main table.
    pub table: Option<i64>,
    /// Route scope as in rtnetlink(7).
    pub scope: Option<i64>,
}

/// Name resolution, in a result or a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Dns {
    /// Addresses of servers, in order.
    pub nameservers: Vec<String>,
    /// The local domain, or empty.
    pub domain: String,
    /// Domains to search, in order.
    pub search: Vec<String>,
    /// Options for the resolver.
    pub options: Vec<String>,
}

/// A result cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResultError {
    /// `cniVersion` is not text.
    #[error("cniVersion of a result must be a string")]
    VersionType,
    /// A version that nobody has published.
    #[error("unsupported CNI result version {0:?}")]
    Version(String),
    /// A value with the wrong type, or a missing address.
    #[error("invalid CNI result: {0}")]
    Decode(#[from] DecodeError),
    /// 0.1.0 and 0.2.0 cannot say "no address".
    #[error("cannot convert: no valid IP addresses")]
    NoIps,
}

impl CniResult {
    /// The interface an address belongs to, or `None` if it names none or one that is not there.
    pub fn interface_of(&self, ip: &Ip) -> Option<&Interface> {
        self.interfaces.get(usize::try_from(ip.interface?).ok()?)
    }

    /// The first interface inside a container or virtual machine with this name.
    pub fn container_interface(&self, name: &IfName) -> Option<(usize, &Interface)> {
        self.interfaces
            .iter()
            .enumerate()
            .find(|(_, interface)| !interface.sandbox.is_empty() && interface.name == name.as_str())
    }
}

impl Ip {
    /// An address without gateway and interface.
    pub fn new(address: IpNetwork) -> Self {
        Ip {
            address,
            gateway: None,
            interface: None,
        }
    }
}

impl Route {
    /// A route with nothing but destination and next hop.
    pub fn new(dst: IpNetwork, gw: Option<IpAddr>) -> Self {
        Route {
            dst,
            gw,
            mtu: 0,
            advmss: 0,
            priority: 0,
            table: None,
            scope: None,
        }
    }
}

impl Dns {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Dns::default()
    }
}

/// A route as it is written; `dst` may be missing there, but not in a [`Route`].
#[derive(Default, Deserialize)]
#[serde(default)]
struct RouteFields {
    dst: Option<String>,
    #[serde(deserialize_with = "optional_ip")]
    gw: Option<IpAddr>,
    mtu: i64,
    advmss: i64,
    priority: i64,
    table: Option<i64>,
    scope: Option<i64>,
}

impl<'de> Deserialize<'de> for Route {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = RouteFields::deserialize(deserializer)?;
        let dst = fields
            .dst
            .ok_or_else(|| serde::de::Error::missing_field("dst"))?;
        Ok(Route {
            dst: crate::net::parse_cidr(&dst).map_err(serde::de::Error::custom)?,
            gw: fields.gw,
            mtu: fields.mtu,
            advmss: fields.advmss,
            priority: fields.priority,
            table: fields.table,
            scope: fields.scope,
        })
    }
}

/// An address as it is written; `address` may be missing there, but not in an [`Ip`].
#[derive(Default, Deserialize)]
#[serde(default)]
struct IpFields {
    address: Option<String>,
    #[serde(deserialize_with = "optional_ip")]
    gateway: Option<IpAddr>,
    interface: Option<i64>,
}

impl<'de> Deserialize<'de> for Ip {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = IpFields::deserialize(deserializer)?;
        let address = fields
            .address
            .ok_or_else(|| serde::de::Error::missing_field("address"))?;
        Ok(Ip {
            address: crate::net::parse_cidr(&address).map_err(serde::de::Error::custom)?,
            gateway: fields.gateway,
            interface: fields.interface,
        })
    }
}
