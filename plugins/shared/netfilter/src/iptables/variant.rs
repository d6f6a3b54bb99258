//! Which of the two iptables implementations this network namespace uses.
//!
//! Both can be installed at once, and rules in the one say nothing to the other. What counts is where rules are
//! already, not which binary is found first.

use std::path::Path;

use super::family::Family;
use super::script::{FILTER, NAT};
use super::tool::{self, Purpose};
use crate::error::Result;
use crate::nfnl::Socket;
use crate::nft;

/// An implementation of iptables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Variant {
    /// iptables-nft: tables of nf_tables.
    Nft,
    /// iptables-legacy: tables of its own.
    Legacy,
}

impl Variant {
    /// Both.
    pub(crate) const ALL: [Self; 2] = [Self::Nft, Self::Legacy];

    /// Whether it can have tables of ours in this network namespace.
    pub(crate) fn has_tables(self, socket: &mut Socket, family: Family) -> Result<bool> {
        match self {
            Self::Nft => nft::is_present(socket),
            Self::Legacy => Ok(legacy_tables(family)
                .iter()
                .any(|table| table == NAT || table == FILTER)),
        }
    }

    /// The word in the names of its binaries.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nft => "nft",
            Self::Legacy => "legacy",
        }
    }

    /// The implementation behind a plain name such as `iptables-restore`, by the file it leads to:
    /// `xtables-nft-multi`, `xtables-legacy-multi`, or `xtables-multi` of the time before there were two.
    pub(crate) fn of_binary(file: &Path) -> Option<Self> {
        let real = file.canonicalize().ok()?;
        let name = real.file_name()?.to_str()?;
        if name.contains("nft") {
            Some(Self::Nft)
        } else if name.contains("legacy") || name.contains("multi") {
            Some(Self::Legacy)
        } else {
            None
        }
    }

    /// The implementation to write with: where tables are; where there are none or both, the installed default.
    pub(crate) fn live(socket: &mut Socket) -> Self {
        let legacy = Family::ALL
            .iter()
            .any(|family| !legacy_tables(*family).is_empty());
        let nft = Family::ALL.iter().any(|family| nft_tables(socket, *family));
        match (nft, legacy) {
            (true, false) => Self::Nft,
            (false, true) => Self::Legacy,
            (false, false) if !nft::is_present(socket).unwrap_or(true) => Self::Legacy,
            _ => Self::installed(),
        }
    }

    /// What plain `iptables-restore` is; without it, what is installed under its full name.
    fn installed() -> Self {
        let plain = tool::in_path("iptables-restore").and_then(|file| Self::of_binary(&file));
        let named = |variant| tool::find(variant, Family::V4, Purpose::Restore).map(|_| variant);
        plain
            .or_else(|| named(Self::Nft))
            .or_else(|| named(Self::Legacy))
            .unwrap_or(Self::Nft)
    }
}

/// The legacy tables of this network namespace. A kernel without them has none.
pub(crate) fn legacy_tables(family: Family) -> Vec<String> {
    let file = format!("/proc/thread-self/net/{}", family.legacy_tables_file());
    let names = std::fs::read_to_string(file).unwrap_or_default();
    names.lines().map(str::to_owned).collect()
}

/// Whether nf_tables has a table where iptables-nft keeps its own. A kernel without nf_tables has none.
fn nft_tables(socket: &mut Socket, family: Family) -> bool {
    [FILTER, NAT]
        .into_iter()
        .any(|table| matches!(socket.table(family.nfnl(), table), Ok(Some(_))))
}
