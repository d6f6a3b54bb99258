//! Expressions of rules, as the kernel takes them. Registers and forms are those `nft` uses, so it prints them back.

use crate::nfnl::Writer;
use crate::nfnl::consts::{data, verdict};

/// Registers: three of 16 bytes, and 4-byte views of them (NFT_REG32_01 is bytes 4 to 8 of the first).
pub(super) mod reg {
    pub const VERDICT: u32 = 0;
    pub const R1: u32 = 1;
    pub const R2: u32 = 2;
    pub const R1_AT_4: u32 = 9;
    pub const R1_AT_8: u32 = 10;
    pub const R2_AT_4: u32 = 13;
}

/// Meta keys.
pub(super) mod meta_key {
    pub const IIFNAME: u32 = 6;
    pub const OIFNAME: u32 = 7;
    pub const NFPROTO: u32 = 15;
    pub const L4PROTO: u32 = 16;
}

/// Conntrack keys.
pub(super) mod ct_key {
    pub const STATE: u32 = 0;
    pub const STATUS: u32 = 2;
    pub const MARK: u32 = 3;
}

/// Conntrack state bits, and the status bit of a connection whose destination was rewritten (IPS_DST_NAT).
pub(super) const STATE_ESTABLISHED: u32 = 2;
pub(super) const STATE_RELATED: u32 = 4;
pub(super) const STATE_NEW: u32 = 8;
pub(super) const STATUS_DNAT: u32 = 0x20;

/// Packet header parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    base: u32,
    offset: u32,
    pub len: u32,
}

impl Part {
    pub const IP_SADDR: Self = Self {
        base: 1,
        offset: 12,
        len: 4,
    };
    pub const IP_DADDR: Self = Self {
        base: 1,
        offset: 16,
        len: 4,
    };
    pub const IP6_SADDR: Self = Self {
        base: 1,
        offset: 8,
        len: 16,
    };
    pub const IP6_DADDR: Self = Self {
        base: 1,
        offset: 24,
        len: 16,
    };
    pub const TH_DPORT: Self = Self {
        base: 2,
        offset: 2,
        len: 2,
    };
    pub const ETHER_SADDR: Self = Self {
        base: 0,
        offset: 6,
        len: 6,
    };

    /// Only the first bytes of the part.
    pub fn first(self, len: u32) -> Self {
        Self { len, ..self }
    }
}

/// One encoded expression.
#[derive(Debug, Clone)]
pub(crate) struct Expr {
    pub name: &'static str,
    /// The attributes inside NFTA_EXPR_DATA.
    pub attrs: Writer,
}

fn expr(name: &'static str, fill: impl FnOnce(&mut Writer)) -> Expr {
    let mut attrs = Writer::default();
    fill(&mut attrs);
    Expr { name, attrs }
}

fn value(w: &mut Writer, kind: u16, bytes: &[u8]) {
    w.nest(kind, |w| {
        w.bytes(data::VALUE, bytes);
    });
}

/// Loads a meta key into a register.
pub(super) fn meta(key: u32, dreg: u32) -> Expr {
    expr("meta", |w| {
        w.u32(2, key).u32(1, dreg);
    })
}

/// Loads a part of the packet.
pub(super) fn payload(part: Part, dreg: u32) -> Expr {
    expr("payload", |w| {
        w.u32(1, dreg)
            .u32(2, part.base)
            .u32(3, part.offset)
            .u32(4, part.len);
    })
}

/// Loads a conntrack key.
pub(super) fn ct(key: u32, dreg: u32) -> Expr {
    expr("ct", |w| {
        w.u32(2, key).u32(1, dreg);
    })
}

/// Stores the first register as the conntrack mark.
pub(super) fn ct_set_mark() -> Expr {
    expr("ct", |w| {
        w.u32(2, ct_key::MARK).u32(4, reg::R1);
    })
}

/// Compares the first register.
pub(super) fn cmp(equal: bool, bytes: &[u8]) -> Expr {
    expr("cmp", |w| {
        w.u32(1, reg::R1).u32(2, u32::from(!equal));
        value(w, 3, bytes);
    })
}

/// First register = (first register & mask) ^ xor.
pub(super) fn bitwise(mask: &[u8], xor: &[u8]) -> Expr {
    expr("bitwise", |w| {
        w.u32(1, reg::R1)
            .u32(2, reg::R1)
            .u32(3, u32::try_from(mask.len()).unwrap_or(0));
        value(w, 4, mask);
        value(w, 5, xor);
    })
}

/// Looks the first register up in a set.
pub(super) fn lookup(set: &str, inverted: bool) -> Expr {
    expr("lookup", |w| {
        w.text(1, set).u32(2, reg::R1);
        if inverted {
            w.u32(5, 1);
        }
    })
}

/// Looks the first register up in a map; the result goes to a register ([`reg::VERDICT`] for a verdict map).
pub(super) fn map(set: &str, dreg: u32) -> Expr {
    expr("lookup", |w| {
        w.text(1, set).u32(2, reg::R1).u32(3, dreg);
    })
}

/// A verdict; `chain` for jump and goto.
pub(super) fn verdict_of(code: i32, chain: Option<&str>) -> Expr {
    expr("immediate", |w| {
        w.u32(1, reg::VERDICT)
            .nest(2, |w| write_verdict(w, code, chain));
    })
}

/// The verdict attribute, as in immediate expressions and map elements.
pub(super) fn write_verdict(w: &mut Writer, code: i32, chain: Option<&str>) {
    w.nest(data::VERDICT, |w| {
        w.u32(data::VERDICT_CODE, code.cast_unsigned());
        if let Some(chain) = chain {
            w.text(data::VERDICT_CHAIN, chain);
        }
    });
}

/// Gives the packet the outgoing interface's address.
pub(super) fn masquerade() -> Expr {
    expr("masq", |_| {})
}

/// Rewrites the destination from registers holding address and port.
pub(super) fn dnat(nfproto: u8, addr: u32, port: u32) -> Expr {
    expr("nat", |w| {
        w.u32(1, 1).u32(2, nfproto.into()).u32(3, addr).u32(5, port);
    })
}

/// Loads the route type of the destination address.
pub(super) fn fib_daddr_type() -> Expr {
    const RESULT_ADDRTYPE: u32 = 3;
    const F_DADDR: u32 = 2;
    expr("fib", |w| {
        w.u32(1, reg::R1).u32(2, RESULT_ADDRTYPE).u32(3, F_DADDR);
    })
}

pub(super) fn drop() -> Expr {
    verdict_of(verdict::DROP, None)
}

pub(super) fn accept() -> Expr {
    verdict_of(verdict::ACCEPT, None)
}

pub(super) fn back() -> Expr {
    verdict_of(verdict::RETURN, None)
}
