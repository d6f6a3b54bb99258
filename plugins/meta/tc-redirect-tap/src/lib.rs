//! CNI plugin `tc-redirect-tap`: puts a tap in place of the container's interface, for a virtual machine.
//!
//! Whatever plugin made the interface, everything that arrives by it goes to the tap, and everything that the machine sends
//! goes out of it. The machine uses the interface's addresses, MAC and IP; the result says so in the form that the
//! Firecracker SDK for Go and others read: the tap in the container, and an interface of the same name "in" the machine,
//! whose sandbox is the container id.

mod add;
mod check;
mod config;
mod del;
mod error;
mod machine;

use cni_types::{Args, SpecVersion};
use netlink::Handle;
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request};

pub use config::Config;
pub use error::Error;

/// The plugin.
pub struct TcRedirectTap;

impl Plugin for TcRedirectTap {
    const NAME: &'static str = "tc-redirect-tap";
    // Earlier versions have no prevResult with interfaces.
    const VERSIONS: &'static [SpecVersion] = &[
        SpecVersion::V0_3_0,
        SpecVersion::V0_3_1,
        SpecVersion::V0_4_0,
        SpecVersion::V1_0_0,
        SpecVersion::V1_1_0,
    ];

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

    /// What is in a container goes with it.
    fn gc(_: &NetworkRequest<Config>) -> Result<(), Error> {
        Ok(())
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        request.config.tap(&Args::default())?;
        netlink::tun::require_tun().map_err(Error::NotReady)?;
        Handle::host()?.require_redirect().map_err(Error::NotReady)
    }
}
