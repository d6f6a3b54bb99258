//! The rules that admit an address, as iptables-nft writes them into nf_tables.
//!
//! They are the only rules that an ADD makes once the shared chains are there. `iptables-restore` would read the whole
//! ruleset first, which has two more of them for every container on the host.

use std::net::IpAddr;

use super::rule::{Rule, Target, state};
use crate::nfnl::consts::{data, verdict};
use crate::nfnl::{Expr, Writer};

/// How many rules admit an address: one for what it sends, one for the answers.
pub(crate) const RULES_PER_ADDRESS: usize = 2;

/// `NFT_REG_1`, `NFT_REG_VERDICT`, `NFT_PAYLOAD_NETWORK_HEADER`, `NFT_CMP_EQ`.
const REGISTER: u32 = 1;
const VERDICT: u32 = 0;
const NETWORK: u32 = 1;
const EQUAL: u32 = 0;

/// `struct xt_conntrack_mtinfo3` (linux/netfilter/xt_conntrack.h): where its flags begin, and its size as the kernel
/// aligns it. `XT_CONNTRACK_STATE`.
const MTINFO_FLAGS: usize = 8 * 16 + 2 * 4 + 2 + 4 * 2;
const MTINFO_SIZE: usize = 168;
const CONNTRACK_STATE: u16 = 1;

/// The address and the expressions of a rule that accepts what comes from a single address, or goes to one in certain
/// connection states; `None` for any other rule.
pub(crate) fn admission(rule: &Rule) -> Option<(IpAddr, Vec<Expr>)> {
    let (address, offset) = match (rule.source_host(), rule.destination_host()) {
        (Some(address), None) => (address, if address.is_ipv4() { 12 } else { 8 }),
        (None, Some(address)) => (address, if address.is_ipv4() { 16 } else { 24 }),
        _ => return None,
    };
    let plain = Rule {
        source: rule.source.clone(),
        destination: rule.destination.clone(),
        states: rule.states,
        ..Rule::to(Target::Accept)
    };
    if *rule != plain {
        return None;
    }
    let octets = match address {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut exprs = vec![payload(offset, octets.len()), equals(&octets)];
    match rule.states {
        0 => {}
        states if states & !(state::ESTABLISHED | state::RELATED) == 0 => {
            exprs.push(conntrack(states));
        }
        _ => return None,
    }
    exprs.extend([counter(), accept()]);
    Some((address, exprs))
}

fn expr(name: &str, fill: impl FnOnce(&mut Writer)) -> Expr {
    let mut attrs = Writer::default();
    fill(&mut attrs);
    Expr {
        name: name.to_owned(),
        // Nothing here comes near the 64 KiB that an attribute can hold.
        data: attrs.finish().unwrap_or_default(),
    }
}

fn payload(offset: u32, length: usize) -> Expr {
    expr("payload", |w| {
        w.u32(1, REGISTER)
            .u32(2, NETWORK)
            .u32(3, offset)
            .u32(4, u32::try_from(length).unwrap_or_default());
    })
}

fn equals(bytes: &[u8]) -> Expr {
    expr("cmp", |w| {
        w.u32(1, REGISTER).u32(2, EQUAL).nest(3, |w| {
            w.bytes(data::VALUE, bytes);
        });
    })
}

/// The extension `conntrack`, revision 3, with nothing but states.
fn conntrack(states: u16) -> Expr {
    let mut info = vec![0; MTINFO_FLAGS];
    info.extend(CONNTRACK_STATE.to_ne_bytes());
    info.extend(0_u16.to_ne_bytes());
    info.extend(states.to_ne_bytes());
    info.resize(MTINFO_SIZE, 0);
    expr("match", |w| {
        w.text(1, "conntrack").u32(2, 3).bytes(3, &info);
    })
}

fn counter() -> Expr {
    expr("counter", |w| {
        w.u64(1, 0).u64(2, 0);
    })
}

fn accept() -> Expr {
    expr("immediate", |w| {
        w.u32(1, VERDICT).nest(2, |w| {
            w.nest(data::VERDICT, |w| {
                w.u32(data::VERDICT_CODE, verdict::ACCEPT.cast_unsigned());
            });
        });
    })
}
