//! CNI plugin `tap`: makes a tap in the container, for a virtual machine that runs there.

mod add;
mod check;
mod config;
mod del;
mod error;
mod selinux;

use skel::{Added, DelRequest, NetworkRequest, Plugin, Request};

pub use config::Config;
pub use error::Error;

/// The plugin.
pub struct Tap;

impl Plugin for Tap {
    const NAME: &'static str = "tap";

    type Config = Config;
    type Error = Error;

    fn trace(log: fn(std::fmt::Arguments<'_>)) {
        interface::trace(log);
    }

    fn add(request: &Request<Config>) -> Result<Added, Error> {
        add::add(request)
    }

    fn del(request: &DelRequest<Config>) -> Result<(), Error> {
        del::del(request)
    }

    fn check(request: &Request<Config>) -> Result<(), Error> {
        check::check(request)
    }

    /// What is in a container goes with it, so only addresses can be left over.
    fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
        match &request.ipam {
            Some(ipam) => Ok(ipam.gc().map_err(interface::Error::from)?),
            None => Ok(()),
        }
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        if let Some(ipam) = &request.ipam {
            ipam.status().map_err(interface::Error::from)?;
        }
        request.config.validate()?;
        netlink::tun::require_tun().map_err(Error::NotReady)
    }
}
