//! The six commands. Nothing is remembered, so there is nothing to free.

use cni_types::Value;
use cni_types::json::Key;
use cni_types::result::{CniResult, Ip};
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request};

use crate::config::{self, Config};
use crate::error::Error;

/// The plugin.
pub struct Static;

impl Plugin for Static {
    const NAME: &'static str = "static";

    /// As it came: a DEL succeeds whatever it says.
    type Config = Value;

    type Error = Error;

    fn keys() -> Vec<Key> {
        config::keys()
    }

    fn add(request: &Request<Value>) -> Result<Added, Error> {
        request.args.require_well_formed()?;
        let config = Config::decode(&request.config, request.version, &request.args)?;
        Ok(Added::unchanged(CniResult {
            interfaces: Vec::new(),
            ips: config.ips,
            routes: config.routes,
            dns: config.dns,
        }))
    }

    fn del(_: &DelRequest<Value>) -> Result<(), Error> {
        Ok(())
    }

    fn check(request: &Request<Value>) -> Result<(), Error> {
        let config = Config::decode(&request.config, request.version, &request.args)?;
        let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
        config.ips.iter().try_for_each(|ip| check(ip, result))
    }

    fn gc(_: &NetworkRequest<Value>) -> Result<(), Error> {
        Ok(())
    }

    fn status(request: &NetworkRequest<Value>) -> Result<(), Error> {
        Config::decode(&request.config, request.version, &Default::default())?;
        Ok(())
    }
}

/// The result must have the address, with the gateway that the configuration gives it, if any. Without one, whoever
/// asked us may have chosen it.
fn check(wanted: &Ip, result: &CniResult) -> Result<(), Error> {
    let mut same = result.ips.iter().filter(|ip| ip.address == wanted.address);
    let found = same.next().ok_or(Error::Missing(wanted.address))?;
    match wanted.gateway {
        Some(gateway) if found.gateway != Some(gateway) => Err(Error::OtherGateway {
            address: wanted.address,
            wanted: gateway,
            found: found.gateway,
        }),
        _ => Ok(()),
    }
}
