//! CHECK: what ADD promised, and nothing else.

use cni_types::result::{CniResult, Ip};
use ipnetwork::IpNetwork;
use netlink::{Handle, Link, Route, TABLE_MAIN};

use crate::config::Wanted;
use crate::device;
use crate::error::Error;

/// The interface is in the VRF, with its addresses, and its routes are in the VRF's table.
///
/// # Errors
/// For the first thing that is not as ADD left it.
pub fn verify(
    container: &Handle,
    link: &Link,
    wanted: &Wanted,
    result: &CniResult,
) -> Result<(), Error> {
    let name = &wanted.name;
    let lost = |what: String| Err(Error::Check(what));
    let Some(vrf) = container.find_link(name)? else {
        return lost(format!("VRF {name} is not there"));
    };
    let table = device::require_table(&vrf, wanted)?;
    if link.master != Some(vrf.index) {
        return lost(format!("interface {} is not in VRF {name}", link.name));
    }
    if !vrf.up {
        return lost(format!("VRF {name} is down"));
    }
    let ips: Vec<&Ip> = of_link(result, link).collect();
    let present = container.addresses(link)?;
    for ip in &ips {
        if !present.iter().any(|one| one.ip == ip.address) {
            return lost(format!("address {} is not on {}", ip.address, link.name));
        }
    }
    verify_routes(container, link, table, result, &ips)
}

/// The result's addresses that are the interface's. One that does not say whose it is counts.
fn of_link<'a>(result: &'a CniResult, link: &'a Link) -> impl Iterator<Item = &'a Ip> {
    let ours = |ip: &&Ip| result.interface_of(ip).is_none_or(|i| i.name == link.name);
    result.ips.iter().filter(ours)
}

/// The result's routes of the main table through routers of the interface's networks are the VRF's now. Others may be
/// another interface's.
fn verify_routes(
    container: &Handle,
    link: &Link,
    table: u32,
    result: &CniResult,
    ips: &[&Ip],
) -> Result<(), Error> {
    let in_main = |table: Option<i64>| {
        matches!(table, None | Some(0)) || table == Some(i64::from(TABLE_MAIN))
    };
    let mut present = Vec::new();
    for ipv6 in [false, true] {
        present.extend(container.routes_in(table, ipv6)?);
    }
    for route in result.routes.iter().filter(|route| in_main(route.table)) {
        let of_link =
            |gateway: &std::net::IpAddr| ips.iter().any(|ip| ip.address.contains(*gateway));
        let Some(gateway) = route.gw.filter(of_link) else {
            continue;
        };
        let leads = |one: &Route| {
            let mut hops = one.next_hops.iter();
            same_network(one.dst, route.dst)
                && hops.any(|hop| hop.oif == link.index && hop.gateway == Some(gateway))
        };
        if !present.iter().any(leads) {
            return Err(Error::Check(format!(
                "table {table} has no route to {} via {gateway} dev {}",
                route.dst, link.name
            )));
        }
    }
    Ok(())
}

fn same_network(one: IpNetwork, other: IpNetwork) -> bool {
    (one.network(), one.prefix()) == (other.network(), other.prefix())
}
