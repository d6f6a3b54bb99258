//! One thing that can stay behind.

use std::fmt;

/// A single lasting fact about a host.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Item {
    /// A network device.
    Link {
        /// Interface name.
        name: String,
        /// Its lasting properties.
        facts: String,
    },
    /// An address on a device.
    Address {
        /// The device.
        link: String,
        /// Address, prefix and lasting flags.
        address: String,
    },
    /// A route of any table.
    Route {
        /// The device it leads through; empty for routes without one.
        link: String,
        /// The route.
        text: String,
    },
    /// A routing policy rule.
    PolicyRule(String),
    /// An nftables table.
    Table(String),
    /// A chain of an nftables table.
    Chain {
        /// Family and name of the table.
        table: String,
        /// Name of the chain.
        name: String,
        /// Hook, priority and policy of a base chain.
        hook: String,
    },
    /// A rule of an nftables chain.
    Rule {
        /// Family and name of the table.
        table: String,
        /// Name of the chain.
        chain: String,
        /// Its expressions.
        text: String,
    },
    /// A set or map of an nftables table.
    Set {
        /// Family and name of the table.
        table: String,
        /// Name of the set.
        name: String,
    },
    /// An element of a set or map.
    Element {
        /// Family and name of the table.
        table: String,
        /// Name of the set.
        set: String,
        /// Key, data and comment.
        text: String,
    },
    /// A stateful object of an nftables table.
    Object {
        /// Family and name of the table.
        table: String,
        /// The object.
        name: String,
    },
    /// A line of a legacy xtables dump.
    Xtables {
        /// `ip` or `ip6`, and the table.
        table: String,
        /// A line as the save tool prints it, without counters.
        line: String,
    },
    /// A kernel setting.
    Sysctl {
        /// Path below `/proc/sys`, with slashes.
        key: String,
        /// Its value.
        value: String,
    },
    /// A file or directory.
    File {
        /// Its path.
        path: String,
        /// Kind, mode and content.
        content: String,
    },
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link { name, facts } => write!(f, "link {name}: {facts}"),
            Self::Address { link, address } => write!(f, "address {address} on {link}"),
            Self::Route { text, .. } => write!(f, "route {text}"),
            Self::PolicyRule(text) => write!(f, "routing rule {text}"),
            Self::Table(name) => write!(f, "nft table {name}"),
            Self::Chain { table, name, hook } if hook.is_empty() => {
                write!(f, "nft chain {table} {name}")
            }
            Self::Chain { table, name, hook } => write!(f, "nft chain {table} {name} ({hook})"),
            Self::Rule { table, chain, text } => write!(f, "nft rule {table} {chain}: {text}"),
            Self::Set { table, name } => write!(f, "nft set {table} {name}"),
            Self::Element { table, set, text } => write!(f, "nft element {table} {set}: {text}"),
            Self::Object { table, name } => write!(f, "nft object {table} {name}"),
            Self::Xtables { table, line } => write!(f, "xtables {table}: {line}"),
            Self::Sysctl { key, value } => write!(f, "sysctl {key} = {value}"),
            Self::File { path, content } => write!(f, "file {path}: {content}"),
        }
    }
}
