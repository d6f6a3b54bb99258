//! CHECK: what ADD promised, and nothing else.

use interface::{World, owner};
use netfilter::Owner;
use netlink::tc::Place;
use netlink::{Handle, Link};
use skel::Request;

use crate::config::Config;
use crate::error::Error;
use crate::limit::Limit;
use crate::{host_end, ifb};

pub fn check(request: &Request<Config>) -> Result<(), Error> {
    let limits = request.config.limits()?;
    let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
    if limits.is_empty() {
        return Ok(());
    }
    let world = World::open(&request.netns)?;
    let link = host_end::find(&world, request.ifname.as_str(), result)?;
    if let Some(limit) = limits.ingress {
        require_limit(&world.host, &link, limit)?;
    }
    if let Some(limit) = limits.egress {
        let block = find_block(&world.host, &owner(request))?;
        require_limit(&world.host, &block, limit)?;
        interface::redirect::verify(&world.host, &link, &block)?;
    }
    Ok(())
}

fn require_limit(host: &Handle, link: &Link, limit: Limit) -> Result<(), Error> {
    let found = host.qdisc(link, Place::Root)?;
    let Some(tbf) = found.and_then(|qdisc| qdisc.tbf) else {
        return Err(Error::Check(format!(
            "the traffic of interface {} is not limited",
            link.name
        )));
    };
    if limit.is_kept_by(&tbf) {
        return Ok(());
    }
    let wanted = limit.tbf();
    Err(Error::Check(format!(
        "interface {} is limited to rate {} limit {} buffer {}, not to rate {} limit {} buffer {}",
        link.name, tbf.rate, tbf.limit, tbf.buffer, wanted.rate, wanted.limit, wanted.buffer
    )))
}

/// The block of this attachment, be it one of the reference set.
fn find_block(host: &Handle, owner: &Owner) -> Result<Link, Error> {
    for name in ifb::names(owner) {
        let link = host.find_link(&name)?;
        let ours = |link: &Link| ifb::is_of(link, owner) || ifb::is_of_reference(link, owner);
        if let Some(link) = link.filter(ours) {
            if !link.up {
                return Err(Error::Check(format!("interface {name} is down")));
            }
            return Ok(link);
        }
    }
    let [name, _] = ifb::names(owner);
    Err(Error::Check(format!("interface {name} not found")))
}
