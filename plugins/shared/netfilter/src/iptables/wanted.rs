//! Intents, sorted by family and checked.

use std::net::IpAddr;

use super::family::Family;
use super::{admit, masquerade, publish, tool, variant::Variant};
use crate::error::{Error, Result};
use crate::{Intent, MarkStyle, Owner, Policy};

/// Longest chain name iptables takes, in bytes.
const CHAIN_LIMIT: usize = 28;
/// Longest word `iptables-restore` takes, in bytes.
const WORD_LIMIT: usize = 1000;

/// What one family's tables must hold.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The family.
    pub(crate) family: Family,
    /// Addresses to masquerade.
    pub(crate) masquerade: Vec<masquerade::Wanted>,
    /// Ports to publish.
    pub(crate) publish: Vec<publish::Wanted>,
    /// Addresses to admit.
    pub(crate) admit: Vec<admit::Wanted>,
    /// Bridges to confine.
    pub(crate) confine: Vec<(String, Policy)>,
}

/// Sorts the intents by family; families for which there is nothing to do are left out.
pub(crate) fn sort(owner: &Owner, intents: &[Intent]) -> Result<Vec<Wanted>> {
    for (what, text) in [
        ("network", &owner.network),
        ("container id", &owner.container_id),
        ("ifname", &owner.ifname),
    ] {
        word(what, text)?;
    }
    let [mut v4, mut v6] = Family::ALL.map(Wanted::none);
    for intent in intents {
        add(intent, &mut v4, &mut v6)?;
    }
    confine(intents, &mut v4, &mut v6)?;
    Ok([v4, v6]
        .into_iter()
        .filter(|wanted| !wanted.is_empty())
        .collect())
}

fn add(intent: &Intent, v4: &mut Wanted, v6: &mut Wanted) -> Result<()> {
    let of = |address: IpAddr| if address.is_ipv4() { v4 } else { v6 };
    match intent {
        Intent::Masquerade { source, except } => {
            let same = |network: &&ipnetwork::IpNetwork| network.is_ipv4() == source.is_ipv4();
            let except = except.iter().filter(same).copied().collect();
            of(source.ip()).masquerade.push(masquerade::Wanted {
                source: *source,
                except,
            });
        }
        Intent::Publish {
            host_ip,
            host_port,
            protocol,
            to,
            to_port,
            snat,
            conditions,
            mark,
        } => {
            conditions
                .iter()
                .try_for_each(|condition| word("condition", condition))?;
            check_mark(mark)?;
            of(to.ip()).publish.push(publish::Wanted {
                host_ip: *host_ip,
                host_port: *host_port,
                protocol: *protocol,
                to: *to,
                to_port: *to_port,
                snat: *snat,
                conditions: conditions.clone(),
                mark: mark.clone(),
            });
        }
        Intent::Admit {
            address,
            admin_chain,
            ..
        } => {
            chain("admin chain", admin_chain)?;
            of(*address).admit.push(admit::Wanted {
                address: *address,
                admin_chain: admin_chain.clone(),
            });
        }
        Intent::Confine { bridge, .. } => word("bridge", bridge)?,
        Intent::GuardMac { .. } => {
            return Err(Error::Unavailable {
                what: "MAC spoof protection with iptables".to_owned(),
                reason: "iptables sees no frames; the nftables backend does".to_owned(),
            });
        }
    }
    Ok(())
}

/// A bridge is confined in the families of the addresses admitted with it; without any, in all the host has.
fn confine(intents: &[Intent], v4: &mut Wanted, v6: &mut Wanted) -> Result<()> {
    let any_admitted = !v4.admit.is_empty() || !v6.admit.is_empty();
    for wanted in [v4, v6] {
        let here = match any_admitted {
            true => !wanted.admit.is_empty(),
            false => wanted.family == Family::V4 || has_ipv6(),
        };
        if !here {
            continue;
        }
        wanted
            .confine
            .extend(intents.iter().filter_map(|intent| match intent {
                Intent::Confine { bridge, policy, .. } => Some((bridge.clone(), *policy)),
                _ => None,
            }));
    }
    Ok(())
}

fn has_ipv6() -> bool {
    let tool = |variant| tool::find(variant, Family::V6, tool::Purpose::Restore).is_some();
    std::path::Path::new("/proc/thread-self/net/if_inet6").exists()
        && (tool(Variant::Nft) || tool(Variant::Legacy))
}

impl Wanted {
    fn none(family: Family) -> Self {
        Self {
            family,
            masquerade: Vec::new(),
            publish: Vec::new(),
            admit: Vec::new(),
            confine: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.masquerade.is_empty()
            && self.publish.is_empty()
            && self.admit.is_empty()
            && self.confine.is_empty()
    }
}

fn check_mark(mark: &MarkStyle) -> Result<()> {
    match mark {
        MarkStyle::Bit(bit) if *bit > 31 => {
            Err(invalid("mark bit", &bit.to_string(), "it must be 0 to 31"))
        }
        MarkStyle::Bit(_) => Ok(()),
        MarkStyle::Chain(name) => chain("mark chain", name),
    }
}

/// The name of a chain that iptables can make.
fn chain(what: &str, name: &str) -> Result<()> {
    let plain = name.bytes().all(|byte| byte.is_ascii_graphic());
    if !plain
        || name.is_empty()
        || name.len() > CHAIN_LIMIT
        || name.starts_with(['-', '!', ':', '*', '#'])
    {
        return Err(invalid(
            what,
            name,
            "a chain's name has 1 to 28 printable characters and begins with a letter",
        ));
    }
    Ok(())
}

/// A word that a line of `iptables-restore`'s input can hold.
fn word(what: &str, text: &str) -> Result<()> {
    if text.chars().any(char::is_control) || text.len() > WORD_LIMIT {
        return Err(invalid(
            what,
            text,
            "it must be a single line of at most 1000 bytes",
        ));
    }
    Ok(())
}

fn invalid(what: &str, value: &str, reason: &str) -> Error {
    Error::Invalid {
        what: format!("{what} {value:?}"),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner {
            network: "n".into(),
            container_id: "c".into(),
            ifname: "eth0".into(),
        }
    }

    fn admit(address: &str, admin_chain: &str) -> Intent {
        Intent::Admit {
            address: address.parse().unwrap(),
            admin_chain: admin_chain.into(),
            zone: None,
        }
    }

    #[test]
    fn intents_go_to_their_family() {
        let confine = Intent::Confine {
            bridge: "br0".into(),
            port: None,
            policy: Policy::SameBridge,
        };
        let sorted = sort(&owner(), &[admit("10.0.0.1", "CNI-ADMIN"), confine]).unwrap();
        assert_eq!(sorted.len(), 1);
        assert_eq!((sorted[0].family, sorted[0].confine.len()), (Family::V4, 1));
        assert!(sort(&owner(), &[]).unwrap().is_empty());
    }

    #[test]
    fn what_could_forge_rules_is_refused() {
        for chain in ["", "a b", "a\nb", "-A", &"x".repeat(29)] {
            let refused = sort(&owner(), &[admit("10.0.0.1", chain)]);
            assert!(matches!(refused, Err(Error::Invalid { .. })), "{chain:?}");
        }
        let forged = Owner {
            network: "n\n-A INPUT -j ACCEPT".into(),
            ..owner()
        };
        assert!(matches!(sort(&forged, &[]), Err(Error::Invalid { .. })));
    }
}
