//! The rules of published ports.

use std::net::SocketAddr;

use super::{PORTS_PER_RULE, Wanted};
use crate::iptables::family::Family;
use crate::iptables::names::{
    self, HOSTPORT_DNAT, HOSTPORT_MASQ, HOSTPORT_SETMARK, MASQ_COMMENT, SETMARK_COMMENT,
};
use crate::iptables::plan::Place;
use crate::iptables::rule::{Marked, Match, Rule, Target};
use crate::{ADMITTED_MARK, Owner, Snat};

/// The rules that masquerade packets with a bit of the mark: where each is, and where a new one goes.
pub(super) fn mark_rules(bit: u8) -> [(&'static str, Place, Rule); 3] {
    let bit = 1u32.checked_shl(bit.into()).unwrap_or_default();
    let mark = Marked {
        value: bit,
        mask: bit,
    };
    let masquerade = Rule {
        mark: Some(mark),
        ..Rule::to(Target::Masquerade)
    };
    [
        (
            HOSTPORT_SETMARK,
            Place::Last,
            Rule::to(Target::Mark(mark)).comment(SETMARK_COMMENT),
        ),
        (HOSTPORT_MASQ, Place::Last, masquerade),
        (
            "POSTROUTING",
            Place::First,
            Rule::jump(HOSTPORT_MASQ).comment(MASQ_COMMENT),
        ),
    ]
}

/// The jump from the built-in chains.
pub(super) fn host_jump() -> Rule {
    Rule {
        to_host: true,
        ..Rule::jump(HOSTPORT_DNAT)
    }
}

/// The rules of one port: mark what must be masqueraded, mark the connection as published, translate.
pub(super) fn port_rules(
    owner: &Owner,
    want: &Wanted,
    set_mark: &str,
    connmark: bool,
) -> Vec<Rule> {
    let host = want.exact_host().and_then(Family::host);
    let matching = |target| {
        let rule = Rule {
            protocol: Some(protocol(want)),
            ports: vec![want.host_port],
            ..Rule::to(target)
        };
        match host {
            Some(host) => rule.towards(host),
            None => rule,
        }
    };
    let mark = || matching(Target::Jump(set_mark.to_owned()));
    let mut rules = Vec::new();
    match want.snat {
        Snat::None => {}
        Snat::All => rules.push(mark()),
        Snat::Hairpin => {
            rules.push(mark().from(want.to));
            let localhost = want
                .to
                .is_ipv4()
                .then(|| "127.0.0.1/32".parse().ok())
                .flatten();
            rules.extend(localhost.map(|localhost| mark().from(localhost)));
        }
    }
    if connmark {
        let published = Marked {
            value: ADMITTED_MARK,
            mask: ADMITTED_MARK,
        };
        rules.push(matching(Target::Connmark(published)).comment(&owner.comment()));
    }
    rules.push(matching(Target::Dnat(
        SocketAddr::new(want.to.ip(), want.to_port).to_string(),
    )));
    rules
}

fn protocol(want: &Wanted) -> Match<String> {
    Match::is(want.protocol.name().to_owned())
}

/// Conditions are words of the user's; nf_tables does not give them back as such.
pub(super) fn same_entry(there: &Rule, wanted: &Rule) -> bool {
    if wanted.other.is_empty() {
        return there == wanted;
    }
    let facts = |rule: &Rule| {
        (
            rule.comment.clone(),
            rule.target.clone(),
            rule.protocol.clone(),
            rule.ports.clone(),
        )
    };
    facts(there) == facts(wanted)
}

/// The rules that lead to the container's chain, by protocol and in pieces that fit a rule.
pub(super) fn entry_rules(owner: &Owner, wanted: &[Wanted]) -> Vec<Rule> {
    let chain = names::dnat_chain(&owner.network, &owner.container_id);
    let comment = names::dnat_comment(&owner.network, &owner.container_id);
    let mut protocols: Vec<_> = wanted.iter().map(|want| want.protocol.name()).collect();
    protocols.sort_unstable();
    protocols.dedup();
    let mut rules = Vec::new();
    for name in protocols {
        let of_protocol: Vec<_> = wanted
            .iter()
            .filter(|want| want.protocol.name() == name)
            .collect();
        for chunk in of_protocol.chunks(PORTS_PER_RULE) {
            rules.push(Rule {
                protocol: Some(Match::is(name.to_owned())),
                ports: chunk.iter().map(|want| want.host_port).collect(),
                multiport: true,
                other: chunk
                    .first()
                    .map(|want| want.conditions.clone())
                    .unwrap_or_default(),
                ..Rule::jump(&chain).comment(&comment)
            });
        }
    }
    rules
}
