//! What an ADD works on.

use cni_types::NetnsPath;
use netfilter::{Netfilter, Owner};
use netlink::{Handle, Netns};
use skel::Request;

use crate::error::Error;

/// The handles of one call. Both namespaces are opened once; no code runs "inside" one. `X` is what a plugin keeps
/// beside them.
pub struct World<X = ()> {
    /// The namespace that the plugin was started in.
    pub host: Handle,
    /// The container's.
    pub container: Handle,
    /// The plugin's own notes.
    pub own: X,
    /// The host's packet filter, opened when something is wanted of it.
    filter: Option<Netfilter>,
}

impl<X: Default> World<X> {
    /// Opens both namespaces.
    ///
    /// # Errors
    /// When one of them cannot be opened.
    pub fn open(netns: &NetnsPath) -> Result<Self, Error> {
        let netns = Netns::open(netns.as_path())?;
        Ok(Self {
            host: Handle::host()?,
            container: Handle::open(&netns)?,
            own: X::default(),
            filter: None,
        })
    }
}

impl<X> World<X> {
    /// The host's packet filter.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn filter(&mut self) -> Result<&mut Netfilter, Error> {
        match &mut self.filter {
            Some(filter) => Ok(filter),
            none => Ok(none.insert(Netfilter::open()?)),
        }
    }
}

/// The owner of what a request makes.
pub fn owner<C, N>(request: &Request<C, N>) -> Owner {
    Owner::new(
        request.network.as_str(),
        request.container_id.as_str(),
        request.ifname.as_str(),
    )
}
