//! CNI plugin `vrf`: puts the container's interface into a VRF, a domain of routing of its own, so that interfaces of
//! different networks may even have the same addresses.

mod belongings;
mod check;
mod config;
mod device;
mod error;
mod ready;

use std::time::Duration;

use netlink::{Handle, Link, Locked, NewKind, TABLE_MAIN};
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request, Transaction, log};

use belongings::{Belongings, Move};
pub use config::Config;
pub use error::Error;

/// The longest wait for another one of us at work in the same namespace.
const PATIENCE: Duration = Duration::from_secs(20);

/// The plugin.
pub struct Vrf;

impl Plugin for Vrf {
    const NAME: &'static str = "vrf";

    type Config = Config;
    type Error = Error;

    fn trace(log: fn(std::fmt::Arguments<'_>)) {
        netlink::on_message(log);
    }

    fn add(request: &Request<Config>) -> Result<Added, Error> {
        let result = request.prev_result.clone().ok_or(Error::NoPrevResult)?;
        let wanted = request.config.wanted()?;
        let ifname = request.ifname.as_str();
        if ifname == wanted.name {
            return Err(Error::Itself(wanted.name));
        }
        let mut transaction = Transaction::new(Locked::open(request.netns.as_path(), PATIENCE)?);
        let link = require_link(&transaction, ifname)?;
        refuse_port(&transaction, &link)?;
        let choice = device::choose(&transaction, &wanted)?;
        let belongings = Belongings::of(&transaction, link)?;
        let vrf = choice.realise(&mut transaction)?;
        let table = device::require_table(&vrf, &wanted)?;
        let back = belongings.clone();
        transaction.on_failure(
            format!("take {ifname} out of VRF {}", vrf.name),
            move |container| back.go(container, Move::home()),
        );
        let into = Move {
            master: vrf.index,
            from: TABLE_MAIN,
            to: table,
        };
        belongings.go(&transaction, into)?;
        ready::wait(&transaction, &vrf, &belongings, &result)?;
        Ok(Added::new(result, transaction))
    }

    fn del(request: &DelRequest<Config>) -> Result<(), Error> {
        let Some(netns) = &request.netns else {
            return Ok(());
        };
        let container = match Locked::open(netns.as_path(), PATIENCE) {
            Ok(container) => container,
            Err(error @ (netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. })) => {
                log::info(format_args!("{error}"));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let mut errors = Vec::new();
        let vrf = vrf_of(&container, request.ifname.as_str(), &request.config.vrfname)?;
        let released = vrf.and_then(|(link, vrf)| match release(&container, link, &vrf) {
            Ok(()) => Some(vrf),
            Err(error) => {
                errors.push(error);
                None
            }
        });
        errors.extend(device::collect(&container, released.as_ref()).err());
        Error::join(errors)
    }

    fn check(request: &Request<Config>) -> Result<(), Error> {
        let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
        let wanted = request.config.wanted()?;
        let netns = netlink::Netns::open(request.netns.as_path())?;
        let container = Handle::open(&netns)?;
        let link = require_link(&container, request.ifname.as_str())?;
        check::verify(&container, &link, &wanted, result)
    }

    /// Nothing is kept outside of the container's namespace, and what is in it goes with it.
    fn gc(_: &NetworkRequest<Config>) -> Result<(), Error> {
        Ok(())
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        request.config.wanted()?;
        if Handle::host()?.knows_kind(&NewKind::Vrf { table: 1 })? {
            Ok(())
        } else {
            Err(Error::NoVrf)
        }
    }
}

fn require_link(container: &Handle, ifname: &str) -> Result<Link, Error> {
    let link = container.find_link(ifname)?;
    link.ok_or_else(|| Error::NoInterface(ifname.to_owned()))
}

fn refuse_port(container: &Handle, link: &Link) -> Result<(), Error> {
    let Some(index) = link.master else {
        return Ok(());
    };
    let master = match container.link_by_index(index) {
        Ok(master) => master.name,
        Err(_) => format!("#{index}"),
    };
    Err(Error::HasMaster {
        link: link.name.clone(),
        master,
    })
}

/// The interface and the VRF that it is in, if that is the configured one or one of ours.
fn vrf_of(
    container: &Handle,
    ifname: &str,
    configured: &str,
) -> Result<Option<(Link, Link)>, Error> {
    let Some(link) = container.find_link(ifname)? else {
        return Ok(None);
    };
    let Some(master) = link.master else {
        return Ok(None);
    };
    let vrf = match container.link_by_index(master) {
        Ok(vrf) => vrf,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let known = vrf.vrf_table().is_some() && (vrf.name == configured || device::is_marked(&vrf));
    Ok(known.then_some((link, vrf)))
}

/// Takes the interface out of the VRF. What cannot be given back to it is no reason to fail: it goes next.
fn release(container: &Handle, link: Link, vrf: &Link) -> Result<(), Error> {
    let out = Move {
        from: vrf.vrf_table().unwrap_or(TABLE_MAIN),
        ..Move::home()
    };
    let ifname = link.name.clone();
    let gone = Belongings::of(container, link).and_then(|all| all.go(container, out));
    match gone {
        Ok(()) => Ok(()),
        Err(error) => {
            log::info(format_args!("{error}"));
            match container.find_link(&ifname)? {
                Some(link) if link.master == Some(vrf.index) => Err(error),
                _ => Ok(()),
            }
        }
    }
}
