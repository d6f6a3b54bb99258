//! Ethernet hardware addresses.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::sys;

/// A 48-bit hardware address. Compares by value, so upper and lower case are the same address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct MacAddr([u8; 6]);

impl MacAddr {
    /// The broadcast address, `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// From its six bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }

    /// A random, locally administered, individual address.
    ///
    /// Giving a link its own address instead of leaving the choice to the kernel marks it as set on purpose:
    /// a bridge then does not take over the address of a port, and udev does not replace it a moment later.
    ///
    /// # Errors
    /// If the kernel has no random bytes.
    pub fn random() -> Result<Self> {
        let mut bytes = sys::random::<6>().map_err(|source| Error::Io {
            what: "choose",
            object: "a random hardware address".to_owned(),
            source,
        })?;
        bytes[0] = bytes[0] & !0x01 | 0x02;
        Ok(Self(bytes))
    }

    /// The IPv6 link-local address that a link with this address gives itself (RFC 4291, appendix A).
    #[must_use]
    pub fn link_local(self) -> Ipv6Addr {
        let [a, b, c, d, e, f] = self.0;
        let id = [a ^ 0x02, b, c, 0xff, 0xfe, d, e, f];
        Ipv6Addr::from_bits((0xfe80 << 112) | u128::from(u64::from_be_bytes(id)))
    }

    /// Whether an interface can have it: it is neither zero nor that of a group of stations (the lowest bit of the first byte).
    #[must_use]
    pub const fn is_of_a_station(self) -> bool {
        let [first, ..] = self.0;
        first & 1 == 0 && !matches!(self.0, [0, 0, 0, 0, 0, 0])
    }

    /// The six bytes.
    #[must_use]
    pub const fn octets(self) -> [u8; 6] {
        self.0
    }
}

impl From<[u8; 6]> for MacAddr {
    fn from(bytes: [u8; 6]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// Reads `02:00:00:00:00:01`, `02-00-00-00-00-01` and `0200.0000.0001`, in either case.
impl FromStr for MacAddr {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        parse(text).map(Self).ok_or_else(|| Error::BadMac {
            text: text.to_owned(),
        })
    }
}

fn parse(text: &str) -> Option<[u8; 6]> {
    let (separator, group) = match text.as_bytes().get(2)? {
        b':' => (':', 2),
        b'-' => ('-', 2),
        _ => ('.', 4),
    };
    let mut digits = String::with_capacity(12);
    for part in text.split(separator) {
        if part.len() != group || !part.bytes().all(|b| b.is_ascii_hexdigit()) {
            return None;
        }
        digits.push_str(part);
    }
    if digits.len() != 12 {
        return None;
    }
    let value = u64::from_str_radix(&digits, 16).ok()?;
    let [_, _, bytes @ ..] = value.to_be_bytes();
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_three_spellings() {
        let wanted = MacAddr::new([0x02, 0, 0xab, 0, 0, 3]);
        for text in ["02:00:ab:00:00:03", "02-00-AB-00-00-03", "0200.ab00.0003"] {
            assert_eq!(text.parse::<MacAddr>().unwrap(), wanted, "{text}");
        }
        assert_eq!(wanted.to_string(), "02:00:ab:00:00:03");
    }

    #[test]
    fn link_local_address() {
        let mac: MacAddr = "34:56:78:9a:bc:de".parse().unwrap();
        assert_eq!(mac.link_local().to_string(), "fe80::3656:78ff:fe9a:bcde");
    }

    #[test]
    fn refuses_the_rest() {
        let bad = [
            "",
            "02",
            "02:",
            "02:00:00:00:00",
            "02:00:00:00:00:00:00",
            "02:00:00:00:00:0g",
            "02:00-00:00:00:00",
            "+2:00:00:00:00:00",
            "0200.0000.00",
            "02:00:5e:10:00:00:00:01",
            "é2:00:00:00:00:00",
            "020000000003",
        ];
        for text in bad {
            let error = text.parse::<MacAddr>().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("address {text}: invalid MAC address")
            );
        }
    }

    #[test]
    fn random_ones_are_local_individual_and_differ() {
        let (a, b) = (MacAddr::random().unwrap(), MacAddr::random().unwrap());
        assert_eq!(a.octets()[0] & 0x03, 0x02);
        assert_eq!(b.octets()[0] & 0x03, 0x02);
        assert_ne!(a, b);
    }
}
