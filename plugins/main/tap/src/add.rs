//! ADD.

use cni_types::result::{CniResult, Interface};
use interface::{addressing, owner};
use netlink::{Handle, Link, LinkChange, MacAddr};
use skel::{Added, Request, Transaction};

use crate::config::Config;
use crate::error::Error;
use crate::selinux;

type World = interface::World;

pub fn add(request: &Request<Config>) -> Result<Added, Error> {
    let config = &request.config;
    config.validate()?;
    let mac = config.mac(&request.args)?;
    let mut transaction = Transaction::new(World::open(&request.netns)?);
    interface::refuse_taken_name(&transaction.container, request.ifname.as_str())?;
    let bridge = find_bridge(&transaction.container, config)?;

    let mut result = lease(&mut transaction, request)?;
    let (link, mac) = create(&mut transaction, request, bridge.as_ref(), mac)?;
    // Nobody is at the other end yet, so there is nobody to ask for duplicates or to tell, and nothing to wait for.
    let settings = addressing::Settings {
        accept_ra: config.accept_ra,
        announcing: addressing::Announcing::OnUp,
        ..addressing::Settings::default()
    };
    addressing::configure(&transaction.container, settings, &link, &result)?;
    result.interfaces = vec![Interface {
        name: link.name,
        mac: mac.map(|mac| mac.to_string()).unwrap_or_default(),
        sandbox: request.netns.as_path().display().to_string(),
        ..Interface::default()
    }];
    for ip in &mut result.ips {
        ip.interface = Some(0);
    }
    Ok(Added::new(result, transaction))
}

/// The bridge in the container that the configuration names.
pub fn find_bridge(container: &Handle, config: &Config) -> Result<Option<Link>, Error> {
    if config.bridge.is_empty() {
        return Ok(None);
    }
    match container.find_link(&config.bridge)? {
        Some(link) if link.is_bridge() => Ok(Some(link)),
        Some(link) => Err(Error::NotABridge {
            kind: link.kind.unwrap_or_else(|| "no virtual link".to_owned()),
            name: link.name,
        }),
        None => Err(Error::NoBridge(config.bridge.clone())),
    }
}

/// Asks IPAM for addresses, if the configuration names one.
fn lease(
    transaction: &mut Transaction<World>,
    request: &Request<Config>,
) -> Result<CniResult, Error> {
    let given = match &request.ipam {
        Some(ipam) => interface::lease(transaction, ipam)?,
        None => CniResult::default(),
    };
    addressing::require_mtu(request.config.mtu()?, &given)?;
    Ok(CniResult {
        dns: request.config.dns(given.dns),
        ..given
    })
}

/// Makes the tap under its own name and with all of its settings. It stays only from then on: whatever happens before,
/// the kernel takes it away with the file that it was made through.
fn create(
    transaction: &mut Transaction<World>,
    request: &Request<Config>,
    bridge: Option<&Link>,
    mac: Option<MacAddr>,
) -> Result<(Link, Option<MacAddr>), Error> {
    let config = &request.config;
    let container = &transaction.container;
    let tap = selinux::under(&config.selinux_context, || {
        container.create_tap(&config.tap(&request.ifname))
    })?
    .map_err(|error| match error.is_exists() {
        true => interface::Error::Exists(request.ifname.as_str().to_owned()).into(),
        false => Error::Netlink(error),
    })?;
    let link = container.link(tap.name())?;
    let mut change = LinkChange::new().alias(owner(request).comment());
    if let Some(mac) = mac {
        change = change.mac(mac);
    }
    if let Some(mtu) = config.mtu()? {
        change = change.mtu(mtu);
    }
    container.change_link(&link, &change)?;
    if let Some(bridge) = bridge {
        container.change_link(&link, &LinkChange::new().master(bridge.index))?;
    }
    let index = link.index;
    transaction.on_failure(format!("delete {}", link.name), move |world: &mut World| {
        world.container.remove_link(&index)
    });
    tap.persist()?;
    let mac = mac.or(link.mac);
    Ok((link, mac))
}
