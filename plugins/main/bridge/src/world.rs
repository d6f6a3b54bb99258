//! What an ADD works on, and the names that its objects carry.

use netfilter::{Netfilter, Owner};
use netlink::{Handle, Netns};
use skel::Request;

use crate::config::Config;
use crate::error::Error;

/// The handles of one call. Both namespaces are opened once; no code runs "inside" one.
pub struct World {
    /// The namespace that the bridge is in.
    pub host: Handle,
    /// The container's.
    pub container: Handle,
    /// Whether the bridge was made in this call.
    pub bridge_is_new: bool,
    /// The host's packet filter, opened when something is wanted of it.
    filter: Option<Netfilter>,
}

impl World {
    /// Opens both namespaces.
    pub fn open(netns: &cni_types::NetnsPath) -> Result<Self, Error> {
        let netns = Netns::open(netns.as_path())?;
        Ok(Self {
            host: Handle::host()?,
            container: Handle::open(&netns)?,
            bridge_is_new: false,
            filter: None,
        })
    }

    /// The host's packet filter.
    pub fn filter(&mut self) -> Result<&mut Netfilter, Error> {
        match &mut self.filter {
            Some(filter) => Ok(filter),
            none => Ok(none.insert(Netfilter::open()?)),
        }
    }
}

/// Marks a host veth whose owner asked, by name, for hairpin mode off.
const NO_HAIRPIN: &str = ", hairpin: off";

/// The alias of a container's host veth: whose it is, in the form of a rule comment.
///
/// It lets a DEL or GC find the pair when the container's namespace cannot be reached, and lets `portmap`
/// see who the port belongs to and whether it may set hairpin mode.
pub fn alias(owner: &Owner, config: &Config) -> String {
    let mut alias = owner.comment();
    if config.hairpin_mode == Some(false) {
        alias.push_str(NO_HAIRPIN);
    }
    alias
}

/// The owner of what this request makes.
pub fn owner<C, N>(request: &Request<C, N>) -> Owner {
    Owner::new(
        request.network.as_str(),
        request.container_id.as_str(),
        request.ifname.as_str(),
    )
}
