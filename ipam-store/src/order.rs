//! The order in which a set's addresses are tried: round robin, from the one after the last reserved.

use std::net::IpAddr;

use crate::range::{Range, key};
use crate::rangeset::RangeSet;

/// A run of addresses of one range, tried from `first` to `last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment<'a> {
    pub(crate) range: &'a Range,
    pub(crate) first: u128,
    pub(crate) last: u128,
}

/// Cuts a set into the runs in which it is walked. Every address occurs once, the last reserved one at the very end;
/// a `last_reserved` that is not of this set means "from the beginning".
pub(crate) fn walk(set: &RangeSet, last_reserved: Option<IpAddr>) -> Vec<Segment<'_>> {
    let ranges = set.ranges();
    let at = last_reserved.and_then(|ip| {
        let index = ranges.iter().position(|range| range.contains(ip))?;
        Some((index, key(ip.to_canonical())))
    });
    let Some((index, last_reserved)) = at else {
        return ranges.iter().map(whole).collect();
    };
    let mut segments = Vec::with_capacity(ranges.len() + 1);
    let (before, from) = ranges.split_at(index);
    let Some((current, after)) = from.split_first() else {
        return segments;
    };
    if last_reserved < current.last() {
        segments.push(Segment {
            first: last_reserved.saturating_add(1),
            ..whole(current)
        });
    }
    segments.extend(after.iter().chain(before).map(whole));
    segments.push(Segment {
        last: last_reserved,
        ..whole(current)
    });
    segments
}

fn whole(range: &Range) -> Segment<'_> {
    Segment {
        range,
        first: range.first(),
        last: range.last(),
    }
}

/// Finds the first address in walking order for which `next_free(from, to)` has one, leaving out each range's gateway.
///
/// # Errors
/// Passes on what `next_free` returns.
pub(crate) fn first_free<'a, E>(
    segments: &[Segment<'a>],
    mut next_free: impl FnMut(u128, u128) -> Result<Option<u128>, E>,
) -> Result<Option<(u128, &'a Range)>, E> {
    for segment in segments {
        let gateway = key(segment.range.gateway());
        let mut from = segment.first;
        while from <= segment.last {
            match next_free(from, segment.last)? {
                Some(found) if found == gateway && found < u128::MAX => from = found + 1,
                Some(found) if found != gateway => return Ok(Some((found, segment.range))),
                _ => break,
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::range::{RangeSpec, ip};

    fn set(texts: &[&str]) -> RangeSet {
        let spec = |t: &&str| RangeSpec::subnet(t.parse().unwrap());
        RangeSet::new(texts.iter().map(spec).collect()).unwrap()
    }

    /// All candidates in order.
    fn candidates(set: &RangeSet, last: Option<&str>) -> Vec<String> {
        let segments = walk(set, last.map(|l| l.parse().unwrap()));
        let mut seen = std::collections::HashSet::new();
        let mut found = Vec::new();
        while let Some((key, _)) = first_free(&segments, |from, to| {
            Ok::<_, ()>((from..=to).find(|k| !seen.contains(k)))
        })
        .unwrap()
        {
            seen.insert(key);
            found.push(ip(key).to_string());
        }
        found
    }

    #[test]
    fn from_the_start_without_a_counter() {
        let set = set(&["192.0.2.0/29", "192.0.2.8/29"]);
        let all = candidates(&set, None);
        assert_eq!(all.first().unwrap(), "192.0.2.2");
        assert_eq!(all.len(), 5 + 5);
    }

    #[test]
    fn from_the_middle_of_several_ranges() {
        let set = set(&["192.0.2.0/29", "192.0.2.8/29"]);
        assert_eq!(
            candidates(&set, Some("192.0.2.11")),
            ["12", "13", "14", "2", "3", "4", "5", "6", "10", "11"].map(|n| format!("192.0.2.{n}"))
        );
    }

    #[test]
    fn from_the_end_of_a_range_on_to_the_next() {
        let set = set(&["192.0.2.0/29", "192.0.2.8/29"]);
        let first = |last| candidates(&set, Some(last)).first().unwrap().clone();
        assert_eq!(first("192.0.2.6"), "192.0.2.10");
        assert_eq!(first("192.0.2.14"), "192.0.2.2");
    }

    #[test]
    fn a_counter_of_elsewhere_means_from_the_start() {
        let set = set(&["192.0.2.0/29"]);
        assert_eq!(
            candidates(&set, Some("198.51.100.1")),
            candidates(&set, None)
        );
        assert_eq!(
            candidates(&set, Some("2001:db8::1")),
            candidates(&set, None)
        );
    }

    #[test]
    fn small_networks_to_their_last_address() {
        assert_eq!(candidates(&set(&["192.0.2.0/30"]), None), ["192.0.2.2"]);
        assert_eq!(
            candidates(&set(&["2001:db8::/126"]), None),
            ["2001:db8::2", "2001:db8::3"]
        );
        assert_eq!(
            candidates(&set(&["192.0.2.0/29"]), Some("192.0.2.6")).len(),
            5
        );
    }

    #[test]
    fn the_ends_of_the_number_space_do_not_overflow() {
        let high = set(&["ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124"]);
        let all = candidates(&high, Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
        assert_eq!(all.len(), 14);
        let gateway_last = RangeSet::new(vec![RangeSpec {
            gateway: Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap()),
            ..RangeSpec::subnet(
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124"
                    .parse()
                    .unwrap(),
            )
        }])
        .unwrap();
        assert_eq!(candidates(&gateway_last, None).len(), 14);
        assert_eq!(candidates(&set(&["0.0.0.0/29"]), None).len(), 5);
        assert_eq!(candidates(&set(&["255.255.255.248/29"]), None).len(), 5);
    }

    proptest! {
        /// The order is what a plain list of all addresses gives when it is turned so that the last reserved one ends it.
        #[test]
        fn is_a_turned_list(
            prefixes in proptest::collection::vec(26u8..=30, 1..4),
            v6 in any::<bool>(),
            last in proptest::option::of(0usize..200),
        ) {
            let texts: Vec<String> = prefixes.iter().enumerate().map(|(i, p)| match v6 {
                true => format!("2001:db8:{i}::/{}", p + 96),
                false => format!("10.0.{i}.0/{p}"),
            }).collect();
            let set = set(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let plain: Vec<u128> = set.ranges().iter().flat_map(|r| r.first()..=r.last()).collect();
            let gateways: Vec<u128> = set.ranges().iter().map(|r| key(r.gateway())).collect();
            let last = last.map(|l| l % plain.len());
            let turn = last.map_or(0, |l| (l + 1) % plain.len());
            let mut expected = plain.clone();
            expected.rotate_left(turn);
            expected.retain(|k| !gateways.contains(k));
            let expected: Vec<String> = expected.into_iter().map(|k| ip(k).to_string()).collect();
            let last = last.map(|l| ip(plain[l]).to_string());
            prop_assert_eq!(candidates(&set, last.as_deref()), expected);
        }
    }
}
