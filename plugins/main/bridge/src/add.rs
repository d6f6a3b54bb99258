//! ADD.

use std::time::{Duration, Instant};

use cni_types::result::{CniResult, Interface};
use interface::addressing::Dad;
use interface::{addressing, forwarding, masquerade, owner};
use netfilter::Owner;
use netlink::{Link, MacAddr, Veth};
use skel::{Added, Request, Transaction, log};

use crate::config::{Config, PortVlans};
use crate::error::Error;
use crate::world::World;
use crate::{bridging, gateway, port, vlan};

/// How long a port may take to forward, and an address to be found free of duplicates.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn add(request: &Request<Config>) -> Result<Added, Error> {
    let config = &request.config;
    config.validate(request.ipam.is_some())?;
    let vlans = config.vlans()?;
    let mac = config.mac(&request.args)?;
    let owner = owner(request);
    let mut transaction = Transaction::new(World::open(&request.netns)?);
    interface::refuse_taken_name(&transaction.container, request.ifname.as_str())?;

    let over_the_link = request
        .ipam
        .as_ref()
        .filter(|ipam| interface::speaks_over_the_link(ipam));
    let known = match over_the_link {
        Some(_) => None,
        None => Some(lease(&mut transaction, request)?),
    };
    let (bridge, veth) = attach(
        &mut transaction,
        config,
        &owner,
        &vlans,
        mac,
        known.as_ref(),
    )?;
    port::set_up(&mut transaction, config, &vlans, &bridge, &owner, &veth)?;
    log::info(format_args!(
        "{} is a port of {}",
        veth.host.name, bridge.name
    ));
    let mut result = match known {
        Some(result) => result,
        None => lease_over(&mut transaction, request, &vlans, &bridge, &veth)?,
    };

    let announcement = if config.disable_container_interface {
        addressing::Announcement::default()
    } else {
        let settings = addressing::Settings {
            dad: if config.enabledad {
                Dad::Wait
            } else {
                Dad::Off
            },
            accept_ra: config.accept_ra,
            only_what_is_given: true,
            ..addressing::Settings::default()
        };
        addressing::configure(&transaction.container, settings, &veth.container, &result)?
    };
    let vlan_gateway = match vlans.access {
        Some(vid) => provide_vlan_gateway(&mut transaction, config, &bridge, &vlans, vid, &result)?,
        None => None,
    };
    if config.ip_masq {
        let backend = config.masquerade_backend()?;
        masquerade::apply(&mut transaction, backend, &owner, &result)?;
    }
    if !config.disable_container_interface {
        let gateway = vlan_gateway.as_ref().unwrap_or(&bridge);
        settle(&transaction, &bridge, &veth, gateway, &result)?;
        let end = &veth.container;
        addressing::announce(&transaction.container, end, end.mac, &announcement)?;
    }
    describe(&mut result, request, &bridge, &veth, vlan_gateway);
    Ok(Added::new(result, transaction))
}

