//! Reading netlink attributes.
//!
//! Answers are read attribute by attribute, taking only those this crate knows, so that an attribute of a newer kernel or of
//! a foreign kind of link can never make a whole listing unreadable.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use netlink_packet_core::{NLA_ALIGNTO, NLA_HEADER_SIZE, NLA_TYPE_MASK};

/// The attributes in `bytes` as (type without flag bits, value); ends at the first malformed one.
pub(crate) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, k0, k1] = *bytes.first_chunk::<NLA_HEADER_SIZE>()?;
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = bytes.get(NLA_HEADER_SIZE..length)?;
        bytes = bytes
            .get(length.next_multiple_of(NLA_ALIGNTO)..)
            .unwrap_or_default();
        Some((u16::from_ne_bytes([k0, k1]) & NLA_TYPE_MASK, value))
    })
}

pub(crate) fn as_u8(value: &[u8]) -> Option<u8> {
    value.first().copied()
}

pub(crate) fn as_u16(value: &[u8]) -> Option<u16> {
    value
        .first_chunk::<2>()
        .map(|bytes| u16::from_ne_bytes(*bytes))
}

pub(crate) fn as_u32(value: &[u8]) -> Option<u32> {
    value
        .first_chunk::<4>()
        .map(|bytes| u32::from_ne_bytes(*bytes))
}

pub(crate) fn as_i32(value: &[u8]) -> Option<i32> {
    value
        .first_chunk::<4>()
        .map(|bytes| i32::from_ne_bytes(*bytes))
}

/// Text up to the first NUL. Interface names and aliases are any bytes to the kernel: what is not UTF-8 is replaced.
pub(crate) fn as_text(value: &[u8]) -> String {
    let end = value.iter().position(|b| *b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(value.get(..end).unwrap_or_default()).into_owned()
}

pub(crate) fn as_ip(value: &[u8]) -> Option<IpAddr> {
    if let Ok(octets) = <[u8; 4]>::try_from(value) {
        return Some(Ipv4Addr::from(octets).into());
    }
    <[u8; 16]>::try_from(value)
        .ok()
        .map(|octets| Ipv6Addr::from(octets).into())
}
