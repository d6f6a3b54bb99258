//! Keys that several plugins read in the same way.

use cni_types::Args;
use cni_types::result::Dns;
use ipnetwork::IpNetwork;
use netlink::MacAddr;
use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;

/// The smallest MTU that an interface can have, in bytes (RFC 791, section 3.2).
pub const MTU_MIN: i64 = 68;

/// The largest MTU that the kernel can hold, in bytes: a link's is a C `int`.
pub const MTU_MAX: i64 = i32::MAX as i64;

/// The MTU to set, in bytes, of the key `mtu`; 0 leaves it to the kernel, and so does a negative number, as in the
/// reference set.
///
/// # Errors
/// [`Error::Mtu`] if no interface can be that small, [`Error::MtuBeyond`] if none can be that large.
pub fn mtu(value: i64) -> Result<Option<u32>, Error> {
    if (1..MTU_MIN).contains(&value) {
        return Err(Error::Mtu(value));
    }
    if value > MTU_MAX {
        return Err(Error::MtuBeyond(value));
    }
    Ok(u32::try_from(value).ok().filter(|mtu| *mtu > 0))
}

/// The MAC address that is asked for: the first of the places that says anything.
///
/// # Errors
/// [`Error::Mac`] if that is no MAC address, [`Error::MacOfNobody`] if no interface can have it.
pub fn mac<'a>(places: impl IntoIterator<Item = &'a str>) -> Result<Option<MacAddr>, Error> {
    let Some(text) = places.into_iter().find(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let mac: MacAddr = text.parse().map_err(|source| Error::Mac {
        text: text.to_owned(),
        source,
    })?;
    if mac.is_of_a_station() {
        Ok(Some(mac))
    } else {
        Err(Error::MacOfNobody(mac))
    }
}

/// `MAC` of `CNI_ARGS`; empty if it is not there.
pub fn mac_of_args(args: &Args) -> &str {
    args.get("MAC").unwrap_or_default()
}

/// The part of `runtimeConfig` with the capability `mac`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RuntimeMac {
    /// The MAC address; empty for none.
    pub mac: String,
}

/// The `dns` key; a list that is present counts, even when it is empty.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct DnsConfig {
    nameservers: Option<Vec<String>>,
    domain: String,
    search: Option<Vec<String>>,
    options: Option<Vec<String>>,
}

/// The result's DNS: the configuration's if it says anything, else IPAM's.
pub fn dns(configured: Option<&DnsConfig>, from_ipam: Dns) -> Dns {
    match configured {
        Some(dns) if dns.says_something() => Dns {
            nameservers: dns.nameservers.clone().unwrap_or_default(),
            domain: dns.domain.clone(),
            search: dns.search.clone().unwrap_or_default(),
            options: dns.options.clone().unwrap_or_default(),
        },
        _ => from_ipam,
    }
}

impl DnsConfig {
    fn says_something(&self) -> bool {
        let lists = [&self.nameservers, &self.search, &self.options];
        !self.domain.is_empty() || lists.iter().any(|list| list.is_some())
    }
}

/// Every subnet that these parts of a configuration mention, such as IPAM's.
pub fn subnets<'a>(parts: impl IntoIterator<Item = &'a Value>) -> Vec<IpNetwork> {
    let mut found = Vec::new();
    for part in parts {
        collect_subnets(part, &mut found);
    }
    found
}

fn collect_subnets(value: &Value, found: &mut Vec<IpNetwork>) {
    match value {
        Value::String(text) if text.contains('/') => found.extend(text.parse::<IpNetwork>()),
        Value::Array(items) => items.iter().for_each(|item| collect_subnets(item, found)),
        Value::Object(map) => map
            .iter()
            // Routes name networks elsewhere.
            .filter(|(key, _)| !key.eq_ignore_ascii_case("routes"))
            .for_each(|(_, item)| collect_subnets(item, found)),
        _ => {}
    }
}
