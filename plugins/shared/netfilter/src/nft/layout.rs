//! The tables' fixed part: sets, maps and base chains. Written once; docs/nftables.md describes it.

use super::chain::{ChainSpec, RuleSpec};
use super::expr::{self, Part, ct_key, meta_key, reg};
use super::matches::{self, Ip};
use super::sets::{SetId, TABLE};
use crate::ADMITTED_MARK;
use crate::error::Result;
use crate::nfnl::consts::{flag, hook, msg, table, verdict};
use crate::nfnl::{Batch, Family, Request, Socket, udata_with_comment};

/// The chain that says "this layout is complete". A later layout that still serves this version keeps it.
const MARKER: &str = "layout-1";
/// An operator's own chain, called first for forwarded packets. Created, then never touched.
const ADMIN: &str = "admin";
const PUBLISH: &str = "publish";
const COMMENT: &str = "Container networks, kept by Ferrule";
const MARKER_COMMENT: &str = "Ferrule rewrites its chains when this rule is gone";

/// Whether the table of this family is there, complete, and of our layout. `nft flush table` and worse are noticed;
/// a single rule deleted by hand is not (that is what `verify` is for).
pub(super) fn is_complete(socket: &mut Socket, family: Family) -> Result<bool> {
    let marker = socket.chain(family, TABLE, MARKER)?;
    Ok(marker.is_some_and(|marker| marker.uses == 1))
}

/// Everything fixed in one family's table, so that it is complete whatever was there before.
pub(super) fn write(batch: &mut Batch, family: Family) {
    batch.push(
        Request::nftables(msg::NEWTABLE, family, flag::CREATE).with(|w| {
            w.text(table::NAME, TABLE).u32(table::FLAGS, 0);
            w.bytes(table::USERDATA, &udata_with_comment(COMMENT));
        }),
    );
    for set in SetId::ALL.into_iter().filter(|set| set.family() == family) {
        batch.push(set.declare());
    }
    let chains = chains(family);
    // Jumps need their targets, so all chains come before any rule.
    if family == Family::Inet {
        batch.push(ChainSpec::regular(ADMIN, Vec::new()).declare(0));
    }
    for chain in &chains {
        batch.push(chain.declare(0));
    }
    for chain in &chains {
        chain.rewrite(batch);
    }
}

/// The fixed chains of a family's table, the operator's excepted.
pub(super) fn chains(family: Family) -> Vec<ChainSpec> {
    let marker = RuleSpec {
        comment: Some(MARKER_COMMENT),
        ..RuleSpec::of([vec![expr::back()]])
    };
    let mut chains = match family {
        Family::Bridge => bridge_chains(),
        _ => inet_chains(),
    };
    chains.push(ChainSpec::regular(MARKER, vec![marker]).in_family(family));
    chains
}

fn inet_chains() -> Vec<ChainSpec> {
    let to_publish = || {
        vec![RuleSpec::of([vec![
            expr::fib_daddr_type(),
            expr::cmp(true, &RTN_LOCAL.to_ne_bytes()),
            expr::verdict_of(verdict::GOTO, Some(PUBLISH)),
        ]])]
    };
    vec![
        ChainSpec::regular(PUBLISH, publish_rules()),
        ChainSpec::base(
            "guard",
            "filter",
            hook::PREROUTING,
            -300,
            vec![localnet_rule()],
        ),
        ChainSpec::base("prerouting", "nat", hook::PREROUTING, -100, to_publish()),
        ChainSpec::base("output", "nat", hook::OUTPUT, -100, to_publish()),
        ChainSpec::base(
            "postrouting",
            "nat",
            hook::POSTROUTING,
            100,
            postrouting_rules(),
        ),
        // Before the usual filter priority, so that other tables' FORWARD chains see the mark.
        ChainSpec::base("published", "filter", hook::FORWARD, -5, marking_rules()),
        ChainSpec::base("forward", "filter", hook::FORWARD, 0, forward_rules()),
    ]
}

/// RTN_LOCAL: the destination is an address of this host.
const RTN_LOCAL: u32 = 2;

/// Ports published on one address come before those published on all, and those with conditions last.
fn publish_rules() -> Vec<RuleSpec> {
    vec![
        publish_at_rule(Ip::V4, SetId::PublishAt4, reg::R1_AT_4, reg::R1_AT_8),
        publish_at_rule(Ip::V6, SetId::PublishAt6, reg::R2, reg::R2_AT_4),
        publish_rule(Ip::V4, SetId::Publish4),
        publish_rule(Ip::V6, SetId::Publish6),
        conditional_rule(Ip::V4, SetId::PublishIf4),
        conditional_rule(Ip::V6, SetId::PublishIf6),
    ]
}

/// `dnat to ip daddr . meta l4proto . th dport map @publish_at4`, protocol and port loaded behind the address.
fn publish_at_rule(ip: Ip, map: SetId, protocol: u32, port: u32) -> RuleSpec {
    RuleSpec::of([
        matches::family(ip),
        vec![
            expr::payload(ip.daddr(), reg::R1),
            expr::meta(meta_key::L4PROTO, protocol),
            expr::payload(Part::TH_DPORT, port),
            expr::map(map.name(), reg::R1),
            dnat(ip),
        ],
    ])
}

/// `dnat to meta l4proto . th dport map @publish4`
pub(super) fn publish_rule(ip: Ip, map: SetId) -> RuleSpec {
    RuleSpec::of([
        matches::family(ip),
        vec![
            expr::meta(meta_key::L4PROTO, reg::R1),
            expr::payload(Part::TH_DPORT, reg::R1_AT_4),
            expr::map(map.name(), reg::R1),
            dnat(ip),
        ],
    ])
}

