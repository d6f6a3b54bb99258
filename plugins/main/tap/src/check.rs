//! CHECK: what ADD promised, and nothing else.

use interface::{World, verify};
use netlink::Link;
use skel::Request;

use crate::add::find_bridge;
use crate::config::Config;
use crate::error::Error;

pub fn check(request: &Request<Config>) -> Result<(), Error> {
    let config = &request.config;
    config.validate()?;
    if let Some(ipam) = &request.ipam {
        ipam.check().map_err(interface::Error::from)?;
    }
    let missing = interface::Error::NoPrevResult;
    let result = request.prev_result.as_ref().ok_or(missing)?;
    let world: World = World::open(&request.netns)?;
    let container = &world.container;
    let name = request.ifname.as_str();
    let link = verify::link(container, &request.netns, name, "tun", result)?;
    verify::is_up(&link)?;
    verify::has_mtu(&link, config.mtu()?)?;
    check_tap(config, &link)?;
    if let Some(bridge) = find_bridge(container, config)?
        && link.master != Some(bridge.index)
    {
        return Err(fail(format!(
            "interface {name} is not a port of bridge {}",
            bridge.name
        )));
    }
    verify::addresses(container, result, &link)?;
    Ok(verify::routes(container, result, &link)?)
}

fn check_tap(config: &Config, link: &Link) -> Result<(), Error> {
    // A kernel before 4.16 says nothing about the other end.
    let Some(tun) = link.tun.filter(|tun| *tun != Default::default()) else {
        return Ok(());
    };
    if !tun.tap {
        return Err(fail(format!("interface {} is a tun, not a tap", link.name)));
    }
    if config.multi_queue && !tun.multi_queue {
        return Err(fail(format!("tap {} has a single queue", link.name)));
    }
    for (what, wanted, is) in [
        ("owner", config.owner, tun.owner),
        ("group", config.group, tun.group),
    ] {
        if wanted.is_some() && wanted != is {
            let is = is.map_or_else(|| "nobody".to_owned(), |id| id.to_string());
            return Err(fail(format!(
                "the {what} of tap {} is {is}, not {}",
                link.name,
                wanted.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

fn fail(text: String) -> Error {
    interface::Error::Check(text).into()
}
