//! Defaults, validation, containment and overlap of ranges and range sets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

use std::net::IpAddr;

use ipam_store::{Range, RangeError, RangeSet, RangeSpec, SetError, parse_sets};

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// `subnet [start|-] [end|-] [gateway]`.
fn spec(text: &str) -> RangeSpec {
    let mut words = text.split(' ');
    let subnet = words.next().map(|w| w.parse().unwrap());
    let mut next = || words.next().filter(|w| *w != "-").map(ip);
    RangeSpec {
        subnet,
        start: next(),
        end: next(),
        gateway: next(),
    }
}

fn range(text: &str) -> Range {
    Range::new(&spec(text)).unwrap()
}

fn refused(text: &str) -> String {
    Range::new(&spec(text)).unwrap_err().to_string()
}

#[test]
fn defaults() {
    for (text, start, end, gateway) in [
        ("192.0.2.0/24", "192.0.2.1", "192.0.2.254", "192.0.2.1"),
        ("192.0.2.0/25", "192.0.2.1", "192.0.2.126", "192.0.2.1"),
        ("192.0.2.12/30", "192.0.2.13", "192.0.2.14", "192.0.2.13"),
        (
            "2001:db8:1::/64",
            "2001:db8:1::1",
            "2001:db8:1::ffff:ffff:ffff:ffff",
            "2001:db8:1::1",
        ),
        (
            "2001:db8::/126",
            "2001:db8::1",
            "2001:db8::3",
            "2001:db8::1",
        ),
    ] {
        let r = range(text);
        assert_eq!(
            (r.start(), r.end(), r.gateway()),
            (ip(start), ip(end), ip(gateway)),
            "{text}"
        );
    }
}

#[test]
fn full_specification_is_kept() {
    let r = range("192.0.2.0/24 192.0.2.40 192.0.2.50 192.0.2.254");
    assert_eq!(
        (r.start(), r.end(), r.gateway()),
        (ip("192.0.2.40"), ip("192.0.2.50"), ip("192.0.2.254"))
    );
    assert_eq!(r.subnet().to_string(), "192.0.2.0/24");
    assert_eq!(r.to_string(), "192.0.2.40-192.0.2.50");
}

#[test]
fn explicit_ends_may_be_network_and_broadcast_address() {
    let r = range("192.0.2.0/24 192.0.2.0 192.0.2.255");
    assert!(r.contains(ip("192.0.2.0")) && r.contains(ip("192.0.2.255")));
}

#[test]
fn a_gateway_need_not_lie_in_the_subnet() {
    assert_eq!(
        range("192.0.2.0/24 - - 198.51.100.1").gateway(),
        ip("198.51.100.1")
    );
}

#[test]
fn v4_mapped_addresses_are_ipv4() {
    let r = range("192.0.2.0/24 ::ffff:192.0.2.40 ::ffff:192.0.2.50 ::ffff:192.0.2.1");
    assert_eq!(
        (r.start(), r.gateway()),
        (ip("192.0.2.40"), ip("192.0.2.1"))
    );
    assert!(r.contains(ip("::ffff:192.0.2.41")));
    assert!(matches!(
        Range::new(&spec("::ffff:192.0.2.0/120")),
        Err(RangeError::MixedMask(_))
    ));
}

#[test]
fn host_bits_are_refused_with_the_right_network() {
    for (text, network) in [
        ("192.0.2.12/24", "192.0.2.0"),
        ("192.0.2.13/30", "192.0.2.12"),
        ("2001:db8:1::24:19ff:fee1:c44a/64", "2001:db8:1::"),
    ] {
        let message = refused(text);
        assert!(
            message.contains("host bits") && message.ends_with(network),
            "{message}"
        );
    }
}

#[test]
fn small_networks_are_refused() {
    for text in [
        "192.0.2.0/31",
        "192.0.2.1/32",
        "2001:db8::/127",
        "2001:db8::1/128",
    ] {
        assert!(
            refused(text).contains("too small to allocate from"),
            "{text}"
        );
    }
}

