//! Groups of expressions that match something, in the words of `nft`.

use std::net::IpAddr;

use ipnetwork::IpNetwork;

use super::expr::{self, Expr, Part, ct_key, meta_key, reg};

/// One of the two IP families.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ip {
    V4,
    V6,
}

impl Ip {
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() {
            Self::V4
        } else {
            Self::V6
        }
    }

    /// The NFPROTO_ number.
    pub fn nfproto(self) -> u8 {
        match self {
            Self::V4 => 2,
            Self::V6 => 10,
        }
    }

    pub(super) fn saddr(self) -> Part {
        match self {
            Self::V4 => Part::IP_SADDR,
            Self::V6 => Part::IP6_SADDR,
        }
    }

    pub(super) fn daddr(self) -> Part {
        match self {
            Self::V4 => Part::IP_DADDR,
            Self::V6 => Part::IP6_DADDR,
        }
    }
}

/// The bytes of an address.
pub(crate) fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// `meta nfproto …`
pub(super) fn family(ip: Ip) -> Vec<Expr> {
    vec![
        expr::meta(meta_key::NFPROTO, reg::R1),
        expr::cmp(true, &[ip.nfproto()]),
    ]
}

/// `ip saddr|daddr [!=] net`; the part must be of the network's family.
pub(super) fn address(part: Part, net: IpNetwork, equal: bool) -> Vec<Expr> {
    let mut exprs = family(Ip::of(net.ip()));
    let bits = usize::from(net.prefix());
    let network = octets(net.network());
    let whole_bytes = bits.div_ceil(8);
    let head = network.get(..whole_bytes).unwrap_or_default();
    if bits % 8 == 0 {
        exprs.push(expr::payload(
            part.first(u32::from(net.prefix() / 8)),
            reg::R1,
        ));
        exprs.push(expr::cmp(equal, head));
    } else {
        exprs.push(expr::payload(part, reg::R1));
        exprs.push(expr::bitwise(&octets(net.mask()), &vec![0; network.len()]));
        exprs.push(expr::cmp(equal, &network));
    }
    exprs
}

/// `ip saddr|daddr @set`
pub(super) fn address_in(ip: Ip, part: Part, set: &str) -> Vec<Expr> {
    let mut exprs = family(ip);
    exprs.extend([expr::payload(part, reg::R1), expr::lookup(set, false)]);
    exprs
}

/// `ct state|status|mark & bits != 0`
pub(super) fn ct_bits(key: u32, bits: u32) -> Vec<Expr> {
    vec![
        expr::ct(key, reg::R1),
        expr::bitwise(&bits.to_ne_bytes(), &[0; 4]),
        expr::cmp(false, &[0; 4]),
    ]
}

/// `ct status dnat`
pub(super) fn dnated() -> Vec<Expr> {
    ct_bits(ct_key::STATUS, expr::STATUS_DNAT)
}

/// `iifname|oifname [!=] "name"`; a name that ends with `*` stands for all that begin so.
pub(super) fn interface(key: u32, name: &str, equal: bool) -> Vec<Expr> {
    let value = match name.strip_suffix('*') {
        Some(beginning) => beginning.as_bytes().to_vec(),
        None => ifname(name).to_vec(),
    };
    vec![expr::meta(key, reg::R1), expr::cmp(equal, &value)]
}

/// `iifname|oifname @set`
pub(super) fn interface_in(key: u32, set: &str) -> Vec<Expr> {
    vec![expr::meta(key, reg::R1), expr::lookup(set, false)]
}

/// `meta l4proto . th dport . ip daddr`, loaded for a look-up.
pub(super) fn load_forwarded(ip: Ip) -> Vec<Expr> {
    let mut exprs = family(ip);
    exprs.extend([
        expr::meta(meta_key::L4PROTO, reg::R1),
        expr::payload(Part::TH_DPORT, reg::R1_AT_4),
        expr::payload(ip.daddr(), reg::R1_AT_8),
    ]);
    exprs
}

/// An interface name as a 16-byte register value.
pub(crate) fn ifname(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    // The last byte stays zero: kernel names are at most 15 bytes.
    for (place, byte) in bytes.iter_mut().take(15).zip(name.bytes()) {
        *place = byte;
    }
    bytes
}
