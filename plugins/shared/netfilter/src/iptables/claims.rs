//! Who publishes which port already.

use std::net::{IpAddr, SocketAddr};

use super::names::{self, HOSTPORT_DNAT, HOSTPORT_SNAT};
use super::plan::Plan;
use super::publish::Wanted;
use super::rule::{Rule, Stored, Target};
use super::script::NAT;
use crate::error::{Error, Result};
use crate::{ApplyOptions, Holder, Owner};

/// A port of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    /// One address of the host, or all of them.
    pub(crate) host_ip: Option<IpAddr>,
    /// The port.
    pub(crate) port: u16,
    /// Name of the transport protocol.
    pub(crate) protocol: String,
}

impl Claim {
    /// Whether a packet can be meant by both.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let addresses = match (self.host_ip, other.host_ip) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        };
        addresses && self.port == other.port && self.protocol == other.protocol
    }
}

/// The rules of one port in a container's chain: everything up to and with the translation.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// In their order.
    pub(crate) rules: Vec<Stored>,
    /// Where the port leads, if the rules end with a translation.
    pub(crate) to: Option<SocketAddr>,
    /// What is claimed.
    pub(crate) claim: Option<Claim>,
    /// Whose it is; the reference set does not say.
    pub(crate) holder: Option<Holder>,
}

impl Group {
    fn of(rules: Vec<Stored>) -> Self {
        let last = rules
            .last()
            .map(|stored| stored.rule.clone())
            .unwrap_or_default();
        let to = match &last.target {
            Target::Dnat(to) => to.parse().ok(),
            _ => None,
        };
        let holder = rules
            .iter()
            .find_map(|stored| Holder::parse(stored.rule.comment.as_ref()?));
        Self {
            to,
            claim: claim_of(&last),
            holder,
            rules,
        }
    }

    /// Whether the port is another interface's of the same container, which still lives.
    pub(crate) fn is_of_other(&self, owner: &Owner, options: &ApplyOptions<'_>) -> bool {
        match (&self.holder, self.to) {
            (Some(holder), Some(to)) => !holder.is(owner) && (options.alive)(holder, to.ip()),
            _ => false,
        }
    }
}

fn claim_of(rule: &Rule) -> Option<Claim> {
    Some(Claim {
        host_ip: rule.destination_host(),
        port: *rule.ports.first()?,
        protocol: rule.protocol.as_ref()?.value.clone(),
    })
}

/// The ports in a container's chain.
pub(crate) fn groups(rules: &[Stored]) -> Vec<Group> {
    rules
        .split_inclusive(|stored| matches!(stored.rule.target, Target::Dnat(_)))
        .map(|rules| Group::of(rules.to_vec()))
        .collect()
}

/// Fails if another live container publishes one of the ports; removes what a dead one left.
pub(crate) fn take(
    plan: &mut Plan<'_, '_>,
    owner: &Owner,
    wanted: &[Wanted],
    options: &ApplyOptions<'_>,
) -> Result<()> {
    let own_chain = names::dnat_chain(&owner.network, &owner.container_id);
    let entries = plan.rules(NAT, HOSTPORT_DNAT)?;
    for stored in entries.iter() {
        let Target::Jump(chain) = &stored.rule.target else {
            continue;
        };
        if *chain == own_chain {
            continue;
        }
        let listed = |want: &&Wanted| {
            let same = stored
                .rule
                .protocol
                .as_ref()
                .is_some_and(|p| p.value == want.protocol.name());
            same && stored.rule.ports.contains(&want.host_port)
        };
        for want in wanted.iter().filter(listed) {
            contest(plan, owner, want, chain, &stored.rule, options)?;
        }
    }
    Ok(())
}

