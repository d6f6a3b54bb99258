//! ADD.

use cni_types::result::{CniResult, Interface};
use interface::addressing::{self, Announcing, Dad, Settings};
use interface::{World, single};
use netlink::{Link, MacAddr};
use skel::{Added, Request, Transaction};

use crate::config::Config;
use crate::device::{self, Selector};
use crate::error::Error;
use crate::moved;

pub fn add(request: &Request<Config>) -> Result<Added, Error> {
    let selector = device::choose(&request.config)?;
    let mut transaction = Transaction::new(World::open(&request.netns)?);
    let ifname = request.ifname.as_str();
    interface::refuse_taken_name(&transaction.container, ifname)?;
    let link = match selector {
        Selector::UserSpace => None,
        _ => {
            let device = device::find(&transaction.host, &selector, ifname)?;
            Some(moved::hand_over(&mut transaction, &device, ifname)?)
        }
    };
    let result = obtain(&mut transaction, request, link.as_ref())?;
    if let Some(link) = &link {
        addressing::require_mtu(Some(link.mtu), &result)?;
        single::attach(&transaction, settings(&request.config, link), link, &result)?;
    }
    let result = describe(result, request, link.as_ref());
    Ok(Added::new(result, transaction))
}

/// Asks IPAM for addresses, if the configuration names one. The interface is in the container by then: a DHCP client asks
/// over it.
fn obtain(
    transaction: &mut Transaction<World>,
    request: &Request<Config>,
    link: Option<&Link>,
) -> Result<CniResult, Error> {
    let given = match &request.ipam {
        Some(ipam) => {
            if let Some(link) = link.filter(|_| interface::speaks_over_the_link(ipam)) {
                interface::open_for_ipam(&transaction.container, link)?;
            }
            interface::lease(transaction, ipam)?
        }
        None => CniResult::default(),
    };
    Ok(CniResult {
        dns: interface::config::dns(request.config.dns.as_ref(), given.dns),
        ..given
    })
}

/// The device is on a real segment, where anybody may hold an address.
fn settings(config: &Config, link: &Link) -> Settings {
    Settings {
        dad: config.dad.unwrap_or(Dad::Optimistic),
        accept_ra: config.accept_ra,
        // Not every driver lets a MAC address be set while the interface is up, which is the other occasion.
        announcing: Announcing::OnUp,
        link_local: link.mac.map(MacAddr::link_local),
        ..Settings::default()
    }
}

/// Lists the interface, and ties the addresses to it. A device that a program in user space drives has only a name.
fn describe(mut result: CniResult, request: &Request<Config>, link: Option<&Link>) -> CniResult {
    let mac = link.and_then(|link| link.mac);
    result.interfaces = vec![Interface {
        name: request.ifname.as_str().to_owned(),
        mac: mac.map(|mac| mac.to_string()).unwrap_or_default(),
        sandbox: request.netns.as_path().display().to_string(),
        ..Interface::default()
    }];
    for ip in &mut result.ips {
        ip.interface = Some(0);
    }
    result
}
