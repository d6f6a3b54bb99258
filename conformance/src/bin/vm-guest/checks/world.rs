//! A host, and containers attached to its networks.

use std::net::IpAddr;
use std::path::Path;

use conformance::chain::{Attachment, Network, Runtime};
use conformance::error::{Error, Result};
use conformance::facts;
use conformance::net::{Host, Netns};
use serde_json::{Value, json};

/// The host of a check.
pub struct World {
    pub host: Host,
    pub runtime: Runtime,
}

/// A container on a network.
pub struct Container {
    pub netns: Netns,
    pub attachment: Attachment,
    pub result: Value,
}

impl World {
    pub fn new() -> Result<Self> {
        Ok(Self {
            host: Host::new()?,
            runtime: Runtime::new(Path::new("/opt/cni/bin")),
        })
    }

    /// A new container on that network.
    pub fn attach(&self, network: &Network, name: &str) -> Result<Container> {
        let netns = self.host.container(name)?;
        self.attach_as(network, netns, Attachment::new(name, Path::new("")))
    }

    /// Attaches under what the attachment says, apart from its namespace.
    pub fn attach_as(
        &self,
        network: &Network,
        netns: Netns,
        mut attachment: Attachment,
    ) -> Result<Container> {
        attachment.netns = netns.path().to_owned();
        let result = self.runtime.add(network, &mut attachment)?;
        Ok(Container {
            netns,
            attachment,
            result,
        })
    }
}

impl Container {
    /// The name of the host's end.
    pub fn port(&self) -> Result<String> {
        let port = facts::interfaces(&self.result).into_iter().nth(1);
        port.map(|one| one.name).ok_or_else(|| Error::Missing {
            what: "the host's end in the result".into(),
        })
    }

    /// The first address.
    pub fn address(&self) -> Result<IpAddr> {
        let first = facts::addresses(&self.result).into_iter().next();
        first
            .map(|one| one.address.ip())
            .ok_or_else(|| Error::Missing {
                what: "an address in the result".into(),
            })
    }
}

/// The network `name` on the bridge `br0`: addresses from `subnet`, or none, and more keys for the bridge plugin.
pub fn network(name: &str, subnet: Option<&str>, keys: &Value) -> Result<Network> {
    let mut plugin = json!({"type": "bridge", "bridge": "br0"});
    if let Some(subnet) = subnet {
        merge(
            &mut plugin,
            &json!({"ipam": {"type": "host-local", "ranges": [[{"subnet": subnet}]]}}),
        );
    }
    merge(&mut plugin, keys);
    let list = json!({"cniVersion": "1.0.0", "name": name, "plugins": [plugin]});
    Network::parse(&list.to_string())
}

fn merge(into: &mut Value, more: &Value) {
    if let (Some(into), Some(more)) = (into.as_object_mut(), more.as_object()) {
        into.extend(more.clone());
    }
}

/// Fails unless both are equal.
pub fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::unexpected(
        format!("{what} {expected:?}"),
        format!("{found:?}"),
    ))
}

/// Fails unless it holds.
pub fn holds(what: &str, it: bool) -> Result<()> {
    if it {
        Ok(())
    } else {
        Err(Error::unexpected(what, "the contrary"))
    }
}

/// Fails if it succeeded.
pub fn fails<T>(what: &str, result: Result<T>) -> Result<Error> {
    match result {
        Ok(_) => Err(Error::unexpected(format!("{what} to fail"), "success")),
        Err(error) => Ok(error),
    }
}

/// Reads an address or a network.
pub fn parse<T: std::str::FromStr>(text: &str) -> Result<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| Error::Malformed {
        what: format!("{text}: {error}"),
    })
}