#[test]
fn starts_and_ends_outside_are_refused() {
    for (text, gist) in [
        (
            "192.0.2.0/24 192.0.3.0",
            "rangeStart 192.0.3.0 not in network 192.0.2.0/24",
        ),
        (
            "192.0.2.0/24 192.0.1.255",
            "rangeStart 192.0.1.255 not in network",
        ),
        (
            "192.0.2.0/24 - 192.0.3.0",
            "rangeEnd 192.0.3.0 not in network",
        ),
        (
            "192.0.2.0/24 - 192.0.1.0",
            "rangeEnd 192.0.1.0 not in network",
        ),
        (
            "192.0.2.0/24 2001:db8::1",
            "rangeStart 2001:db8::1 not in network",
        ),
        (
            "2001:db8::/64 192.0.2.1",
            "rangeStart 192.0.2.1 not in network",
        ),
        (
            "192.0.2.0/24 192.0.2.50 192.0.2.40",
            "rangeStart 192.0.2.50 comes after rangeEnd 192.0.2.40",
        ),
    ] {
        let message = refused(text);
        assert!(message.contains(gist), "{message}");
    }
    assert_eq!(Range::new(&RangeSpec::default()), Err(RangeError::NoSubnet));
}

#[test]
fn containment() {
    let v4 = range("192.0.2.0/24 192.0.2.40 192.0.2.50");
    for (address, inside) in [
        ("192.0.2.39", false),
        ("192.0.2.40", true),
        ("192.0.2.50", true),
        ("192.0.2.51", false),
        ("192.0.3.45", false),
        ("2001:db8::1", false),
    ] {
        assert_eq!(v4.contains(ip(address)), inside, "{address}");
    }
    let v6 = range("2001:db8:1::/64 2001:db8:1::40 2001:db8:1::50");
    for (address, inside) in [
        ("2001:db8:1::39", false),
        ("2001:db8:1::40", true),
        ("2001:db8:1::50", true),
        ("2001:db8:1::51", false),
        ("192.0.2.40", false),
    ] {
        assert_eq!(v6.contains(ip(address)), inside, "{address}");
    }
}

#[test]
fn overlap() {
    for (a, b, overlaps) in [
        ("192.0.2.0/24", "192.0.3.0/24", false),
        ("192.0.2.0/24", "2001:db8::/64", false),
        ("192.0.2.0/24", "192.0.2.0/24", true),
        ("192.0.0.0/16", "192.0.2.0/24", true),
        (
            "192.0.2.0/24 192.0.2.10 192.0.2.20",
            "192.0.2.0/24 192.0.2.21 192.0.2.30",
            false,
        ),
        (
            "192.0.2.0/24 192.0.2.10 192.0.2.20",
            "192.0.2.0/24 192.0.2.20 192.0.2.30",
            true,
        ),
        (
            "192.0.2.0/24 192.0.2.10 192.0.2.30",
            "192.0.2.0/24 192.0.2.15 192.0.2.20",
            true,
        ),
    ] {
        assert_eq!(range(a).overlaps(&range(b)), overlaps, "{a} {b}");
        assert_eq!(range(b).overlaps(&range(a)), overlaps, "{b} {a}");
    }
}

#[test]
fn sets_are_checked_inside_and_against_each_other() {
    let sets = |texts: &[&[&str]]| {
        parse_sets(
            texts
                .iter()
                .map(|set| set.iter().map(|t| spec(t)).collect())
                .collect(),
        )
    };
    assert_eq!(
        sets(&[&["192.0.2.0/25", "192.0.2.128/25"], &["2001:db8::/64"]])
            .unwrap()
            .len(),
        2
    );
    assert_eq!(sets(&[]), Err(SetError::None));
    for (texts, gist) in [
        (
            &[&["192.0.2.0/24"][..], &[]][..],
            "invalid range set 1: empty range set",
        ),
        (
            &[&["192.0.2.0/24", "2001:db8::/64"]],
            "invalid range set 0: mixed address families",
        ),
        (
            &[&["192.0.2.0/24", "192.0.2.0/25"]],
            "invalid range set 0: subnets 192.0.2.1-192.0.2.254 and 192.0.2.1-192.0.2.126 overlap",
        ),
        (
            &[&["192.0.2.0/31"]],
            "invalid range set 0: network 192.0.2.0/31 too small",
        ),
        (
            &[&["192.0.2.0/24"], &["192.0.3.0/24"], &["192.0.2.0/25"]],
            "range set 0 overlaps with 2",
        ),
    ] {
        let message = sets(texts).unwrap_err().to_string();
        assert!(message.contains(gist), "{message}");
    }
}

#[test]
fn set_membership() {
    let set = RangeSet::new(vec![spec("192.0.2.0/28"), spec("192.0.4.0/28")]).unwrap();
    assert_eq!(
        set.range_of(ip("192.0.4.3")).unwrap().subnet().to_string(),
        "192.0.4.0/28"
    );
    assert!(set.range_of(ip("192.0.3.1")).is_none());
    assert_eq!(set.to_string(), "192.0.2.1-192.0.2.14,192.0.4.1-192.0.4.14");
    assert!(set.is_ipv4());
}
