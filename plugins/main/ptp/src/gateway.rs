//! The host as the container's gateway: addresses and the container's routes.

use std::net::IpAddr;

use cni_types::result::{CniResult, Ip};
use interface::addressing;
use interface::gateway::first_address;
use ipnetwork::IpNetwork;
use netlink::{NewRoute, scope};

use crate::error::Error;

/// Gives every address a gateway: the one that IPAM says, else the first address of the subnet.
///
/// # Errors
/// [`Error::NoGateway`] if the first address is the container's own or outside the subnet,
/// [`Error::UnfitGateway`] if IPAM's is no use.
pub fn complete(result: &mut CniResult) -> Result<(), Error> {
    for ip in &mut result.ips {
        let own = ip.address.ip();
        match ip.gateway {
            Some(gateway) => require_fit(ip.address, gateway)?,
            None => {
                let first = first_address(ip.address);
                if first == own || !ip.address.contains(first) {
                    return Err(Error::NoGateway(ip.address));
                }
                ip.gateway = Some(first);
            }
        }
    }
    Ok(())
}

fn require_fit(address: IpNetwork, gateway: IpAddr) -> Result<(), Error> {
    let why = if gateway == address.ip() {
        "it is the container's own address"
    } else if gateway.is_ipv4() != address.is_ipv4() {
        "it is not of the same IP family"
    } else if gateway.is_unspecified() || gateway.is_multicast() {
        "it is nobody's address"
    } else {
        return Ok(());
    };
    Err(Error::UnfitGateway {
        address,
        gateway,
        why,
    })
}

/// The gateways, each once.
pub fn gateways(result: &CniResult) -> Vec<IpAddr> {
    let mut gateways: Vec<IpAddr> = Vec::new();
    for gateway in result.ips.iter().filter_map(|ip| ip.gateway) {
        if !gateways.contains(&gateway) {
            gateways.push(gateway);
        }
    }
    gateways
}

/// The container's routes: to each gateway over the link, through it to the rest of the subnet (nobody of which is on
/// this link), and IPAM's. In this order each finds the one it needs.
pub fn routes(result: &CniResult, oif: u32) -> Vec<NewRoute> {
    let mut routes: Vec<NewRoute> = Vec::new();
    let mut put = |route: NewRoute| {
        if !routes
            .iter()
            .any(|r| (r.dst, r.gateway) == (route.dst, route.gateway))
        {
            routes.push(route);
        }
    };
    let with_gateway = || result.ips.iter().filter_map(|ip| Some((ip, ip.gateway?)));
    for (ip, gateway) in with_gateway() {
        put(to_gateway(ip, gateway, oif));
    }
    for (ip, gateway) in with_gateway() {
        if let Some(subnet) = subnet_of(ip) {
            let route = NewRoute::new(subnet, oif).via(gateway);
            put(NewRoute {
                src: Some(ip.address.ip()),
                ..route
            });
        }
    }
    let known = gateways(result);
    for mut route in addressing::routes(result, oif) {
        // A router that IPAM takes to be on the subnet is not on this link; the host answers for nobody but itself.
        route.onlink = route
            .gateway
            .is_some_and(|gateway| !known.contains(&gateway));
        routes.push(route);
    }
    routes
}

fn to_gateway(ip: &Ip, gateway: IpAddr, oif: u32) -> NewRoute {
    NewRoute {
        src: Some(ip.address.ip()),
        scope: gateway.is_ipv4().then_some(scope::LINK),
        ..NewRoute::new(IpNetwork::from(gateway), oif)
    }
}

/// The network around an address, unless it is alone in it.
fn subnet_of(ip: &Ip) -> Option<IpNetwork> {
    let whole = if ip.address.is_ipv4() { 32 } else { 128 };
    let prefix = Some(ip.address.prefix()).filter(|prefix| *prefix < whole)?;
    IpNetwork::new(ip.address.network(), prefix).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(ips: &[(&str, Option<&str>)]) -> CniResult {
        let ips = ips.iter().map(|(address, gateway)| Ip {
            gateway: gateway.map(|text| text.parse().unwrap()),
            ..Ip::new(address.parse().unwrap())
        });
        CniResult {
            ips: ips.collect(),
            ..CniResult::default()
        }
    }

    #[test]
    fn the_first_address_is_the_gateway_where_ipam_says_nothing() {
        let mut result = result(&[("10.1.2.5/24", None), ("fd00::5/64", None)]);
        complete(&mut result).unwrap();
        let found: Vec<String> = gateways(&result).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.1.2.1", "fd00::1"]);
    }

    #[test]
    fn an_address_without_any_possible_gateway_is_refused() {
        for address in [
            "10.1.2.5/32",
            "10.1.2.1/24",
            "fd00::5/128",
            "255.255.255.255/32",
        ] {
            let refusal = complete(&mut result(&[(address, None)]));
            assert!(matches!(refusal, Err(Error::NoGateway(_))), "{address}");
        }
        for (address, gateway) in [
            ("10.1.2.5/24", "10.1.2.5"),
            ("10.1.2.5/24", "fd00::1"),
            ("10.1.2.5/24", "0.0.0.0"),
        ] {
            let refusal = complete(&mut result(&[(address, Some(gateway))]));
            assert!(
                matches!(refusal, Err(Error::UnfitGateway { .. })),
                "{gateway}"
            );
        }
    }

    #[test]
    fn addresses_of_one_subnet_share_its_routes() {
        let result = result(&[
            ("10.1.2.5/24", Some("10.1.2.1")),
            ("10.1.2.6/24", Some("10.1.2.1")),
            ("10.1.3.5/32", Some("169.254.1.1")),
        ]);
        let found: Vec<String> = routes(&result, 3)
            .iter()
            .map(|r| r.dst.to_string())
            .collect();
        assert_eq!(found, ["10.1.2.1/32", "169.254.1.1/32", "10.1.2.0/24"]);
    }
}
