//! The structures of legacy matches and targets, as far as the layout uses them.
//!
//! Source: the headers `linux/netfilter/xt_*.h`. Numbers are in the machine's byte order unless said otherwise.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use super::rule::{Marked, Rule, Target, state};

/// `XT_CONNTRACK_STATE`.
const CONNTRACK_STATE: u16 = 1;
/// `XT_ADDRTYPE_INVERT_SOURCE` and `_DEST`; `RTN_LOCAL` as a bit.
const ADDRTYPE_INVERT: u32 = 3;
const ADDRTYPE_LOCAL: u16 = 1 << 2;
/// `XT_MULTIPORT_DESTINATION`.
const MULTIPORT_DESTINATION: u8 = 1;
/// `NF_NAT_RANGE_MAP_IPS` and `NF_NAT_RANGE_PROTO_SPECIFIED`.
const RANGE_BOTH: u32 = 3;

/// Takes a match's conditions into the rule; `None` if the rule has no field for them.
pub(crate) fn read_match(rule: &mut Rule, name: &str, revision: u32, info: &[u8]) -> Option<()> {
    match (name, revision) {
        ("comment", 0) => rule.comment = Some(text(info)),
        ("conntrack", 2 | 3) => rule.states = conntrack_states(info)?,
        ("state", 0) => rule.states = states_of(u16::try_from(u32_at(info, 0)?).ok()?)?,
        ("addrtype", 1) => {
            let (source, destination, flags) =
                (u16_at(info, 0)?, u16_at(info, 2)?, u32_at(info, 4)?);
            let plain =
                source == 0 && destination == ADDRTYPE_LOCAL && flags & ADDRTYPE_INVERT == 0;
            rule.to_host = plain.then_some(true)?;
        }
        ("mark", 1) => rule.mark = Some(marked(info)?),
        ("connmark", 1) => rule.connmark = Some(marked(info)?),
        ("multiport", 1) => {
            rule.ports = multiport(info)?;
            rule.multiport = true;
        }
        // Source range, destination range, and for tcp option, flags and inversions.
        ("tcp" | "udp", 0) => {
            rule.ports = single_port(info, 4, &[(0, 0), (2, u16::MAX)], info.get(8..)?)?
        }
        ("sctp", 0) => rule.ports = single_port(info, 0, &[(4, 0), (6, u16::MAX)], info.get(8..)?)?,
        _ => return None,
    }
    Some(())
}

/// The target; `None` for one that has no field.
pub(crate) fn read_target(name: &str, revision: u32, info: &[u8], v6: bool) -> Option<Target> {
    match (name, revision) {
        // No flags: neither ports nor random order were asked for.
        ("MASQUERADE", 0) if v6 => (u32_at(info, 0)? == 0).then_some(Target::Masquerade),
        ("MASQUERADE", 0) => (u32_at(info, 4)? == 0).then_some(Target::Masquerade),
        ("DNAT", 0) if !v6 => {
            let plain = u32_at(info, 0)? == 1 && u32_at(info, 4)? == RANGE_BOTH;
            let same =
                info.get(8..12)? == info.get(12..16)? && info.get(16..18)? == info.get(18..20)?;
            let to = SocketAddr::from((v4_at(info, 8)?, be16_at(info, 16)?));
            (plain && same).then(|| Target::Dnat(to.to_string()))
        }
        ("DNAT", 1 | 2) => {
            let same =
                info.get(4..20)? == info.get(20..36)? && info.get(36..38)? == info.get(38..40)?;
            let to = match v6 {
                true => SocketAddr::from((v6_at(info, 4)?, be16_at(info, 36)?)),
                false => SocketAddr::from((v4_at(info, 4)?, be16_at(info, 36)?)),
            };
            (same && u32_at(info, 0)? == RANGE_BOTH).then(|| Target::Dnat(to.to_string()))
        }
        ("MARK", 2) => Some(Target::Mark(Marked {
            value: u32_at(info, 0)?,
            mask: u32_at(info, 4)?,
        })),
        ("CONNMARK", 1 | 2) => {
            // ctmark, ctmask, nfmask, mode (0: set), then in revision 2 a shift.
            let plain = *info.get(12)? == 0 && (revision == 1 || *info.get(14)? == 0);
            let mark = Marked {
                value: u32_at(info, 0)?,
                mask: u32_at(info, 4)?,
            };
            plain.then_some(Target::Connmark(mark))
        }
        _ => None,
    }
}

/// `xt_conntrack_mtinfo2`/`3`: eight addresses, two expiry times, a protocol, four ports, then which fields count.
fn conntrack_states(info: &[u8]) -> Option<u16> {
    let flags = 8 * 16 + 2 * 4 + 2 + 4 * 2;
    let plain = u16_at(info, flags)? == CONNTRACK_STATE && u16_at(info, flags + 2)? == 0;
    plain.then(|| states_of(u16_at(info, flags + 4)?))?
}

fn states_of(bits: u16) -> Option<u16> {
    // The kernel's bits are those of `state`.
    const KNOWN: u16 = state::INVALID
        | state::ESTABLISHED
        | state::RELATED
        | state::NEW
        | state::SNAT
        | state::DNAT
        | state::UNTRACKED;
    (bits & !KNOWN == 0).then_some(bits)
}

/// `xt_mark_mtinfo1`, `xt_connmark_mtinfo1`: mark, mask, inverted.
fn marked(info: &[u8]) -> Option<Marked> {
    (*info.get(8)? == 0).then_some(Marked {
        value: u32_at(info, 0)?,
        mask: u32_at(info, 4)?,
    })
}

/// `xt_multiport_v1`: which side, how many, 15 ports, 15 range flags, inverted.
fn multiport(info: &[u8]) -> Option<Vec<u16>> {
    let count = usize::from(*info.get(1)?);
    let ranges = info.get(32..32 + count)?.iter().any(|flag| *flag != 0);
    let plain = *info.first()? == MULTIPORT_DESTINATION && !ranges && *info.get(47)? == 0;
    plain.then(|| (0..count).map(|at| u16_at(info, 2 + 2 * at)).collect())?
}

/// One destination port, with everything else left open.
fn single_port(info: &[u8], at: usize, open: &[(usize, u16)], rest: &[u8]) -> Option<Vec<u16>> {
    let (first, last) = (u16_at(info, at)?, u16_at(info, at + 2)?);
    let others_open = open
        .iter()
        .all(|(at, value)| u16_at(info, *at) == Some(*value));
    let nothing_else = rest.iter().all(|byte| *byte == 0);
    (others_open && nothing_else && first == last).then(|| vec![first])
}

fn text(info: &[u8]) -> String {
    let end = info
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(info.len());
    String::from_utf8_lossy(info.get(..end).unwrap_or_default()).into_owned()
}

fn array_at<const N: usize>(info: &[u8], at: usize) -> Option<[u8; N]> {
    info.get(at..at + N)?.try_into().ok()
}

fn u16_at(info: &[u8], at: usize) -> Option<u16> {
    array_at(info, at).map(u16::from_ne_bytes)
}

fn be16_at(info: &[u8], at: usize) -> Option<u16> {
    array_at(info, at).map(u16::from_be_bytes)
}

fn u32_at(info: &[u8], at: usize) -> Option<u32> {
    array_at(info, at).map(u32::from_ne_bytes)
}

fn v4_at(info: &[u8], at: usize) -> Option<Ipv4Addr> {
    array_at::<4>(info, at).map(Ipv4Addr::from)
}

fn v6_at(info: &[u8], at: usize) -> Option<Ipv6Addr> {
    array_at::<16>(info, at).map(Ipv6Addr::from)
}
