//! CNI plugin `loopback`: sets the container's `lo` up.
//!
//! `CNI_IFNAME` is not looked at; the interface is always `lo`.

use cni_types::result::{CniResult, Interface, Ip};
use cni_types::{NetnsPath, code};
use ipnetwork::IpNetwork;
use netlink::{Address, Handle, Link, Netns};
use serde::Deserialize;
use skel::{Added, DelRequest, NetworkRequest, Plugin, PluginError, Request, Transaction};

/// The interface.
const LOOPBACK: &str = "lo";

/// The plugin.
pub struct Loopback;

/// Nothing of the configuration concerns this plugin.
#[derive(Debug, Default, Deserialize)]
pub struct Config {}

/// What can go wrong in `loopback`.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel refused.
    #[error(transparent)]
    Netlink(#[from] netlink::Error),
    /// Somebody put another address on `lo`, so it is not only the container's own.
    #[error("loopback interface found with non-loopback address \"{0}\"")]
    ForeignAddress(IpNetwork),
    /// CHECK: it was set down.
    #[error("loopback interface is down")]
    Down,
    /// CHECK: an address that ADD reported is gone.
    #[error("address {0} is not on interface lo any more")]
    AddressGone(IpNetwork),
}

impl PluginError for Error {
    fn code(&self) -> u32 {
        match self {
            Self::Netlink(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                code::INVALID_NETNS
            }
            _ => code::INTERNAL,
        }
    }
}

impl Plugin for Loopback {
    const NAME: &'static str = "loopback";

    type Config = Config;
    type Error = Error;

    fn trace(log: fn(std::fmt::Arguments<'_>)) {
        netlink::on_message(log);
    }

    fn add(request: &Request<Config>) -> Result<Added, Error> {
        let container = open(&request.netns)?;
        let lo = container.link(LOOPBACK)?;
        let mut transaction = Transaction::new(container);
        if !lo.up {
            // Before it is done: the kernel may have done it though its answer is lost.
            let was_down = lo.clone();
            transaction.on_failure("set lo down", move |c: &mut Handle| c.set_down(&was_down));
            transaction.set_up(&lo)?;
        }
        let addresses = transaction.addresses(&lo)?;
        if let Some(foreign) = addresses.iter().find(|a| !a.ip.ip().is_loopback()) {
            return Err(Error::ForeignAddress(foreign.ip));
        }
        let result = match &request.prev_result {
            Some(result) => result.clone(),
            None => describe(&request.netns, &lo, &addresses),
        };
        Ok(Added::new(result, transaction))
    }

    fn del(request: &DelRequest<Config>) -> Result<(), Error> {
        let Some(netns) = &request.netns else {
            return Ok(());
        };
        let container = match open(netns) {
            Err(netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. }) => {
                return Ok(());
            }
            other => other?,
        };
        let lo = container.link(LOOPBACK)?;
        Ok(container.set_down(&lo)?)
    }

    fn check(request: &Request<Config>) -> Result<(), Error> {
        let container = open(&request.netns)?;
        let lo = container.link(LOOPBACK)?;
        if !lo.up {
            return Err(Error::Down);
        }
        let present = container.addresses(&lo)?;
        for ip in request.prev_result.iter().flat_map(promised) {
            if !present.iter().any(|a| a.ip == ip.address) {
                return Err(Error::AddressGone(ip.address));
            }
        }
        Ok(())
    }

    fn gc(_: &NetworkRequest<Config>) -> Result<(), Error> {
        // Nothing outlives the container's namespace.
        Ok(())
    }

    fn status(_: &NetworkRequest<Config>) -> Result<(), Error> {
        // The only thing that an ADD needs is the container's namespace.
        Ok(())
    }
}

fn open(netns: &NetnsPath) -> netlink::Result<Handle> {
    Handle::open(&Netns::open(netns.as_path())?)
}

/// `lo` with its first address of each family.
fn describe(netns: &NetnsPath, lo: &Link, addresses: &[Address]) -> CniResult {
    let first = |ipv6: bool| {
        addresses
            .iter()
            .map(|a| a.ip)
            .find(|ip| ip.is_ipv6() == ipv6)
    };
    let ips = [first(false), first(true)].into_iter().flatten();
    CniResult {
        interfaces: vec![Interface {
            name: lo.name.clone(),
            mac: lo.mac.unwrap_or_default().to_string(),
            sandbox: netns.as_path().display().to_string(),
            ..Interface::default()
        }],
        ips: ips
            .map(|ip| Ip {
                interface: Some(0),
                ..Ip::new(ip)
            })
            .collect(),
        ..CniResult::default()
    }
}

/// The addresses of `lo` in a result; in a chain the others are somebody else's.
fn promised(result: &CniResult) -> impl Iterator<Item = &Ip> {
    result.ips.iter().filter(|ip| {
        result
            .interface_of(ip)
            .is_some_and(|i| i.name == LOOPBACK && !i.sandbox.is_empty())
    })
}
