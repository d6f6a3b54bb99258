//! Addresses as the specification spells them.

use ipnetwork::IpNetwork;
use serde::{Deserialize, Deserializer, de};
use std::net::IpAddr;
use std::str::FromStr;

/// The text is no address, or no address with a prefix length.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not `address/prefix`.
    #[error("invalid CIDR address: {0}")]
    Cidr(String),
    /// Not an address.
    #[error("invalid IP address: {0}")]
    Ip(String),
}

/// Reads `address/prefix` and keeps the host bits. An IPv4-mapped IPv6 address is IPv4.
///
/// # Errors
///
/// [`AddressError::Cidr`], also when the prefix length is missing.
pub fn parse_cidr(text: &str) -> Result<IpNetwork, AddressError> {
    cidr(text).ok_or_else(|| AddressError::Cidr(text.to_owned()))
}

fn cidr(text: &str) -> Option<IpNetwork> {
    let (address, length) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let length: u8 = length
        .bytes()
        .all(|b| b.is_ascii_digit())
        .then(|| length.parse().ok())??;
    match address.to_canonical() {
        IpAddr::V4(v4) if address.is_ipv6() => {
            let length = (length <= 128).then(|| length.saturating_sub(96))?;
            IpNetwork::new(v4.into(), length).ok()
        }
        address => IpNetwork::new(address, length).ok(),
    }
}

/// Reads an address without prefix length. An IPv4-mapped IPv6 address is IPv4.
///
/// # Errors
///
/// [`AddressError::Ip`].
pub fn parse_ip(text: &str) -> Result<IpAddr, AddressError> {
    IpAddr::from_str(text)
        .map(|address| address.to_canonical())
        .map_err(|_| AddressError::Ip(text.to_owned()))
}

/// For `#[serde(deserialize_with = "cni_types::net::cidr_field")]`: an `address/prefix`.
///
/// # Errors
///
/// When the value is no string, or not of that form.
pub fn cidr_field<'de, D: Deserializer<'de>>(deserializer: D) -> Result<IpNetwork, D::Error> {
    parse_cidr(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// For `#[serde(default, deserialize_with = "cni_types::net::optional_cidr")]`: an
/// `address/prefix`, where `""` means unset.
///
/// # Errors
///
/// When the value is no string, or not of that form.
pub fn optional_cidr<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<IpNetwork>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        Ok(None)
    } else {
        parse_cidr(&text).map(Some).map_err(de::Error::custom)
    }
}

/// For `#[serde(default, deserialize_with = "cni_types::net::optional_ip")]`: an address, where
/// `""` means unset, as some runtimes send it.
///
/// # Errors
///
/// When the value is no string, or not an address.
pub fn optional_ip<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<IpAddr>, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.is_empty() {
        Ok(None)
    } else {
        parse_ip(&text).map(Some).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cidr_keeps_host_bits() {
        for (text, printed) in [
            ("10.1.2.3/8", "10.1.2.3/8"),
            ("fd00::1/64", "fd00::1/64"),
            ("::ffff:10.0.0.2/120", "10.0.0.2/24"),
            ("10.0.0.1/024", "10.0.0.1/24"),
        ] {
            assert_eq!(parse_cidr(text).unwrap().to_string(), printed);
        }
        for bad in [
            "10.0.0.1",
            "10.0.0.1/33",
            "010.0.0.1/8",
            "<nil>",
            "",
            "/",
            "10.0.0.1/+8",
            "10.0.0.1/",
            "fe80::1%eth0/64",
            "::ffff:10.0.0.2/129",
            "10.0.0.1/255.0.0.0",
            " 10.0.0.1/8",
        ] {
            assert_eq!(parse_cidr(bad), Err(AddressError::Cidr(bad.into())));
        }
    }

    #[test]
    fn plain_addresses() {
        assert_eq!(parse_ip("::ffff:10.0.0.2").unwrap().to_string(), "10.0.0.2");
        assert!(parse_ip("").is_err());
        assert!(parse_ip("10.0.0.1/8").is_err());
    }
}
