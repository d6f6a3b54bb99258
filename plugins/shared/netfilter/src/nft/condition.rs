//! Conditions under which a port is forwarded: the common part of `nft`'s words for matches.
//!
//! Known are `ip|ip6 saddr|daddr [==|!=] ADDRESS[/PREFIX]` and `[meta] iifname [==|!=] NAME[*]`, one after the other; all
//! must hold.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

use super::chain::{ChainSpec, RuleSpec};
use super::expr::{Expr, Part, meta_key};
use super::layout;
use super::matches::{self, Ip};
use super::sets::SetId;
use crate::error::{Error, Result};
use crate::owner::hex_digest;

/// The chain `when-<hash>`, which forwards what meets the conditions; `None` if there are none. A single host address
/// is one condition more.
pub(super) fn chain(
    ip: Ip,
    conditions: &[String],
    host: Option<IpAddr>,
) -> Result<Option<ChainSpec>> {
    let text = conditions.join(" ");
    let mut words: Vec<_> = text.split_whitespace().collect();
    if words.is_empty() {
        return Ok(None);
    }
    let host = host.map(|address| address.to_string());
    let (family, then) = match ip {
        Ip::V4 => ("ip", SetId::PublishThen4),
        Ip::V6 => ("ip6", SetId::PublishThen6),
    };
    if let Some(host) = &host {
        words.extend([family, "daddr", host]);
    }
    let mut exprs = Vec::new();
    let mut rest = words.as_slice();
    while !rest.is_empty() {
        let (matched, after) = clause(rest, ip).ok_or_else(|| invalid(&text, rest))?;
        exprs.extend(matched);
        rest = after;
    }
    exprs.extend(layout::publish_rule(ip, then).exprs);
    let name = format!(
        "when-{}",
        hex_digest(&format!("{family} {}", words.join(" ")), 16)
    );
    Ok(Some(ChainSpec::regular(name, vec![RuleSpec::of([exprs])])))
}

/// Reads one match and gives the words after it.
fn clause<'w>(words: &'w [&'w str], ip: Ip) -> Option<(Vec<Expr>, &'w [&'w str])> {
    match words {
        [
            family @ ("ip" | "ip6"),
            side @ ("saddr" | "daddr"),
            rest @ ..,
        ] => {
            let (equal, value, rest) = operand(rest)?;
            let net: IpNetwork = value.parse().ok()?;
            // A match of the other family never holds in this family's map; better to say so than to never forward.
            let fits = Ip::of(net.ip()) == ip && (*family == "ip") == (ip == Ip::V4);
            let part = match (*side, ip) {
                ("saddr", Ip::V4) => Part::IP_SADDR,
                ("saddr", Ip::V6) => Part::IP6_SADDR,
                (_, Ip::V4) => Part::IP_DADDR,
                (_, Ip::V6) => Part::IP6_DADDR,
            };
            fits.then(|| (matches::address(part, net, equal), rest))
        }
        ["meta", "iifname", rest @ ..] | ["iifname", rest @ ..] => {
            let (equal, value, rest) = operand(rest)?;
            let name = value.trim_matches('"');
            let bare = name.strip_suffix('*').unwrap_or(name);
            let fits = !bare.is_empty() && bare.len() <= 15 && !bare.contains('*');
            fits.then(|| (matches::interface(meta_key::IIFNAME, name, equal), rest))
        }
        _ => None,
    }
}

/// `[==|!=] VALUE`
fn operand<'w>(words: &'w [&'w str]) -> Option<(bool, &'w str, &'w [&'w str])> {
    match words {
        ["!=", value, rest @ ..] => Some((false, value, rest)),
        ["==", value, rest @ ..] | [value, rest @ ..] => Some((true, value, rest)),
        [] => None,
    }
}

fn invalid(text: &str, rest: &[&str]) -> Error {
    Error::Invalid {
        what: format!("conditions {text:?}"),
        reason: format!(
            "cannot read {:?}; the nftables backend knows \"ip|ip6 saddr|daddr [!=] NETWORK\" and \"iifname [!=] NAME\", \
             the iptables backend takes whatever iptables takes",
            rest.join(" ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(ip: Ip, text: &str) -> Result<Option<ChainSpec>> {
        chain(
            ip,
            &text.split(' ').map(str::to_owned).collect::<Vec<_>>(),
            None,
        )
    }

    #[test]
    fn common_matches_are_read() {
        for text in [
            "ip saddr 10.0.0.0/8",
            "ip saddr != 10.0.0.0/8 ip daddr 192.0.2.1",
            "iifname != \"docker0\"",
            "meta iifname == eth*",
        ] {
            assert!(read(Ip::V4, text).unwrap().is_some(), "{text}");
        }
        assert!(read(Ip::V6, "ip6 saddr fd00::/8").unwrap().is_some());
        assert!(read(Ip::V4, "").unwrap().is_none());
        assert!(
            chain(Ip::V4, &[], Some([192, 0, 2, 1].into()))
                .unwrap()
                .is_none()
        );
    }

    #[test]
    fn others_are_refused() {
        for text in [
            "ip",
            "ip saddr",
            "ip saddr !=",
            "ip saddr fd00::1",
            "ip6 saddr fd00::1",
            "tcp flags syn",
            "iifname *",
            "-d 10.0.0.1",
        ] {
            assert!(
                matches!(read(Ip::V4, text), Err(Error::Invalid { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn a_host_address_makes_another_chain() {
        let condition = ["iifname eth0".to_owned()];
        let one = chain(Ip::V4, &condition, None).unwrap().unwrap();
        let two = chain(Ip::V4, &condition, Some([192, 0, 2, 1].into()))
            .unwrap()
            .unwrap();
        assert_ne!(one.name, two.name);
    }
}
