//! Chains shared by the containers of a subnet or of a bridge. Each goes again with the last element that needs it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnetwork::{IpNetwork, Ipv4Network, Ipv6Network};

use super::chain::{ChainSpec, RuleSpec};
use super::expr::{self, meta_key};
use super::matches::{self, Ip};
use super::sets::SetId;
use crate::intent::{Policy, Snat};
use crate::owner::hex_digest;

/// `masq-<subnet>`: masquerades what leaves the subnet and is no multicast. Exceptions make a chain of its own.
pub(crate) fn masquerade(source: IpNetwork, except: &[IpNetwork]) -> ChainSpec {
    let ip = Ip::of(source.ip());
    let mut except: Vec<_> = except
        .iter()
        .filter(|net| Ip::of(net.ip()) == ip)
        .map(|net| subnet(*net))
        .collect();
    except.sort_by_key(|net| (net.network(), net.prefix()));
    except.dedup();
    let mut name = format!("masq-{}", name_of(source));
    if !except.is_empty() {
        let list: Vec<_> = except.iter().map(ToString::to_string).collect();
        name = format!("{name}-{}", hex_digest(&list.join(","), 8));
    }
    let kept = [subnet(source), multicast(ip)].into_iter().chain(except);
    let mut rules: Vec<_> = kept
        .map(|net| RuleSpec::of([matches::address(ip.daddr(), net, true), vec![expr::back()]]))
        .collect();
    rules.push(RuleSpec::of([vec![expr::masquerade()]]));
    ChainSpec::regular(name, rules)
}

/// `hairpin-<subnet>`: masquerades forwarded connections that come from the subnet itself or from 127.0.0.0/8 (the kernel
/// routes nothing from ::1 elsewhere); `hairpin-all` masquerades every forwarded connection. `None` if no source is
/// rewritten.
pub(crate) fn hairpin(to: IpNetwork, snat: Snat) -> Option<ChainSpec> {
    let rule = |groups: Vec<_>| RuleSpec::of(groups.into_iter().chain([vec![expr::masquerade()]]));
    match snat {
        Snat::None => None,
        Snat::All => Some(ChainSpec::regular("hairpin-all", vec![rule(Vec::new())])),
        Snat::Hairpin => {
            let ip = Ip::of(to.ip());
            let loopback = (ip == Ip::V4).then(|| v4(Ipv4Addr::new(127, 0, 0, 0), 8));
            let sources = [subnet(to)].into_iter().chain(loopback);
            let rules = sources.map(|net| rule(vec![matches::address(ip.saddr(), net, true)]));
            Some(ChainSpec::regular(
                format!("hairpin-{}", name_of(to)),
                rules.collect(),
            ))
        }
    }
}

/// `confine-<bridge>` or `isolate-<bridge>`: what traffic from the bridge may not reach.
pub(crate) fn confine(bridge: &str, policy: Policy) -> ChainSpec {
    let (prefix, verdict) = match policy {
        Policy::SameBridge => ("confine", expr::back()),
        Policy::Isolated => ("isolate", expr::drop()),
    };
    ChainSpec::regular(
        format!("{prefix}-{bridge}"),
        vec![
            RuleSpec::of([
                matches::interface(meta_key::OIFNAME, bridge, true),
                vec![verdict],
            ]),
            RuleSpec::of([
                matches::interface_in(meta_key::OIFNAME, SetId::Policed.name()),
                vec![expr::drop()],
            ]),
        ],
    )
}

/// The network of an address with prefix, host bits cleared.
fn subnet(net: IpNetwork) -> IpNetwork {
    IpNetwork::new(net.network(), net.prefix()).unwrap_or(net)
}

/// A subnet inside a chain's name: `nft` takes no colon there.
fn name_of(net: IpNetwork) -> String {
    subnet(net).to_string().replace(':', "_")
}

fn multicast(ip: Ip) -> IpNetwork {
    match ip {
        Ip::V4 => v4(Ipv4Addr::new(224, 0, 0, 0), 4),
        Ip::V6 => v6(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
    }
}

fn v4(address: Ipv4Addr, prefix: u8) -> IpNetwork {
    Ipv4Network::new(address, prefix).map_or(IpNetwork::from(IpAddr::V4(address)), IpNetwork::V4)
}

fn v6(address: Ipv6Addr, prefix: u8) -> IpNetwork {
    Ipv6Network::new(address, prefix).map_or(IpNetwork::from(IpAddr::V6(address)), IpNetwork::V6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn net(text: &str) -> IpNetwork {
        text.parse().unwrap()
    }

    #[test]
    fn names_tell_the_subnet() {
        assert_eq!(masquerade(net("10.1.2.3/24"), &[]).name, "masq-10.1.2.0/24");
        assert_eq!(
            masquerade(net("fd00:1::3/64"), &[]).name,
            "masq-fd00_1__/64"
        );
        assert_eq!(
            hairpin(net("10.1.2.3/24"), Snat::Hairpin).unwrap().name,
            "hairpin-10.1.2.0/24"
        );
        assert_eq!(
            hairpin(net("10.1.2.3/24"), Snat::All).unwrap().name,
            "hairpin-all"
        );
        assert!(hairpin(net("10.1.2.3/24"), Snat::None).is_none());
    }

    #[test]
    fn exceptions_make_another_chain_whatever_their_order() {
        let one = masquerade(
            net("10.1.2.3/24"),
            &[net("10.9.0.0/16"), net("10.8.0.1/16"), net("fd00::/8")],
        );
        let two = masquerade(
            net("10.1.2.4/24"),
            &[net("10.8.0.0/16"), net("10.9.0.0/16")],
        );
        assert_eq!(one.name, two.name);
        assert_eq!(one.rules.len(), 5);
        assert_ne!(one.name, masquerade(net("10.1.2.4/24"), &[]).name);
    }
}
