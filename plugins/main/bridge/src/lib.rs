//! CNI plugin `bridge`: connects the container to a bridge on the host with a veth pair.

mod add;
mod bridging;
mod check;
mod config;
mod del;
mod error;
mod gateway;
mod port;
mod vlan;
mod world;

use skel::{Added, DelRequest, NetworkRequest, Plugin, Request};

pub use config::Config;
pub use error::Error;

/// The plugin.
pub struct Bridge;

impl Plugin for Bridge {
    const NAME: &'static str = "bridge";

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
        if let Some(ipam) = &request.ipam {
            ipam.status().map_err(interface::Error::from)?;
        }
        let has_ipam = request.ipam.is_some();
        request.config.validate(has_ipam)?;
        bridging::status(request.network.as_str(), &request.config, has_ipam)
            .and_then(|()| masquerade_status(&request.config, has_ipam))
            .map_err(|error| Error::NotReady(Box::new(error)))
    }
}

fn masquerade_status(config: &Config, has_ipam: bool) -> Result<(), Error> {
    if !config.ip_masq || !has_ipam {
        return Ok(());
    }
    Ok(interface::masquerade::status(config.masquerade_backend()?)?)
}
