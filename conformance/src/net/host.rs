//! The small world around a plugin: a host, somebody outside, and container namespaces.
//!
//! ```text
//! container c1 ─┐
//!               ├─ [bridge made by the plugin]  host  up0 192.0.2.1 ── 192.0.2.9 eth0  outside
//! container c2 ─┘                                     2001:db8::1 ──── 2001:db8::9
//! ```
//!
//! The outside has no route to any container network, so what reaches it must be masqueraded and
//! what it sends must go to an address of the host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnetwork::IpNetwork;

use super::netns::Netns;
use super::rtnl::Rtnl;
use crate::error::{Context, Result};
use crate::sandbox::Sandbox;

/// The host's link to the outside.
pub const UPLINK: &str = "up0";
/// The host's IPv4 address on that link.
pub const HOST_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
/// The outside's IPv4 address.
pub const OUTSIDE_V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9));
/// The host's IPv6 address on that link.
pub const HOST_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));
/// The outside's IPv6 address.
pub const OUTSIDE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9));

/// The host of a sandbox: the sandbox's own network namespace, and the outside it is wired to.
#[derive(Debug)]
pub struct Host {
    sandbox: Sandbox,
    netns: Netns,
    rtnl: Rtnl,
    outside: Netns,
}

impl Host {
    /// Furnishes the sandbox this process is in.
    ///
    /// # Errors
    /// [`crate::Error::NotInSandbox`] outside of one; otherwise what the kernel refused.
    pub fn new() -> Result<Self> {
        let sandbox = Sandbox::require()?;
        let netns = Netns::current()?;
        let rtnl = Rtnl::here()?;
        rtnl.set_up("lo")?;
        let outside = Netns::create(&sandbox, "outside")?;
        rtnl.add_veth(UPLINK, &outside, "eth0")?;
        let far = Rtnl::open(&outside)?;
        far.set_up("lo")?;
        connect(&rtnl, &far)?;
        for (rtnl, link, address, prefix) in [
            (&rtnl, UPLINK, HOST_V4, 24),
            (&rtnl, UPLINK, HOST_V6, 64),
            (&far, "eth0", OUTSIDE_V4, 24),
            (&far, "eth0", OUTSIDE_V6, 64),
        ] {
            rtnl.add_address(link, with_prefix(address, prefix)?)?;
        }
        Ok(Self {
            sandbox,
            netns,
            rtnl,
            outside,
        })
    }

    /// The host's namespace.
    #[must_use]
    pub fn netns(&self) -> &Netns {
        &self.netns
    }

    /// The namespace of the machine outside.
    #[must_use]
    pub fn outside(&self) -> &Netns {
        &self.outside
    }

    /// The connection into the host's namespace.
    #[must_use]
    pub fn rtnl(&self) -> &Rtnl {
        &self.rtnl
    }

    /// The proof that this is a sandbox.
    #[must_use]
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Makes the namespace of a container, with its loopback interface down.
    ///
    /// # Errors
    /// When the name is taken.
    pub fn container(&self, name: &str) -> Result<Netns> {
        Netns::create(&self.sandbox, name)
    }

    /// Writes a sysctl of the host's namespace; the key with slashes, below `/proc/sys`.
    ///
    /// # Errors
    /// When the kernel has no such key or refuses the value.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<()> {
        let file = format!("/proc/sys/{key}");
        std::fs::write(&file, value).doing(|| format!("write {value} to {file}"))
    }
}

/// Switches both ends on so that each finds its carrier at that moment. An end that is switched
/// on first learns of it up to a second later, and until then has no working IPv6.
fn connect(near: &Rtnl, far: &Rtnl) -> Result<()> {
    near.set_up(UPLINK)?;
    far.set_up("eth0")?;
    near.set_down(UPLINK)?;
    near.set_up(UPLINK)
}

/// An address with a prefix length.
pub(crate) fn with_prefix(address: IpAddr, prefix: u8) -> Result<IpNetwork> {
    IpNetwork::new(address, prefix).map_err(|error| crate::Error::Malformed {
        what: format!("{address}/{prefix}: {error}"),
    })
}
