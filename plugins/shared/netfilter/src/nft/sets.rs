//! Every set and map of our tables: its name, its key and its data. Docs: docs/nftables.md.

use crate::intent::Kinds;
use crate::nfnl::consts::{flag, msg, set};
use crate::nfnl::{Family, Request};

/// The table's name, in both families.
pub(crate) const TABLE: &str = "ferrule";

/// A component of a key, with nft's datatype number and its width in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Ip4,
    Ip6,
    Ether,
    Proto,
    Port,
    Name,
}

impl Field {
    fn datatype(self) -> u32 {
        match self {
            Self::Ip4 => 7,
            Self::Ip6 => 8,
            Self::Ether => 9,
            Self::Proto => 12,
            Self::Port => 13,
            Self::Name => 41,
        }
    }

    /// Width without padding.
    pub fn width(self) -> usize {
        match self {
            Self::Ip4 => 4,
            Self::Ip6 | Self::Name => 16,
            Self::Ether => 6,
            Self::Proto => 1,
            Self::Port => 2,
        }
    }

    /// Width in a register: a multiple of four.
    pub fn padded(self) -> usize {
        self.width().next_multiple_of(4)
    }

    /// nft's byte order of the type: names are host order (1), the rest is network order (2).
    fn byte_order(self) -> u32 {
        if self == Self::Name { 1 } else { 2 }
    }
}

/// What a map gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gives {
    Nothing,
    Verdict,
    Fields(&'static [Field]),
}

/// A set or map. The numbers are stored in owners' records: never reuse one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum SetId {
    Owners = 1,
    Masquerade4 = 3,
    Masquerade6 = 4,
    Publish4 = 5,
    Publish6 = 6,
    PublishAt4 = 7,
    PublishAt6 = 8,
    Hairpin4 = 9,
    Hairpin6 = 10,
    Published4 = 11,
    Published6 = 12,
    Admit4 = 13,
    Admit6 = 14,
    Policed = 15,
    Confine = 16,
    Isolate = 17,
    Confined = 18,
    Guarded = 19,
    Allowed = 20,
    Isolated = 21,
    PublishIf4 = 22,
    PublishIf6 = 23,
    PublishThen4 = 24,
    PublishThen6 = 25,
    Known4 = 26,
    Known6 = 27,
}

impl SetId {
    pub const ALL: [Self; 26] = [
        Self::Owners,
        Self::Masquerade4,
        Self::Masquerade6,
        Self::Publish4,
        Self::Publish6,
        Self::PublishAt4,
        Self::PublishAt6,
        Self::Hairpin4,
        Self::Hairpin6,
        Self::Published4,
        Self::Published6,
        Self::Admit4,
        Self::Admit6,
        Self::Policed,
        Self::Confine,
        Self::Isolate,
        Self::Confined,
        Self::Guarded,
        Self::Allowed,
        Self::Isolated,
        Self::PublishIf4,
        Self::PublishIf6,
        Self::PublishThen4,
        Self::PublishThen6,
        Self::Known4,
        Self::Known6,
    ];

