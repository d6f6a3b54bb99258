//! Listing rules.

use ipnetwork::IpNetwork;
use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::rule::{RuleAction, RuleFlags, RuleHeader, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::libc;

use super::{Rule, family};
use crate::error::Result;
use crate::handle::Handle;
use crate::nla::{self, attributes};
use crate::request::Request;

const HEADER_LEN: usize = 12;
/// Attributes of a rule (linux/fib_rules.h).
const SRC: u16 = 2;
const PRIORITY: u16 = 6;
const SUPPRESS_IFGROUP: u16 = 13;
const SUPPRESS_PREFIXLEN: u16 = 14;
const TABLE: u16 = 15;
const PAD: u16 = 18;
const PROTOCOL: u16 = 21;
/// What the two `SUPPRESS` attributes are where they mean nothing.
const NO_LIMIT: u32 = u32::MAX;
/// `FIB_RULE_INVERT`: the rule is for all packets but these.
const INVERT: RuleFlags = RuleFlags::Invert;

pub(super) fn list(handle: &Handle, ipv6: bool) -> Result<Vec<Rule>> {
    let mut message = RuleMessage::default();
    message.header.family = family(ipv6);
    let request = Request::new(
        RouteNetlinkMessage::GetRule(message),
        NLM_F_DUMP,
        "list",
        "rules",
    );
    handle.socket.exchange(&request, parse)
}

/// Reads an `RTM_NEWRULE` message of IPv4 or IPv6; anything else is none.
fn parse(kind: u16, payload: &[u8]) -> Option<Rule> {
    if kind != libc::RTM_NEWRULE {
        return None;
    }
    let header = RuleHeader::parse(payload).ok()?;
    let ipv6 = match header.family {
        AddressFamily::Inet => false,
        AddressFamily::Inet6 => true,
        _ => return None,
    };
    let to_table = header.action == RuleAction::ToTable;
    let mut rule = Rule {
        ipv6,
        priority: 0,
        src: None,
        table: if to_table { header.table.into() } else { 0 },
        protocol: 0,
        plain: to_table && header.dst_len == 0 && header.tos == 0 && !header.flags.contains(INVERT),
    };
    for (kind, value) in attributes(payload.get(HEADER_LEN..)?) {
        match kind {
            SRC => rule.src = IpNetwork::new(nla::as_ip(value)?, header.src_len).ok(),
            PRIORITY => rule.priority = nla::as_u32(value)?,
            TABLE if to_table => rule.table = nla::as_u32(value)?,
            PROTOCOL => rule.protocol = nla::as_u8(value)?,
            TABLE | PAD => {}
            SUPPRESS_IFGROUP | SUPPRESS_PREFIXLEN => {
                rule.plain &= nla::as_u32(value) == Some(NO_LIMIT);
            }
            // Whatever else it is, it narrows the rule down or changes what comes of it.
            _ => rule.plain = false,
        }
    }
    Some(rule)
}
