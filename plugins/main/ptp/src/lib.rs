//! CNI plugin `ptp`: connects the container to the host with a veth pair, and routes to it there.

mod add;
mod check;
mod config;
mod del;
mod error;
mod gateway;
mod host;

use skel::{Added, DelRequest, NetworkRequest, Plugin, Request};

pub use config::Config;
pub use error::Error;

/// The plugin.
pub struct Ptp;

impl Plugin for Ptp {
    const NAME: &'static str = "ptp";

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

    fn reapply(request: &Request<Config>) -> Result<(), Error> {
        check::reapply(request)
    }

    fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
        del::gc(request)
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        let Some(ipam) = &request.ipam else {
            return request.config.validate();
        };
        ipam.status().map_err(interface::Error::from)?;
        request.config.validate()?;
        ready(request).map_err(|error| Error::NotReady(Box::new(error)))
    }
}

/// Fails if an ADD would, whatever the container.
fn ready(request: &NetworkRequest<Config>) -> Result<(), Error> {
    let config = &request.config;
    host::require_ipv6(request.network.as_str(), config.subnets())?;
    if config.ip_masq {
        interface::masquerade::status(config.masquerade_backend()?)?;
    }
    Ok(())
}
