//! A [`Rule`] from the nf_tables expressions that iptables-nft writes.
//!
//! Addresses, interfaces, protocols and single ports are native expressions; most other matches and targets are
//! the legacy extensions wrapped in `match` and `target`, whose structures [`super::xt`] reads.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnetwork::IpNetwork;

use super::rule::{Marked, Match, Rule, Stored, Target, canonical};
use super::{tag, xt};
use crate::nfnl::{self, Expr, Reader, consts::verdict};

/// `NFT_PAYLOAD_NETWORK_HEADER` and `NFT_PAYLOAD_TRANSPORT_HEADER`.
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// `NFT_META_MARK`, `_IIFNAME`, `_OIFNAME`, `_L4PROTO`.
const META_MARK: u32 = 3;
const META_IIFNAME: u32 = 6;
const META_OIFNAME: u32 = 7;
const META_L4PROTO: u32 = 16;

/// The rule with its handle. What is not understood is named in [`Rule::other`].
pub(crate) fn stored(raw: &nfnl::Rule) -> Stored {
    let mut decoder = Decoder {
        v6: raw.family == nfnl::Family::Ip6,
        rule: Rule {
            comment: raw.comment(),
            ..Rule::default()
        },
        loaded: None,
    };
    for expr in &raw.exprs {
        if decoder.expr(expr).is_none() {
            decoder.rule.other.push(format!("<{}>", expr.name));
        }
    }
    Stored {
        rule: decoder.rule,
        handle: Some(raw.handle),
        text: None,
        tag: tag::read(&raw.userdata),
    }
}

/// What the register holds that the next comparison is about. iptables uses one register at a time.
struct Loaded {
    source: Source,
    /// Bits that were kept, if not all.
    mask: Option<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Source {
    Payload { base: u32, offset: u32, len: u32 },
    Meta(u32),
}

struct Decoder {
    v6: bool,
    rule: Rule,
    loaded: Option<Loaded>,
}

impl Decoder {
    /// Takes in one expression; `None` if it says something that cannot be expressed.
    fn expr(&mut self, expr: &Expr) -> Option<()> {
        let attrs = Reader::new(&expr.data);
        let number = |kind| attrs.get(kind).and_then(|attr| attr.u32());
        match expr.name.as_str() {
            "counter" => {}
            "payload" => {
                let source = Source::Payload {
                    base: number(2)?,
                    offset: number(3)?,
                    len: number(4)?,
                };
                self.loaded = Some(Loaded { source, mask: None });
            }
            // Without a destination register (1) it would write.
            "meta" => {
                number(1)?;
                self.loaded = Some(Loaded {
                    source: Source::Meta(number(2)?),
                    mask: None,
                });
            }
            "bitwise" => {
                let value = |kind| {
                    attrs
                        .get(kind)?
                        .nested()
                        .get(nfnl::consts::data::VALUE)
                        .map(|v| v.value)
                };
                if value(5)?.iter().any(|byte| *byte != 0) {
                    return None;
                }
                self.loaded.as_mut()?.mask = Some(value(4)?.to_vec());
            }
            "cmp" => {
                let value = attrs.get(3)?.nested().get(nfnl::consts::data::VALUE)?.value;
                let negated = match number(2)? {
                    0 => false,
                    1 => true,
                    _ => return None,
                };
                self.compare(value, negated)?;
            }
            "immediate" => self.rule.target = verdict_target(&expr.verdict()?)?,
            "masq" if expr.data.is_empty() => self.rule.target = Target::Masquerade,
            "match" => xt::read_match(
                &mut self.rule,
                &attrs.get(1)?.text(),
                number(2)?,
                attrs.get(3)?.value,
            )?,
            "target" => {
                let name = attrs.get(1)?.text();
                let target = xt::read_target(&name, number(2)?, attrs.get(3)?.value, self.v6);
                self.rule.target = target.unwrap_or(Target::Other(name));
            }
            _ => return None,
        }
        Some(())
    }

