//! DEL and GC.

use cni_types::NetnsPath;
use cni_types::conf::ValidAttachments;
use netlink::{Handle, Link, LinkChange, MacAddr, Netns};
use skel::{DelRequest, NetworkRequest, log};

use crate::config::Config;
use crate::device::{self, Selector};
use crate::error::Error;
use crate::home;

/// What became of the interface in the container.
enum Found {
    /// It is given back.
    Back,
    /// The container has none of ours.
    Nothing,
    /// There is no container any more.
    NoContainer,
}

/// Releases the addresses and gives the interface back. IPAM comes first: a DHCP client says goodbye over the interface.
pub fn del(request: &DelRequest<Config>) -> Result<(), Error> {
    let mut errors = Vec::new();
    if let Some(ipam) = &request.ipam {
        let released = ipam.del().map_err(interface::Error::from);
        errors.extend(released.err().map(Error::from));
    }
    errors.extend(give_back(request).err());
    Error::join(errors)
}

fn give_back(request: &DelRequest<Config>) -> Result<(), Error> {
    // A device that has gone from sysfs is still known by its alias.
    let selector = device::choose(&request.config).ok();
    if selector == Some(Selector::UserSpace) {
        return Ok(());
    }
    let found = match &request.netns {
        Some(netns) => take_back(netns, request)?,
        None => Found::NoContainer,
    };
    let is_dead = match found {
        Found::Back => return Ok(()),
        Found::Nothing => false,
        Found::NoContainer => true,
    };
    let by_mac = promised_mac(request).map(Selector::Mac);
    for selector in [selector, by_mac].iter().flatten() {
        rename_back(selector, request.ifname.as_str(), is_dead)?;
    }
    Ok(())
}

/// Takes the interface back from the container.
fn take_back(netns: &NetnsPath, request: &DelRequest<Config>) -> Result<Found, Error> {
    let netns = match Netns::open(netns.as_path()) {
        Ok(netns) => netns,
        // An empty file is what remains of a name after its unmounting.
        Err(error @ (netlink::Error::NetnsGone { .. } | netlink::Error::NotNetns { .. })) => {
            log::info(format_args!("{error}"));
            return Ok(Found::NoContainer);
        }
        Err(error) => return Err(error.into()),
    };
    let container = Handle::open(&netns)?;
    let Some((link, name)) = find_inside(&container, request)? else {
        return Ok(Found::Nothing);
    };
    let host = Handle::host()?;
    let taken = |link: &Link| Error::NameTaken {
        ifname: link.name.clone(),
        name: name.clone(),
    };
    // Found out before the interface loses anything.
    if host.find_link(&name)?.is_some() {
        return gone_or(&container, &link, taken(&link));
    }
    let change = LinkChange::new()
        .netns(&Netns::current()?)
        .name(&name)
        .alias("")
        .up(false);
    match container.change_link(&link, &change) {
        Ok(()) => {
            log::info(format_args!("{} is {name} on the host again", link.name));
            Ok(Found::Back)
        }
        // It went with its hardware, or by another DEL, in between.
        Err(error) if error.is_not_found() => gone_or(&container, &link, error.into()),
        Err(error) if error.is_exists() => gone_or(&container, &link, taken(&link)),
        Err(error) => Err(error.into()),
    }
}

/// The error, unless the interface has left the container in the meantime: then it was another DEL that gave it its name.
fn gone_or(container: &Handle, link: &Link, error: Error) -> Result<Found, Error> {
    match container.find_link(&link.name)? {
        None => Ok(Found::Nothing),
        Some(_) => Err(error),
    }
}

/// The interface in the container and its name on the host. The workload may have renamed it, or put something else in
/// its place, which is not ours to move.
fn find_inside(
    container: &Handle,
    request: &DelRequest<Config>,
) -> Result<Option<(Link, String)>, Error> {
    let ifname = request.ifname.as_str();
    let config = &request.config;
    let macs = [promised_mac(request), config.hwaddr.parse().ok()];
    let links = container.links()?;
    let named = links.iter().find(|link| link.name == ifname);
    let others = links.iter().filter(|link| {
        home::of(link) == Some(config.device.as_str())
            || link.alt_names.contains(&config.device)
            || (link.mac.is_some() && macs.contains(&link.mac))
    });
    for link in named.into_iter().chain(others) {
        if let Some(name) = home::of(link) {
            return Ok(Some((link.clone(), name.to_owned())));
        }
    }
    let Some(link) = named else {
        return Ok(None);
    };
    let is_known = link.mac.is_some() && macs.contains(&link.mac);
    if link.loopback || !(is_known || link.kind.is_none()) {
        log::warn(format_args!(
            "{ifname} has no alias that names an interface of the host; left alone"
        ));
        return Ok(None);
    }
    // Somebody has changed the alias.
    let is_name = netlink::check_name(&config.device).is_ok();
    let name = match is_name && !link.alt_names.contains(&config.device) {
        true => &config.device,
        false => &link.name,
    };
    Ok(Some((link.clone(), name.clone())))
}

fn promised_mac(request: &DelRequest<Config>) -> Option<MacAddr> {
    let result = request.prev_result.as_ref()?;
    let promised = interface::verify::promised(result, request.ifname.as_str()).ok()?;
    promised.mac.parse().ok()
}

/// Gives an interface that came back from a dead container by itself its name.
fn rename_back(selector: &Selector, ifname: &str, is_dead: bool) -> Result<(), Error> {
    let host = Handle::host()?;
    let device = match device::find(&host, selector, ifname) {
        Ok(device) => device,
        Err(Error::Netlink(error)) => return Err(error.into()),
        // There is none on the host, so nothing has to be done.
        Err(_) => return Ok(()),
    };
    let link = &device.link;
    if device.home != link.name {
        home::restore(&host, link, &device.home);
        return Ok(());
    }
    let is_as_asked = matches!(selector, Selector::Name(name) if *name == link.name);
    if is_dead
        && !is_as_asked
        && !link.up
        && link.name == ifname
        && let Some(name) = home::lost(&host, link)?
    {
        home::restore(&host, link, &name);
    }
    Ok(())
}

/// An interface that is on the host is in no container, whatever is valid: it gets its name back.
pub fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
    let mut errors = Vec::new();
    if let Some(ipam) = &request.ipam {
        let collected = ipam.gc().map_err(interface::Error::from);
        errors.extend(collected.err().map(Error::from));
    }
    if matches!(request.valid, ValidAttachments::List(_))
        && let Ok(selector) = device::choose(&request.config)
    {
        errors.extend(rename_back(&selector, "", false).err());
    }
    Error::join(errors)
}
