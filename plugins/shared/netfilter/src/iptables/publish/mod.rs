//! Published ports: what one container's chain holds, and how it is reached.

mod rules;

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use rules::{entry_rules, host_jump, mark_rules, port_rules, same_entry};

use crate::error::{Error, Result};
use crate::iptables::claims::{self, Claim};
use crate::iptables::names::{self, HOSTPORT_DNAT, HOSTPORT_MASQ, HOSTPORT_SETMARK};
use crate::iptables::plan::{Place, Plan};
use crate::iptables::rule::Rule;
use crate::iptables::script::NAT;
use crate::{ApplyOptions, MarkStyle, Owner, Protocol, Snat};

/// Ports that one entry rule can list.
const PORTS_PER_RULE: usize = 15;
/// Bit of the firewall mark for hairpin connections, unless the configuration names another.
const DEFAULT_MARK_BIT: u8 = 13;

/// One port to publish in one family.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The host address, `None` for all.
    pub(crate) host_ip: Option<IpAddr>,
    /// The port on the host.
    pub(crate) host_port: u16,
    /// Its protocol.
    pub(crate) protocol: Protocol,
    /// The container's address with its prefix length.
    pub(crate) to: IpNetwork,
    /// The port in the container.
    pub(crate) to_port: u16,
    /// Which sources are rewritten.
    pub(crate) snat: Snat,
    /// Further words of the entry rules.
    pub(crate) conditions: Vec<String>,
    /// How packets to masquerade are marked.
    pub(crate) mark: MarkStyle,
}

impl Wanted {
    /// The single host address the rules ask for. An unspecified one stands for all.
    fn exact_host(&self) -> Option<IpAddr> {
        self.host_ip.filter(|ip| !ip.is_unspecified())
    }

    /// Whether the port can be forwarded in this family. A host address of the other one names the port in the
    /// entry rule, as in the reference set, and nothing more.
    fn applies(&self) -> bool {
        self.host_ip
            .is_none_or(|ip| ip.is_ipv4() == self.to.is_ipv4())
    }

    /// What the port claims of the host.
    pub(crate) fn claim(&self) -> Claim {
        Claim {
            host_ip: self.exact_host(),
            port: self.host_port,
            protocol: self.protocol.name().to_owned(),
        }
    }
}

/// Adds what is wanted for the owner. `connmark`: whether the kernel can set connection marks.
pub(crate) fn apply(
    plan: &mut Plan<'_, '_>,
    owner: &Owner,
    wanted: &[Wanted],
    options: &ApplyOptions<'_>,
    connmark: bool,
) -> Result<()> {
    unrepeated(wanted)?;
    claims::take(plan, owner, wanted, options)?;
    let set_mark = masquerading(plan, wanted)?;
    plan.ensure_chain(NAT, HOSTPORT_DNAT)?;
    for chain in ["PREROUTING", "OUTPUT"] {
        plan.ensure_rule(NAT, chain, Place::Last, host_jump(), |rule| {
            rule.jumps_to(HOSTPORT_DNAT)
        })?;
    }
    container_chain(plan, owner, wanted, &set_mark, options, connmark)?;
    entries(plan, owner, wanted)
}

/// The same port to two places cannot work; the same port to the same place twice is said once too often.
fn unrepeated(wanted: &[Wanted]) -> Result<()> {
    let applying: Vec<_> = wanted.iter().filter(|want| want.applies()).collect();
    for (index, want) in applying.iter().enumerate() {
        let clash = |earlier: &&&Wanted| {
            earlier.claim().overlaps(&want.claim())
                && (earlier.to.ip(), earlier.to_port) != (want.to.ip(), want.to_port)
        };
        if applying.iter().take(index).any(|earlier| clash(&earlier)) {
            return Err(Error::PortRepeated {
                port: want.host_port,
                protocol: want.protocol,
            });
        }
    }
    Ok(())
}

/// Makes the chains that masquerade hairpin connections. Returns the chain that marks them.
fn masquerading(plan: &mut Plan<'_, '_>, wanted: &[Wanted]) -> Result<String> {
    let Some(first) = wanted.iter().find(|want| want.snat != Snat::None) else {
        return Ok(HOSTPORT_SETMARK.to_owned());
    };
    let bit = match &first.mark {
        MarkStyle::Bit(bit) => *bit,
        MarkStyle::Chain(chain) if plan.view.chain(NAT, chain)?.is_some() => {
            return Ok(chain.clone());
        }
        // Whoever should have made that chain is not there (any more), so we mark ourselves.
        MarkStyle::Chain(_) => DEFAULT_MARK_BIT,
    };
    plan.ensure_chain(NAT, HOSTPORT_SETMARK)?;
    plan.ensure_chain(NAT, HOSTPORT_MASQ)?;
    for (chain, place, rule) in mark_rules(bit) {
        let same = rule.clone();
        plan.ensure_rule(NAT, chain, place, rule, |there| {
            there.same_but_comment(&same)
        })?;
    }
    Ok(HOSTPORT_SETMARK.to_owned())
}