    /// The number in owners' records.
    pub fn number(self) -> u8 {
        self as u8
    }

    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.number() == number)
    }

    pub fn name(self) -> &'static str {
        self.spec().0
    }

    /// The components of the key.
    pub fn key(self) -> &'static [Field] {
        self.spec().1
    }

    /// The kind of intent its elements belong to; `None` for records and for what has no owner.
    pub fn kind(self) -> Option<Kinds> {
        match self {
            Self::Masquerade4 | Self::Masquerade6 => Some(Kinds::MASQUERADE),
            Self::Publish4 | Self::Publish6 | Self::PublishAt4 | Self::PublishAt6 => {
                Some(Kinds::PUBLISH)
            }
            Self::Hairpin4 | Self::Hairpin6 | Self::Published4 | Self::Published6 => {
                Some(Kinds::PUBLISH)
            }
            Self::PublishIf4 | Self::PublishIf6 | Self::PublishThen4 | Self::PublishThen6 => {
                Some(Kinds::PUBLISH)
            }
            Self::Admit4 | Self::Admit6 | Self::Known4 | Self::Known6 => Some(Kinds::ADMIT),
            Self::Confined | Self::Isolated => Some(Kinds::CONFINE),
            Self::Guarded | Self::Allowed => Some(Kinds::GUARD_MAC),
            Self::Owners | Self::Policed | Self::Confine | Self::Isolate => None,
        }
    }

    /// The family of the table it is in.
    pub fn family(self) -> Family {
        match self {
            Self::Guarded | Self::Allowed | Self::Isolated => Family::Bridge,
            _ => Family::Inet,
        }
    }

    fn spec(self) -> (&'static str, &'static [Field], Gives) {
        use Field::{Ether, Ip4, Ip6, Name, Port, Proto};
        use Gives::{Fields, Nothing, Verdict};
        match self {
            Self::Owners => ("owners", &[Name, Name, Name], Nothing),
            Self::Masquerade4 => ("masquerade4", &[Ip4], Verdict),
            Self::Masquerade6 => ("masquerade6", &[Ip6], Verdict),
            Self::Publish4 => ("publish4", &[Proto, Port], Fields(&[Ip4, Port])),
            Self::Publish6 => ("publish6", &[Proto, Port], Fields(&[Ip6, Port])),
            Self::PublishAt4 => ("publish_at4", &[Ip4, Proto, Port], Fields(&[Ip4, Port])),
            Self::PublishAt6 => ("publish_at6", &[Ip6, Proto, Port], Fields(&[Ip6, Port])),
            Self::PublishIf4 => ("publish_if4", &[Proto, Port], Verdict),
            Self::PublishIf6 => ("publish_if6", &[Proto, Port], Verdict),
            Self::PublishThen4 => ("publish_then4", &[Proto, Port], Fields(&[Ip4, Port])),
            Self::PublishThen6 => ("publish_then6", &[Proto, Port], Fields(&[Ip6, Port])),
            Self::Hairpin4 => ("hairpin4", &[Proto, Port, Ip4], Verdict),
            Self::Hairpin6 => ("hairpin6", &[Proto, Port, Ip6], Verdict),
            Self::Published4 => ("published4", &[Proto, Port, Ip4], Nothing),
            Self::Published6 => ("published6", &[Proto, Port, Ip6], Nothing),
            Self::Admit4 => ("admit4", &[Ip4], Nothing),
            Self::Admit6 => ("admit6", &[Ip6], Nothing),
            Self::Known4 => ("known4", &[Ip4], Nothing),
            Self::Known6 => ("known6", &[Ip6], Nothing),
            Self::Policed => ("policed", &[Name], Nothing),
            Self::Confine => ("confine", &[Name], Verdict),
            Self::Isolate => ("isolate", &[Name], Verdict),
            Self::Confined => ("confined", &[Name, Name], Verdict),
            Self::Guarded => ("guarded", &[Name], Nothing),
            Self::Allowed => ("allowed", &[Name, Ether], Nothing),
            Self::Isolated => ("isolated", &[Name], Nothing),
        }
    }

    /// The message that declares it; no effect if it is there already.
    pub fn declare(self) -> Request {
        Request::nftables(msg::NEWSET, self.family(), flag::CREATE).with(|w| {
            let (name, key, gives) = self.spec();
            let flags = if gives == Gives::Nothing {
                0
            } else {
                set::F_MAP
            };
            w.text(set::TABLE, TABLE)
                .text(set::NAME, name)
                .u32(set::FLAGS, flags);
            w.u32(set::KEY_TYPE, datatype(key))
                .u32(set::KEY_LEN, width(key));
            match gives {
                Gives::Nothing => {}
                Gives::Verdict => {
                    w.u32(set::DATA_TYPE, set::DATA_VERDICT)
                        .u32(set::DATA_LEN, 0);
                }
                Gives::Fields(fields) => {
                    w.u32(set::DATA_TYPE, datatype(fields))
                        .u32(set::DATA_LEN, width(fields));
                }
            }
            w.u32(set::ID, self.number().into())
                .bytes(set::USERDATA, &userdata(key, gives));
        })
    }
}

fn datatype(fields: &[Field]) -> u32 {
    fields
        .iter()
        .fold(0, |datatype, field| datatype << 6 | field.datatype())
}

fn width(fields: &[Field]) -> u32 {
    fields
        .iter()
        .map(|field| u32::try_from(field.padded()).unwrap_or(0))
        .sum()
}

/// What `nft` keeps in a set's userdata: the byte orders of key (0) and data (1), by which it prints them.
fn userdata(key: &[Field], gives: Gives) -> Vec<u8> {
    let order = match key {
        [field] => field.byte_order(),
        _ => 0,
    };
    let mut userdata = vec![0, 4];
    userdata.extend_from_slice(&order.to_ne_bytes());
    if gives != Gives::Nothing {
        userdata.extend_from_slice(&[1, 4, 0, 0, 0, 0]);
    }
    userdata
}
