//! CNI plugin `bandwidth`: limits the rate of a container's traffic in both directions.
//!
//! What the container receives waits in a token bucket filter on the host's end of its veth pair. What it sends is
//! redirected, where it arrives on the host, through an intermediate functional block with another one.

mod add;
mod check;
mod config;
mod del;
mod error;
mod host_end;
mod ifb;
mod limit;
mod status;

use cni_types::SpecVersion;
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request};

pub use config::Config;
pub use error::Error;
pub use limit::{Direction, Limit};

/// The plugin.
pub struct Bandwidth;

impl Plugin for Bandwidth {
    const NAME: &'static str = "bandwidth";
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

    fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
        del::gc(request)
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        request.config.limits()?;
        status::status()
    }
}
