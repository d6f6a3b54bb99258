//! Whatever bytes come instead of an answer, reading them ends, and never in a panic.

use proptest::prelude::*;

use crate::{addr, link, nla, route, socket, tc, vlan};

/// Attributes whose header is likely to make sense, so that the readers get past it.
fn attribute() -> impl Strategy<Value = Vec<u8>> {
    (
        0_u16..70,
        any::<bool>(),
        prop::collection::vec(any::<u8>(), 0..40),
    )
        .prop_map(|(kind, lie, value)| {
            let length = u16::try_from(value.len() + 4).unwrap() + u16::from(lie);
            let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
            bytes.extend(value);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        })
}

/// A fixed header of the given length and attributes behind it, nested up to twice.
fn payload(header: usize) -> impl Strategy<Value = Vec<u8>> {
    let leaves = prop::collection::vec(attribute(), 0..6)
        .prop_map(|list| list.concat())
        .boxed();
    let nested = (
        prop_oneof![Just(18_u16), Just(26), Just(9), 0_u16..60],
        leaves.clone(),
    )
        .prop_map(|(kind, inner)| {
            let length = u16::try_from(inner.len() + 4).unwrap();
            [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &inner].concat()
        });
    (prop::collection::vec(any::<u8>(), header), leaves, nested)
        .prop_map(|(head, flat, deep)| [head, flat, deep].concat())
}

fn read_as_everything(bytes: &[u8]) {
    for kind in [16, 17, 20, 21, 24, 25, 36, 44] {
        let _ = link::parse(kind, bytes);
        let _ = addr::parse(kind, bytes);
        let _ = route::parse(kind, bytes);
        let _ = vlan::parse(kind, bytes, 0);
        let _ = tc::parse_qdisc(kind, bytes);
        let _ = tc::parse_filter(kind, bytes);
    }
    socket::messages(bytes).for_each(drop);
    nla::attributes(bytes).for_each(drop);
}

proptest! {
    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn likely_messages(link in payload(16), route in payload(12), address in payload(8)) {
        for bytes in [link, route, address] {
            read_as_everything(&bytes);
        }
    }
}

/// Lengths that would keep a careless loop on the spot or lead it astray.
#[test]
fn lengths_that_lie() {
    for length in [0_u16, 1, 3, 4, 5, u16::MAX] {
        let bytes = [&length.to_ne_bytes()[..], &[0; 30]].concat();
        read_as_everything(&bytes);
        let bytes = [&[0; 12][..], &length.to_ne_bytes(), &[0; 30]].concat();
        read_as_everything(&bytes);
    }
}
