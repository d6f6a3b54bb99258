//! nf_tables objects as the kernel reports them.

use super::message::Family;
use super::udata;

/// A table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Its family.
    pub family: Family,
    /// Its name.
    pub name: String,
    /// Its handle.
    pub handle: u64,
    /// Flags (1 = dormant).
    pub flags: u32,
    /// Userdata, where `nft` keeps the comment.
    pub userdata: Vec<u8>,
}

/// Where a base chain is hooked in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hook {
    /// Hook number.
    pub number: u32,
    /// Priority; lower is earlier.
    pub priority: i32,
}

/// A chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// Family of its table.
    pub family: Family,
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// Its handle.
    pub handle: u64,
    /// Present for a base chain.
    pub hook: Option<Hook>,
    /// Type of a base chain (`filter`, `nat`, `route`).
    pub kind: Option<String>,
    /// Policy of a base chain (0 drop, 1 accept).
    pub policy: Option<u32>,
    /// How many rules, map elements and so on it has or is jumped to from.
    pub uses: u32,
    /// Userdata, where `nft` keeps the comment.
    pub userdata: Vec<u8>,
}

/// One expression of a rule: its name and its undecoded attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expr {
    /// Such as `payload`, `cmp`, `immediate`, `match`, `target`.
    pub name: String,
    /// The attributes inside NFTA_EXPR_DATA; read them with [`super::Reader`].
    pub data: Vec<u8>,
}

/// A rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Family of its table.
    pub family: Family,
    /// Its table.
    pub table: String,
    /// Its chain.
    pub chain: String,
    /// Its handle.
    pub handle: u64,
    /// Its expressions.
    pub exprs: Vec<Expr>,
    /// Userdata, where `nft` keeps the comment.
    pub userdata: Vec<u8>,
}

impl Rule {
    /// The comment `nft` shows. (iptables keeps its comments in a `match` expression instead.)
    pub fn comment(&self) -> Option<String> {
        udata::comment(&self.userdata)
    }

    /// The verdict of the rule's last immediate expression on the verdict register.
    pub fn verdict(&self) -> Option<Verdict> {
        self.exprs.iter().rev().find_map(Expr::verdict)
    }
}

/// A set or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Family of its table.
    pub family: Family,
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// NFT_SET_ flags.
    pub flags: u32,
    /// Key length in bytes.
    pub key_len: u32,
    /// Data type, 0 for a set.
    pub data_type: u32,
}

/// What a rule or an element of a verdict map decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// NFT_ verdict code (`consts::verdict`).
    pub code: i32,
    /// Target of a jump or goto.
    pub chain: Option<String>,
}

/// Data of a map element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// Plain bytes.
    Value(Vec<u8>),
    /// A verdict.
    Verdict(Verdict),
}

/// An element of a set or map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Element {
    /// Its key.
    pub key: Vec<u8>,
    /// What a map gives for it.
    pub data: Option<Data>,
    /// NFT_SET_ELEM_ flags.
    pub flags: u32,
    /// Userdata, where `nft` keeps the comment.
    pub userdata: Vec<u8>,
}

impl Element {
    /// The comment `nft` shows.
    pub fn comment(&self) -> Option<String> {
        udata::comment(&self.userdata)
    }
}