/// Makes the pair with one end on the bridge. The bridge may go away in between, when an ADD that made it
/// fails and takes it back; then it is made anew.
fn attach(
    transaction: &mut Transaction<World>,
    config: &Config,
    owner: &Owner,
    vlans: &PortVlans,
    mac: Option<MacAddr>,
    known: Option<&CniResult>,
) -> Result<(Link, Veth), Error> {
    let mut attempt = 1;
    loop {
        let bridge = bridging::ensure(transaction, config, vlans)?;
        // The bridge is made ready first: a port that has to go again could change its MAC address.
        let joined = match known.filter(|_| vlans.access.is_none()) {
            None => Ok(()),
            Some(result) => provide_gateway(transaction, config, &bridge, result),
        }
        .and_then(|()| port::create(transaction, config, &bridge, owner, mac));
        match joined {
            Ok(veth) => return Ok((bridge, veth)),
            Err(Error::Netlink(error)) => {
                let there = transaction.host.find_link(&bridge.name)?;
                let same = there.is_some_and(|link| link.index == bridge.index);
                if same || attempt == bridging::ATTEMPTS {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error),
        }
        attempt += 1;
    }
}

/// Asks an IPAM that speaks over the link, when the port forwards.
fn lease_over(
    transaction: &mut Transaction<World>,
    request: &Request<Config>,
    vlans: &PortVlans,
    bridge: &Link,
    veth: &Veth,
) -> Result<CniResult, Error> {
    interface::open_for_ipam(&transaction.container, &veth.container)?;
    transaction
        .host
        .wait_running(&veth.host, Instant::now() + PATIENCE)?;
    let result = lease(transaction, request)?;
    if vlans.access.is_none() {
        provide_gateway(transaction, &request.config, bridge, &result)?;
    }
    Ok(result)
}

/// Asks IPAM for addresses, if the configuration names one, and completes them by what it says about gateways.
fn lease(
    transaction: &mut Transaction<World>,
    request: &Request<Config>,
) -> Result<CniResult, Error> {
    let Some(ipam) = &request.ipam else {
        let dns = request.config.dns(Default::default());
        return Ok(CniResult {
            dns,
            ..CniResult::default()
        });
    };
    let given = interface::lease(transaction, ipam)?;
    addressing::require_mtu(request.config.mtu(), &given)?;
    if request.config.gateway() {
        gateway::require_ipv6(
            request.network.as_str(),
            request.config.bridge_name()?,
            &given,
        )?;
    }
    let mut result = CniResult {
        dns: request.config.dns(given.dns),
        ..given
    };
    gateway::complete(&request.config, &mut result);
    Ok(result)
}

/// Gives the bridge the gateway addresses, and forwards for them.
fn provide_gateway(
    transaction: &mut Transaction<World>,
    config: &Config,
    bridge: &Link,
    result: &CniResult,
) -> Result<(), Error> {
    let wanted = gateway::addresses(result);
    if !config.gateway() || wanted.is_empty() {
        return Ok(());
    }
    if gateway::put_addresses(transaction, config, bridge, bridge.index, &wanted)? {
        gateway::pin_mac(&transaction.host, bridge)?;
    }
    Ok(forwarding::enable(&transaction.host, &wanted)?)
}

/// Gives the gateway interface of the VLAN, made if it is not there, the gateway addresses, and forwards for
/// them. The container's port is in the VLAN by now, so no DEL takes the interface for unused.
fn provide_vlan_gateway(
    transaction: &mut Transaction<World>,
    config: &Config,
    bridge: &Link,
    vlans: &PortVlans,
    vid: u16,
    result: &CniResult,
) -> Result<Option<Link>, Error> {
    let wanted = gateway::addresses(result);
    if !config.gateway() || wanted.is_empty() {
        return Ok(None);
    }
    let gateway = vlan::ensure_gateway(transaction, bridge, vlans, vid)?;
    gateway::put_addresses(transaction, config, &gateway, bridge.index, &wanted)?;
    forwarding::enable(&transaction.host, &wanted)?;
    Ok(Some(gateway))
}

/// Waits until traffic flows.
fn settle(
    world: &World,
    bridge: &Link,
    veth: &Veth,
    gateway: &Link,
    result: &CniResult,
) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    world.host.wait_running(&veth.host, deadline)?;
    // A bridge or gateway interface made just now drops what the host sends until its carrier is noticed. With a
    // spanning tree there is none before the forward delay is over, which is not ours to wait for. One that was
    // made before and had its carrier then gets no further notice, so its state may stay "unknown".
    let gateway_is_new = world.own.bridge_is_new || gateway.index != bridge.index;
    if !bridge.stp && (gateway_is_new || !gateway.carrier) {
        world.host.wait_running(gateway, deadline)?;
    }
    // The gateway's addresses need the same moment as the container's.
    addressing::settle(&world.container, &veth.container, result, deadline)?;
    if result.ips.iter().any(|ip| ip.address.is_ipv6()) {
        let gateways = gateway::addresses(result);
        let ours = |address: &netlink::Address| gateways.contains(&address.ip);
        world.host.wait_settled(gateway, ours, deadline)?;
    }
    Ok(())
}

/// Lists the interfaces, and ties the addresses to the container's.
fn describe(
    result: &mut CniResult,
    request: &Request<Config>,
    bridge: &Link,
    veth: &Veth,
    vlan_gateway: Option<Link>,
) {
    let on_host = |link: &Link| Interface {
        name: link.name.clone(),
        mac: link.mac.map(|mac| mac.to_string()).unwrap_or_default(),
        ..Interface::default()
    };
    let end = |end: &netlink::VethEnd| Interface {
        name: end.name.clone(),
        mac: end.mac.to_string(),
        ..Interface::default()
    };
    result.interfaces = vec![
        on_host(bridge),
        end(&veth.host),
        Interface {
            sandbox: request.netns.as_path().display().to_string(),
            ..end(&veth.container)
        },
    ];
    result.interfaces.extend(vlan_gateway.as_ref().map(on_host));
    for ip in &mut result.ips {
        ip.interface = Some(2);
    }
}
