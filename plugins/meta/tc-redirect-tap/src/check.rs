//! CHECK: what ADD promised, and nothing else.

use interface::{World, redirect, verify};
use netlink::Link;
use netlink::tun::NewTap;
use skel::Request;

use crate::config::Config;
use crate::error::Error;
use crate::machine;

pub fn check(request: &Request<Config>) -> Result<(), Error> {
    let wanted = request.config.tap(&request.args)?;
    let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
    let machine = machine::find(result, &request.container_id).ok_or_else(|| {
        fail(format!(
            "no interface with the sandbox {} is among the interfaces of prevResult",
            request.container_id
        ))
    })?;
    let world: World = World::open(&request.netns)?;
    let container = &world.container;
    let find = |name: &str| -> Result<Link, Error> {
        let link = container.find_link(name)?;
        link.ok_or_else(|| fail(format!("container interface {name} not found")))
    };
    let tap = find(&machine.interface.name)?;
    let link = find(request.ifname.as_str())?;
    check_tap(&wanted, &tap)?;
    verify::same_mac(machine.interface, &link)?;
    redirect::verify(container, &tap, &link)?;
    Ok(redirect::verify(container, &link, &tap)?)
}

fn check_tap(wanted: &NewTap, tap: &Link) -> Result<(), Error> {
    if !tap.is_tun() {
        return Err(fail(format!(
            "container interface {} is not a tap",
            tap.name
        )));
    }
    verify::is_up(tap)?;
    // A kernel before 4.16 says nothing about the other end.
    let Some(tun) = tap.tun.filter(|tun| *tun != Default::default()) else {
        return Ok(());
    };
    for (what, wanted, is) in [
        ("owner", wanted.owner, tun.owner),
        ("group", wanted.group, tun.group),
    ] {
        if wanted != is {
            return Err(fail(format!(
                "the {what} of tap {} is not {}",
                tap.name,
                wanted.unwrap_or_default()
            )));
        }
    }
    Ok(())
}

fn fail(text: String) -> Error {
    interface::Error::Check(text).into()
}
