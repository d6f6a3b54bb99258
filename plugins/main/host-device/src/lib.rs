//! CNI plugin `host-device`: moves an interface of the host into the container, and back.

mod add;
mod check;
mod config;
mod del;
mod device;
mod error;
mod home;
mod moved;
mod sysfs;

use skel::{Added, DelRequest, NetworkRequest, Plugin, Request};

pub use config::Config;
pub use error::Error;

/// The plugin.
pub struct HostDevice;

impl Plugin for HostDevice {
    const NAME: &'static str = "host-device";

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

    fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
        del::gc(request)
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        if let Some(ipam) = &request.ipam {
            ipam.status().map_err(interface::Error::from)?;
        }
        // Whether the device is there tells nothing: while it is in a container, it is not, and all is well. And which
        // one it is may be known only from what the runtime fills in for an ADD.
        match device::choose(&request.config) {
            Ok(_) | Err(Error::NoSelector) => Ok(()),
            Err(error) => Err(Error::NotReady(Box::new(error))),
        }
    }
}