/// `meta l4proto . th dport vmap @publish_if4`
fn conditional_rule(ip: Ip, map: SetId) -> RuleSpec {
    RuleSpec::of([
        matches::family(ip),
        vec![
            expr::meta(meta_key::L4PROTO, reg::R1),
            expr::payload(Part::TH_DPORT, reg::R1_AT_4),
            expr::map(map.name(), reg::VERDICT),
        ],
    ])
}

/// Address and port lie one behind the other where the map put them.
fn dnat(ip: Ip) -> expr::Expr {
    let port = if ip == Ip::V4 { reg::R1_AT_4 } else { reg::R2 };
    expr::dnat(ip.nfproto(), reg::R1, port)
}

/// Packets for the loopback net have no business on a wire. The kernel drops them by itself but where
/// `route_localnet` is on, so one rule does for all interfaces, whoever switched it on.
fn localnet_rule() -> RuleSpec {
    let loopback = [
        expr::payload(Part::IP_DADDR.first(1), reg::R1),
        expr::cmp(true, &[127]),
        expr::drop(),
    ];
    RuleSpec::of([
        matches::interface(meta_key::IIFNAME, "lo", false),
        matches::family(Ip::V4),
        loopback.to_vec(),
    ])
}

fn postrouting_rules() -> Vec<RuleSpec> {
    let hairpin = |ip, map: SetId| {
        let verdict = vec![expr::map(map.name(), reg::VERDICT)];
        RuleSpec::of([matches::dnated(), matches::load_forwarded(ip), verdict])
    };
    let masquerade = |ip: Ip, map: SetId| {
        let verdict = [
            expr::payload(ip.saddr(), reg::R1),
            expr::map(map.name(), reg::VERDICT),
        ];
        RuleSpec::of([matches::family(ip), verdict.to_vec()])
    };
    vec![
        hairpin(Ip::V4, SetId::Hairpin4),
        hairpin(Ip::V6, SetId::Hairpin6),
        masquerade(Ip::V4, SetId::Masquerade4),
        masquerade(Ip::V6, SetId::Masquerade6),
    ]
}

/// New connections that were forwarded to a published port get the mark, and those that come from an address which
/// another backend admits.
fn marking_rules() -> Vec<RuleSpec> {
    let is_new = || matches::ct_bits(ct_key::STATE, expr::STATE_NEW);
    let published = |ip, set: SetId| {
        let lookup = vec![expr::lookup(set.name(), false)];
        let to = matches::load_forwarded(ip);
        RuleSpec::of([is_new(), matches::dnated(), to, lookup, set_mark()])
    };
    let known = |ip: Ip, set: SetId| {
        let from = matches::address_in(ip, ip.saddr(), set.name());
        RuleSpec::of([is_new(), from, set_mark()])
    };
    vec![
        published(Ip::V4, SetId::Published4),
        published(Ip::V6, SetId::Published6),
        known(Ip::V4, SetId::Known4),
        known(Ip::V6, SetId::Known6),
    ]
}

/// `ct mark set ct mark or 0x20000000`
fn set_mark() -> Vec<expr::Expr> {
    vec![
        expr::ct(ct_key::MARK, reg::R1),
        expr::bitwise(
            &(!ADMITTED_MARK).to_ne_bytes(),
            &ADMITTED_MARK.to_ne_bytes(),
        ),
        expr::ct_set_mark(),
    ]
}

fn forward_rules() -> Vec<RuleSpec> {
    let accept = || vec![expr::accept()];
    let bridge = |map: SetId| {
        let verdict = vec![
            expr::meta(meta_key::IIFNAME, reg::R1),
            expr::map(map.name(), reg::VERDICT),
        ];
        RuleSpec::of([verdict])
    };
    let from = |ip: Ip, set: SetId| {
        RuleSpec::of([matches::address_in(ip, ip.saddr(), set.name()), accept()])
    };
    let answers = || matches::ct_bits(ct_key::STATE, expr::STATE_ESTABLISHED | expr::STATE_RELATED);
    let to = |ip: Ip, set: SetId| {
        RuleSpec::of([
            matches::address_in(ip, ip.daddr(), set.name()),
            answers(),
            accept(),
        ])
    };
    vec![
        RuleSpec::of([vec![expr::verdict_of(verdict::JUMP, Some(ADMIN))]]),
        bridge(SetId::Isolate),
        bridge(SetId::Confine),
        from(Ip::V4, SetId::Admit4),
        from(Ip::V6, SetId::Admit6),
        to(Ip::V4, SetId::Admit4),
        to(Ip::V6, SetId::Admit6),
        RuleSpec::of([
            matches::dnated(),
            matches::ct_bits(ct_key::MARK, ADMITTED_MARK),
            accept(),
        ]),
    ]
}

fn bridge_chains() -> Vec<ChainSpec> {
    let spoofed = RuleSpec::of([
        matches::interface_in(meta_key::IIFNAME, SetId::Guarded.name()),
        vec![
            expr::meta(meta_key::IIFNAME, reg::R1),
            expr::payload(Part::ETHER_SADDR, reg::R2),
            expr::lookup(SetId::Allowed.name(), true),
            expr::drop(),
        ],
    ]);
    let between_isolated = RuleSpec::of([
        matches::interface_in(meta_key::IIFNAME, SetId::Isolated.name()),
        matches::interface_in(meta_key::OIFNAME, SetId::Isolated.name()),
        vec![expr::drop()],
    ]);
    vec![
        ChainSpec::base(
            "prerouting",
            "filter",
            hook::PREROUTING,
            -300,
            vec![spoofed],
        )
        .in_family(Family::Bridge),
        ChainSpec::base(
            "forward",
            "filter",
            hook::FORWARD,
            -200,
            vec![between_isolated],
        )
        .in_family(Family::Bridge),
    ]
}