    fn compare(&mut self, value: &[u8], negated: bool) -> Option<()> {
        let Loaded { source, mask } = self.loaded.take()?;
        match source {
            Source::Payload {
                base: NETWORK,
                offset,
                len,
            } => self.network_header(offset, len, mask, value, negated)?,
            Source::Payload {
                base: TRANSPORT,
                offset: 2,
                len: 2,
            } if mask.is_none() && !negated => {
                self.rule.ports = vec![u16::from_be_bytes(value.try_into().ok()?)];
            }
            Source::Meta(META_L4PROTO) if mask.is_none() => self.protocol(value, negated)?,
            Source::Meta(META_IIFNAME) if mask.is_none() => {
                self.rule.input = Some(interface(value, negated)?)
            }
            Source::Meta(META_OIFNAME) if mask.is_none() => {
                self.rule.output = Some(interface(value, negated)?)
            }
            Source::Meta(META_MARK) if !negated => {
                let bits = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_ne_bytes);
                let mask = mask.as_deref().map_or(Some(u32::MAX), bits)?;
                self.rule.mark = Some(Marked {
                    value: bits(value)?,
                    mask,
                });
            }
            _ => return None,
        }
        Some(())
    }

    fn network_header(
        &mut self,
        offset: u32,
        len: u32,
        mask: Option<Vec<u8>>,
        value: &[u8],
        negated: bool,
    ) -> Option<()> {
        let (source, destination, protocol) = if self.v6 { (8, 24, 6) } else { (12, 16, 9) };
        if offset == protocol && len == 1 && mask.is_none() {
            return self.protocol(value, negated);
        }
        let prefix = match mask {
            Some(mask) => prefix_of(&mask)?,
            None => u8::try_from(len.checked_mul(8)?).ok()?,
        };
        let network = IpNetwork::new(address(value, self.v6)?, prefix).ok()?;
        let found = canonical(network).map(|value| Match { value, negated });
        if offset == source {
            self.rule.source = found;
        } else if offset == destination {
            self.rule.destination = found;
        } else {
            return None;
        }
        Some(())
    }

    fn protocol(&mut self, value: &[u8], negated: bool) -> Option<()> {
        let number = *value.first()?;
        let name = crate::Protocol::from_number(number)
            .map_or(number.to_string(), |p| p.name().to_owned());
        self.rule.protocol = Some(Match {
            value: name,
            negated,
        });
        Some(())
    }
}

fn verdict_target(decided: &nfnl::Verdict) -> Option<Target> {
    Some(match decided.code {
        verdict::ACCEPT => Target::Accept,
        verdict::DROP => Target::Drop,
        verdict::RETURN => Target::Return,
        verdict::JUMP => Target::Jump(decided.chain.clone()?),
        _ => return None,
    })
}

/// Leading one bits of a mask; `None` if others follow.
fn prefix_of(mask: &[u8]) -> Option<u8> {
    let ones: u32 = mask.iter().map(|byte| byte.count_ones()).sum();
    let leading = mask
        .iter()
        .map(|byte| byte.leading_ones())
        .scan(true, |go, ones| {
            let counted = if *go { ones } else { 0 };
            *go &= ones == 8;
            Some(counted)
        });
    (leading.sum::<u32>() == ones).then(|| u8::try_from(ones).ok())?
}

/// An address of which the rule may hold the leading bytes only.
fn address(leading: &[u8], v6: bool) -> Option<IpAddr> {
    let mut bytes = leading.to_vec();
    if v6 {
        bytes.resize(16, 0);
        return Some(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into());
    }
    bytes.resize(4, 0);
    Some(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?).into())
}

/// A name compared with its final zero is meant whole; without it, it is a beginning (`br+`).
fn interface(value: &[u8], negated: bool) -> Option<Match<String>> {
    let end = value.iter().position(|byte| *byte == 0);
    let name = std::str::from_utf8(value.get(..end.unwrap_or(value.len()))?).ok()?;
    let value = if end.is_some() {
        name.to_owned()
    } else {
        format!("{name}+")
    };
    Some(Match { value, negated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn masks_are_prefixes_or_nothing() {
        assert_eq!(prefix_of(&[255, 240, 0, 0]), Some(12));
        assert_eq!(prefix_of(&[0, 0, 0, 0]), Some(0));
        assert_eq!(prefix_of(&[255; 16]), Some(128));
        assert_eq!(prefix_of(&[255, 0, 255, 0]), None);
        assert_eq!(prefix_of(&[0x80, 0x80]), None);
    }

    proptest! {
        #[test]
        fn any_expression_is_survived(
            names in proptest::collection::vec("payload|meta|bitwise|cmp|immediate|match|target|masq|x", 0..6),
            data in proptest::collection::vec(any::<u8>(), 0..120),
        ) {
            let exprs = names.into_iter().map(|name| Expr { name, data: data.clone() }).collect();
            let raw = nfnl::Rule {
                family: nfnl::Family::Ip, table: "nat".into(), chain: "x".into(), handle: 1, exprs, userdata: data.clone(),
            };
            stored(&raw);
        }
    }
}