/// Looks closer at one chain whose entry rule lists a wanted port.
fn contest(
    plan: &mut Plan<'_, '_>,
    owner: &Owner,
    want: &Wanted,
    chain: &str,
    entry: &Rule,
    options: &ApplyOptions<'_>,
) -> Result<()> {
    let named = entry
        .comment
        .as_ref()
        .and_then(|comment| names::parse_comment(comment));
    let (network, id) = named.unwrap_or_default();
    // A container on several networks is given the same ports on each; the first one serves them.
    if id.as_ref() == Some(&owner.container_id) {
        return Ok(());
    }
    for group in groups(&plan.rules(NAT, chain)?) {
        let (Some(claim), Some(to)) = (&group.claim, group.to) else {
            continue;
        };
        if !claim.overlaps(&want.claim()) {
            continue;
        }
        let by_entry = || Holder {
            instance_hash: String::new(),
            network: network.clone(),
            ifname: String::new(),
            container_id: id.clone().unwrap_or_default(),
            cut: id.is_none(),
        };
        let holder = group.holder.clone().unwrap_or_else(by_entry);
        if (options.alive)(&holder, to.ip()) {
            return Err(Error::PortTaken {
                port: want.host_port,
                protocol: want.protocol,
                host_ip: want.host_ip,
                holder: Box::new(holder),
            });
        }
        return drop_container(plan, chain);
    }
    Ok(())
}

/// Removes a container's chain and the ways to it.
fn drop_container(plan: &mut Plan<'_, '_>, chain: &str) -> Result<()> {
    plan.delete_rules(NAT, HOSTPORT_DNAT, |stored| stored.rule.jumps_to(chain))?;
    plan.drop_chain(NAT, chain)
}

/// Removes what the owner publishes. Other interfaces of the container keep theirs.
pub(crate) fn remove(plan: &mut Plan<'_, '_>, owner: &Owner, addresses: &[IpAddr]) -> Result<()> {
    let old = names::old_snat_chain(&owner.network, &owner.container_id);
    if plan.view.chain(NAT, &old)?.is_some() {
        plan.delete_rules(NAT, HOSTPORT_SNAT, |stored| stored.rule.jumps_to(&old))?;
        plan.drop_chain(NAT, &old)?;
    }
    let chain = names::dnat_chain(&owner.network, &owner.container_id);
    let Some(rules) = plan.view.chain(NAT, &chain)? else {
        return Ok(());
    };
    let groups = groups(&rules);
    let others_noted = groups.iter().any(|group| {
        group
            .holder
            .as_ref()
            .is_some_and(|holder| !holder.is(owner))
    });
    let gone = |group: &Group| match &group.holder {
        Some(holder) => holder.is(owner),
        // Made by the reference set, which does not tell interfaces apart.
        None => !others_noted || group.to.is_none_or(|to| addresses.contains(&to.ip())),
    };
    if groups.iter().all(gone) {
        return drop_container(plan, &chain);
    }
    let gone: Vec<_> = groups
        .iter()
        .filter(|group| gone(group))
        .flat_map(|group| group.rules.clone())
        .collect();
    plan.delete_rules(NAT, &chain, |stored| gone.contains(stored))
        .map(drop)
}

/// Removes the ports of the network's attachments that are none of these.
pub(crate) fn collect(plan: &mut Plan<'_, '_>, network: &str, valid: &[Owner]) -> Result<()> {
    let kept: Vec<_> = valid
        .iter()
        .map(|owner| names::dnat_chain(&owner.network, &owner.container_id))
        .collect();
    let entries = plan.rules(NAT, HOSTPORT_DNAT)?;
    for stored in entries.iter() {
        let Target::Jump(chain) = &stored.rule.target else {
            continue;
        };
        let of_network = stored
            .rule
            .comment
            .as_ref()
            .and_then(|comment| names::parse_comment(comment));
        if !names::is_dnat_chain(chain) || of_network.is_none_or(|(name, _)| name != network) {
            continue;
        }
        if !kept.contains(chain) {
            drop_container(plan, chain)?;
            continue;
        }
        let rules = plan.rules(NAT, chain)?;
        let stale = |holder: &Holder| {
            holder.of_network(network) && !valid.iter().any(|owner| holder.is(owner))
        };
        let gone = groups(&rules)
            .into_iter()
            .filter(|group| group.holder.as_ref().is_some_and(stale));
        let gone: Vec<_> = gone.flat_map(|group| group.rules).collect();
        if !gone.is_empty() && gone.len() == rules.len() {
            drop_container(plan, chain)?;
        } else {
            plan.delete_rules(NAT, chain, |stored| gone.contains(stored))?;
        }
    }
    Ok(())
}
