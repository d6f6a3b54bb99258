//! ADD.

use std::time::{Duration, Instant};

use cni_types::result::{CniResult, Interface};
use netlink::{Errno, Link};
use skel::{Added, Request, Transaction, log};

use super::{Plan, Single, remove};
use crate::addressing::{self, Announcing, Dad, Settings};
use crate::error::Error;
use crate::world::World;
use crate::{config, lease, open_for_ipam, refuse_taken_name, speaks_over_the_link};

/// How long an address may take to be found free of duplicates.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn add<S: Single>(request: &Request<S::Config>) -> Result<Added, S::Error> {
    let ifname = request.ifname.as_str();
    let mut transaction = Transaction::new(World::open(&request.netns)?);
    refuse_taken_name(&transaction.container, ifname)?;
    let plan = S::plan(request, &transaction)?;
    let link = create::<S>(&mut transaction, ifname, &plan)?;
    let mut result = obtain::<S>(&mut transaction, request, &link)?;
    addressing::require_mtu(plan.mtu, &result)?;
    attach(&transaction, plan.settings, &link, &result).map_err(|error| match error {
        // Some drivers look only now whether an address is taken.
        Error::Netlink(error) if error.errno() == Some(Errno::EADDRINUSE) => {
            S::refusal(ifname, &plan.own, error)
        }
        other => other.into(),
    })?;
    describe::<S>(&mut result, request, &link);
    Ok(Added::new(result, transaction))
}

/// Makes the link, and reads it back.
fn create<S: Single>(
    transaction: &mut Transaction<World>,
    ifname: &str,
    plan: &Plan<S::Own>,
) -> Result<Link, S::Error> {
    let made = S::create(transaction, ifname, &plan.own);
    let taken = made.as_ref().is_err_and(netlink::Error::is_exists);
    if !taken {
        // Also if it failed: the kernel may have made it though its answer is lost.
        let name = ifname.to_owned();
        transaction.on_failure(format!("delete {ifname}"), move |world: &mut World| {
            remove::link::<S>(&world.container, &name)
        });
    }
    if let Err(error) = made {
        if taken {
            // Somebody may have taken the name a moment ago; else it is something about the kind.
            refuse_taken_name(&transaction.container, ifname)?;
        }
        return Err(S::refusal(ifname, &plan.own, error));
    }
    let link = transaction.container.link(ifname).map_err(Error::from)?;
    log::info(format_args!("{} {ifname} is made", S::KIND));
    Ok(link)
}

/// The addresses: IPAM's, or somebody else's; none without either.
fn obtain<S: Single>(
    transaction: &mut Transaction<World>,
    request: &Request<S::Config>,
    link: &Link,
) -> Result<CniResult, S::Error> {
    let found = match (S::given(request), &request.ipam) {
        (Some(given), _) => {
            addressing::require_possible(&given)?;
            given
        }
        (None, Some(ipam)) => {
            if speaks_over_the_link(ipam) {
                open_for_ipam(&transaction.container, link)?;
            }
            lease(transaction, ipam)?
        }
        (None, None) => CniResult::default(),
    };
    Ok(CniResult {
        dns: config::dns(S::dns(&request.config), found.dns),
        interfaces: Vec::new(),
        ..found
    })
}

/// Gives a link in the container its addresses, and returns when traffic flows. A link-local address is chosen if the
/// settings name none.
///
/// # Errors
/// What the kernel refuses; an address that another station holds.
pub fn attach(
    world: &World,
    mut settings: Settings,
    link: &Link,
    result: &CniResult,
) -> Result<(), Error> {
    let mac = link.mac.unwrap_or_default();
    if settings.dad == Dad::Optimistic && settings.link_local.is_none() {
        settings.link_local = Some(match settings.announcing {
            // The MAC address is somebody else's too, so the address made of it is.
            Announcing::OnUp => netlink::random_link_local()?,
            _ => mac.link_local(),
        });
    }
    let announcement = addressing::configure(&world.container, settings, link, result)?;
    if result.ips.is_empty() {
        return Ok(());
    }
    if !world.container.link_by_index(link.index)?.carrier {
        log::warn(format_args!(
            "{} has no carrier; it is not waited for traffic to flow",
            link.name
        ));
        return Ok(());
    }
    let deadline = Instant::now() + PATIENCE;
    addressing::settle(&world.container, link, result, deadline)?;
    addressing::announce(&world.container, link, mac, &announcement)
}

/// Lists the interface, and ties the addresses to it.
fn describe<S: Single>(result: &mut CniResult, request: &Request<S::Config>, link: &Link) {
    result.interfaces = vec![Interface {
        name: link.name.clone(),
        mac: link.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        sandbox: request.netns.as_path().display().to_string(),
        ..Interface::default()
    }];
    for ip in &mut result.ips {
        ip.interface = Some(0);
    }
}
