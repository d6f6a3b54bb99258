//! A plugin that makes one link in the container and gives it addresses: the six verbs, but for what the link is.
//!
//! The plugin says that by [`Single`], and [`SinglePlugin`] is the plugin then. An ADD is: refuse a name that is taken and
//! whatever else can be refused, make the link, ask IPAM, configure, wait until traffic flows, tell the neighbours. The
//! link comes before IPAM because a DHCP client asks over it.

mod add;
mod check;
mod failure;
mod remove;

use std::marker::PhantomData;

use cni_types::result::CniResult;
use netlink::Link;
use serde::de::DeserializeOwned;
use skel::{Added, DelRequest, NetworkRequest, Plugin, PluginError, Request};

use crate::addressing::Settings;
use crate::config::DnsConfig;
use crate::error::Error;
use crate::world::World;

pub use add::attach;
pub use failure::Failure;

/// What an ADD has found out before its first change.
#[derive(Debug, Clone)]
pub struct Plan<O> {
    /// The MTU that the link will have, in bytes, where it is known.
    pub mtu: Option<u32>,
    /// How the link takes its addresses up. Its link-local address is filled in when the link is there.
    pub settings: Settings,
    /// What [`Single::create`] needs.
    pub own: O,
}

/// A kind of link, and a plugin's way of making it.
pub trait Single: 'static {
    /// The plugin's file name.
    const NAME: &'static str;
    /// The kind as the kernel calls it.
    const KIND: &'static str;

    /// The plugin's view of the configuration.
    type Config: DeserializeOwned + Default;
    /// What [`Self::create`] needs to know.
    type Own;
    /// What can go wrong.
    type Error: PluginError + From<Error> + 'static;

    /// The configuration's `dns` key.
    fn dns(config: &Self::Config) -> Option<&DnsConfig>;

    /// Addresses that somebody else gave, to be used instead of asking IPAM.
    fn given(_: &Request<Self::Config>) -> Option<CniResult> {
        None
    }

    /// Looks whether the link can be made. Nothing is changed yet.
    ///
    /// # Errors
    /// Whatever can be refused before the first change.
    fn plan(request: &Request<Self::Config>, world: &World)
    -> Result<Plan<Self::Own>, Self::Error>;

    /// Makes the link in the container under its name, down.
    ///
    /// # Errors
    /// The kernel's refusal; [`is_exists`](netlink::Error::is_exists) only if nothing was made.
    fn create(world: &World, ifname: &str, own: &Self::Own) -> netlink::Result<()>;

    /// What the refusal of [`Self::create`] means.
    fn refusal(ifname: &str, own: &Self::Own, error: netlink::Error) -> Self::Error;

    /// Whether a link in the container can be one that this plugin made.
    fn is_ours(link: &Link) -> bool {
        link.kind.as_deref() == Some(Self::KIND)
    }

    /// CHECK of what this kind of link has beside the others.
    ///
    /// # Errors
    /// For the first thing that is not as ADD left it.
    fn verify(
        request: &Request<Self::Config>,
        world: &World,
        link: &Link,
    ) -> Result<(), Self::Error>;

    /// STATUS, beside IPAM's: fails if [`Self::plan`] or [`Self::create`] would whatever the container.
    ///
    /// # Errors
    /// Why it would.
    fn status(config: &Self::Config) -> Result<(), Self::Error>;
}

/// The plugin that makes links of a kind.
pub struct SinglePlugin<S>(PhantomData<S>);

impl<S: Single> Plugin for SinglePlugin<S> {
    const NAME: &'static str = S::NAME;

    type Config = S::Config;
    type Error = Failure<S::Error>;

    fn trace(log: fn(std::fmt::Arguments<'_>)) {
        crate::trace(log);
    }

    fn add(request: &Request<S::Config>) -> Result<Added, Self::Error> {
        Ok(add::add::<S>(request)?)
    }

    fn del(request: &DelRequest<S::Config>) -> Result<(), Self::Error> {
        Failure::join(remove::del::<S>(request))
    }

    fn check(request: &Request<S::Config>) -> Result<(), Self::Error> {
        Ok(check::check::<S>(request)?)
    }

    fn gc(request: &NetworkRequest<S::Config>) -> Result<(), Self::Error> {
        // The links are gone with their namespaces.
        match &request.ipam {
            Some(ipam) => Ok(ipam.gc().map_err(Error::from).map_err(S::Error::from)?),
            None => Ok(()),
        }
    }

    fn status(request: &NetworkRequest<S::Config>) -> Result<(), Self::Error> {
        if let Some(ipam) = &request.ipam {
            ipam.status().map_err(Error::from).map_err(S::Error::from)?;
        }
        S::status(&request.config).map_err(Failure::NotReady)
    }
}
