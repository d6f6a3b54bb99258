//! Packet-filter *intents* and the backends that carry them out.
//!
//! A plugin never spells a rule. It says what it wants for one attachment (an [`Owner`]) as a list of
//! [`Intent`]s, and [`Netfilter`] turns them into objects of one [`Backend`]:
//!
//! * nftables: one table of our own, `inet ferrule` (and `bridge ferrule`), spoken over netlink;
//! * iptables: the chains, rules and comments of the reference set;
//! * firewalld: sources of a zone, over D-Bus.
//!
//! The owner is written into every object, so [`Netfilter::remove`] and [`Netfilter::collect`] need no
//! memory and no configuration.

mod admitted;
mod carrier;
mod conntrack;
mod error;
mod firewalld;
mod intent;
mod iptables;
mod lock;
mod netfilter;
pub mod nfnl;
mod nft;
mod obstacle;
mod owner;

pub use conntrack::Flows;
pub use error::{Error, Result};
pub use intent::{Intent, Kinds, MarkStyle, Policy, Protocol, PublishedPort, Snat};
pub use netfilter::{ApplyOptions, Backend, Hints, Netfilter};
pub use nfnl::on_message;
pub use owner::{Holder, Owner, hex_digest, network_hash};

/// The conntrack mark bit of every connection to a published port, and, where the iptables backend admits containers,
/// of those that they open.
///
/// An iptables FORWARD chain with policy DROP can accept exactly these connections with
/// `-m conntrack --ctstate DNAT -m connmark --mark 0x20000000/0x20000000`.
pub const ADMITTED_MARK: u32 = 0x2000_0000;