/// Writes the container's chain anew. What another interface of the container has in it stays.
fn container_chain(
    plan: &mut Plan<'_, '_>,
    owner: &Owner,
    wanted: &[Wanted],
    set_mark: &str,
    options: &ApplyOptions<'_>,
    connmark: bool,
) -> Result<()> {
    let chain = names::dnat_chain(&owner.network, &owner.container_id);
    let rules: Vec<Rule> = unique(wanted)
        .flat_map(|want| port_rules(owner, want, set_mark, connmark))
        .collect();
    let there = plan.view.chain(NAT, &chain)?;
    let groups = there
        .as_ref()
        .map(|there| claims::groups(there))
        .unwrap_or_default();
    let others = groups
        .iter()
        .filter(|group| group.is_of_other(owner, options));
    let kept: Vec<_> = others.flat_map(|group| group.rules.clone()).collect();
    if kept.is_empty() {
        if there.is_some_and(|there| there.iter().map(|stored| &stored.rule).eq(rules.iter())) {
            return Ok(());
        }
        plan.fresh_chain(NAT, &chain)?;
        rules
            .into_iter()
            .for_each(|rule| plan.add(NAT, &chain, Place::Last, rule));
        return Ok(());
    }
    plan.delete_rules(NAT, &chain, |stored| !kept.contains(stored))?;
    rules
        .into_iter()
        .for_each(|rule| plan.add(NAT, &chain, Place::Last, rule));
    Ok(())
}

fn unique(wanted: &[Wanted]) -> impl Iterator<Item = &Wanted> {
    let repeated = |index: usize, want: &Wanted| {
        wanted
            .iter()
            .take(index)
            .any(|earlier| earlier.claim() == want.claim())
    };
    let all = wanted.iter().enumerate().filter(|(_, want)| want.applies());
    all.filter(move |(index, want)| !repeated(*index, want))
        .map(|(_, want)| want)
}

/// The rules that lead to the container's chain. Those for other ports than now wanted go, unless another
/// interface of the container may need them.
fn entries(plan: &mut Plan<'_, '_>, owner: &Owner, wanted: &[Wanted]) -> Result<()> {
    let chain = names::dnat_chain(&owner.network, &owner.container_id);
    let rules = entry_rules(owner, wanted);
    for rule in &rules {
        plan.ensure_rule(NAT, HOSTPORT_DNAT, Place::Last, rule.clone(), |there| {
            same_entry(there, rule)
        })?;
    }
    if plan.edits.flushes(&chain) {
        let stale = |there: &Rule| {
            there.jumps_to(&chain) && !rules.iter().any(|rule| same_entry(there, rule))
        };
        plan.delete_rules(NAT, HOSTPORT_DNAT, |stored| stale(&stored.rule))?;
    }
    Ok(())
}

/// Everything a verification looks for, with the chain it must be in.
pub(crate) fn wanted_rules(
    plan: &mut Plan<'_, '_>,
    owner: &Owner,
    wanted: &[Wanted],
    connmark: bool,
) -> Result<Vec<(String, Rule)>> {
    let chain = names::dnat_chain(&owner.network, &owner.container_id);
    let mut all = vec![
        ("PREROUTING".to_owned(), host_jump()),
        ("OUTPUT".to_owned(), host_jump()),
    ];
    let mut set_mark = HOSTPORT_SETMARK.to_owned();
    if let Some(first) = wanted.iter().find(|want| want.snat != Snat::None) {
        match &first.mark {
            MarkStyle::Chain(external) if plan.view.chain(NAT, external)?.is_some() => {
                set_mark.clone_from(external)
            }
            MarkStyle::Chain(_) => all.extend(owned(mark_rules(DEFAULT_MARK_BIT))),
            MarkStyle::Bit(bit) => all.extend(owned(mark_rules(*bit))),
        }
    }
    let ports = unique(wanted).flat_map(|want| port_rules(owner, want, &set_mark, connmark));
    all.extend(ports.map(|rule| (chain.clone(), rule)));
    all.extend(
        entry_rules(owner, wanted)
            .into_iter()
            .map(|rule| (HOSTPORT_DNAT.to_owned(), rule)),
    );
    Ok(all)
}

fn owned(rules: [(&'static str, Place, Rule); 3]) -> impl Iterator<Item = (String, Rule)> {
    rules
        .into_iter()
        .map(|(chain, _, rule)| (chain.to_owned(), rule))
}

/// Whether a rule found is the one wanted: shared rules may carry another release's comment.
pub(crate) fn same(there: &Rule, wanted: &Rule) -> bool {
    if wanted.multiport {
        same_entry(there, wanted)
    } else {
        there.same_but_comment(wanted)
    }
}
