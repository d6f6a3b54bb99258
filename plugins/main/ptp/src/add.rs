//! ADD.

use std::time::{Duration, Instant};

use cni_types::result::{CniResult, Interface};
use interface::{World, addressing, forwarding, masquerade, owner, pair};
use ipnetwork::IpNetwork;
use netlink::{NewVeth, Veth, VethEnd};
use skel::{Added, Request, Transaction, log};

use crate::config::Config;
use crate::error::Error;
use crate::{gateway, host};

/// How long the pair may take to carry packets.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn add(request: &Request<Config>) -> Result<Added, Error> {
    let config = &request.config;
    config.validate()?;
    let backend = config.masquerade_backend()?;
    let owner = owner(request);
    let mut transaction = Transaction::new(World::open(&request.netns)?);
    interface::refuse_taken_name(&transaction.container, request.ifname.as_str())?;

    let over_the_link = request
        .ipam
        .as_ref()
        .filter(|ipam| interface::speaks_over_the_link(ipam));
    let known = match over_the_link {
        Some(_) => None,
        None => Some(obtain(&mut transaction, request)?),
    };
    let pair = NewVeth {
        mtu: config.mtu()?,
        ..NewVeth::new(&owner.ifname)?
    };
    let veth = pair::create(&mut transaction, pair, &owner)?;
    host::set_up(&transaction, &veth.host, &owner, known.as_ref())?;
    log::info(format_args!("the host's end is {}", veth.host.name));
    let mut result = match known {
        Some(result) => result,
        None => {
            interface::open_for_ipam(&transaction.container, &veth.container)?;
            obtain(&mut transaction, request)?
        }
    };

    let settings = addressing::Settings {
        accept_ra: config.accept_ra,
        only_what_is_given: true,
        no_prefix_route: true,
        // The one at the other end is new itself and knows nobody yet.
        announcing: addressing::Announcing::Never,
        ..addressing::Settings::default()
    };
    configure(&transaction, settings, &veth, &result)?;
    let addresses: Vec<IpNetwork> = result.ips.iter().map(|ip| ip.address).collect();
    forwarding::enable(&transaction.host, &addresses)?;
    host::connect(&mut transaction, &veth.host, &owner, &result)?;
    if config.ip_masq {
        masquerade::apply(&mut transaction, backend, &owner, &result)?;
    }
    settle(&transaction, &veth, &result)?;
    describe(&mut result, request, &veth);
    Ok(Added::new(result, transaction))
}

/// Asks IPAM for addresses, if the configuration names one, and refuses what cannot work.
fn obtain(
    transaction: &mut Transaction<World>,
    request: &Request<Config>,
) -> Result<CniResult, Error> {
    let mut result = match &request.ipam {
        Some(ipam) => interface::lease(transaction, ipam)?,
        None => CniResult::default(),
    };
    result.dns = interface::config::dns(request.config.dns.as_ref(), result.dns);
    addressing::require_mtu(request.config.mtu()?, &result)?;
    gateway::complete(&mut result)?;
    let addresses = result.ips.iter().map(|ip| ip.address);
    host::require_ipv6(request.network.as_str(), addresses)?;
    Ok(result)
}

/// Gives the container's end its addresses and routes.
fn configure(
    world: &World,
    settings: addressing::Settings,
    veth: &Veth,
    result: &CniResult,
) -> Result<(), Error> {
    let addresses = CniResult {
        routes: Vec::new(),
        ..result.clone()
    };
    addressing::configure(&world.container, settings, &veth.container, &addresses)?;
    for route in gateway::routes(result, veth.container.index) {
        match world.container.add_route(&route) {
            // The kernel says so only of a route that is the same in every part.
            Err(error) if error.is_exists() => log::info(format_args!("{error}")),
            other => other?,
        }
    }
    Ok(())
}

/// Waits until traffic flows.
fn settle(world: &World, veth: &Veth, result: &CniResult) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    world.host.wait_running(&veth.host, deadline)?;
    addressing::settle(&world.container, &veth.container, result, deadline)?;
    let gateways = gateway::gateways(result);
    if gateways.iter().any(|gateway| gateway.is_ipv6()) {
        let ours = |address: &netlink::Address| gateways.contains(&address.ip.ip());
        world.host.wait_settled(&veth.host, ours, deadline)?;
    }
    Ok(())
}

/// Lists the interfaces, and ties the addresses to the container's.
fn describe(result: &mut CniResult, request: &Request<Config>, veth: &Veth) {
    let end = |end: &VethEnd| Interface {
        name: end.name.clone(),
        mac: end.mac.to_string(),
        ..Interface::default()
    };
    result.interfaces = vec![
        end(&veth.host),
        Interface {
            sandbox: request.netns.as_path().display().to_string(),
            ..end(&veth.container)
        },
    ];
    for ip in &mut result.ips {
        ip.interface = Some(1);
    }
}
