//! CHECK: what ADD promised, and nothing else.

use interface::{World, verify};
use skel::Request;

use crate::config::Config;
use crate::device::{self, Selector};
use crate::error::Error;

pub fn check(request: &Request<Config>) -> Result<(), Error> {
    if let Some(ipam) = &request.ipam {
        ipam.check().map_err(interface::Error::from)?;
    }
    let missing = interface::Error::NoPrevResult;
    let result = request.prev_result.as_ref().ok_or(missing)?;
    let world: World = World::open(&request.netns)?;
    let ifname = request.ifname.as_str();
    let promised = verify::promised(result, ifname)?;
    // Of what a program in user space drives, nothing can be seen. That sysfs does not know a device any more is for
    // the interface to show.
    if matches!(device::choose(&request.config), Ok(Selector::UserSpace)) {
        return Ok(());
    }
    let link = world.container.find_link(ifname)?.ok_or_else(|| {
        interface::Error::Check(format!(
            "container interface {ifname} not found in {}",
            request.netns.as_path().display()
        ))
    })?;
    verify::same_mac(promised, &link)?;
    verify::is_up(&link)?;
    verify::addresses(&world.container, result, &link)?;
    verify::routes(&world.container, result, &link)?;
    Ok(())
}
