//! One rule of an iptables table, independent of how the kernel stores it.
//!
//! Both readers (the text of `iptables-save` and the expressions of nf_tables) and the
//! generator of wanted rules end here, so that "is this rule there already" is `==`.

use ipnetwork::IpNetwork;

use crate::owner::Owner;

/// A match that may be negated with `!`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Match<T> {
    /// What is compared with.
    pub(crate) value: T,
    /// Whether the rule is for everything but `value`.
    pub(crate) negated: bool,
}

impl<T> Match<T> {
    pub(crate) fn is(value: T) -> Self {
        Self {
            value,
            negated: false,
        }
    }
}

/// A value with the mask it is compared or set under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marked {
    /// The bits.
    pub(crate) value: u32,
    /// Which bits count.
    pub(crate) mask: u32,
}

/// Connection states a rule asks for, as bits.
pub(crate) mod state {
    /// No connection can be told for the packet.
    pub(crate) const INVALID: u16 = 1;
    /// The connection has seen both directions.
    pub(crate) const ESTABLISHED: u16 = 2;
    /// The connection was announced by another one.
    pub(crate) const RELATED: u16 = 4;
    /// The first packet of a connection.
    pub(crate) const NEW: u16 = 8;
    /// The destination was translated.
    pub(crate) const DNAT: u16 = 0x80;
    /// The source was translated.
    pub(crate) const SNAT: u16 = 0x40;
    /// Exempt from tracking.
    pub(crate) const UNTRACKED: u16 = 0x100;
}

/// What a matching packet meets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Target {
    /// Only counted.
    #[default]
    None,
    /// Accepted.
    Accept,
    /// Dropped.
    Drop,
    /// Back to the calling chain.
    Return,
    /// On to another chain.
    Jump(String),
    /// Source becomes the outgoing interface's address.
    Masquerade,
    /// Destination becomes this `address:port`.
    Dnat(String),
    /// Firewall mark.
    Mark(Marked),
    /// Connection mark.
    Connmark(Marked),
    /// Anything else, by name.
    Other(String),
}

/// One rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rule {
    /// Source network.
    pub(crate) source: Option<Match<IpNetwork>>,
    /// Destination network.
    pub(crate) destination: Option<Match<IpNetwork>>,
    /// Interface of arrival.
    pub(crate) input: Option<Match<String>>,
    /// Interface of departure.
    pub(crate) output: Option<Match<String>>,
    /// Transport protocol, as its lower-case name or number.
    pub(crate) protocol: Option<Match<String>>,
    /// Destination ports, in the rule's order; empty: any.
    pub(crate) ports: Vec<u16>,
    /// Whether the ports are matched by `multiport`, which takes a list.
    pub(crate) multiport: bool,
    /// Connection states, see [`state`]; 0: any.
    pub(crate) states: u16,
    /// Firewall mark.
    pub(crate) mark: Option<Marked>,
    /// Connection mark.
    pub(crate) connmark: Option<Marked>,
    /// Whether the destination must be an address of this host.
    pub(crate) to_host: bool,
    /// The comment.
    pub(crate) comment: Option<String>,
    /// The target.
    pub(crate) target: Target,
    /// Further words, or names of kernel expressions, that the reader has no field for.
    pub(crate) other: Vec<String>,
}

impl Rule {
    /// A rule for every packet.
    pub(crate) fn to(target: Target) -> Self {
        Self {
            target,
            ..Self::default()
        }
    }

    /// A rule that goes on to `chain`.
    pub(crate) fn jump(chain: &str) -> Self {
        Self::to(Target::Jump(chain.to_owned()))
    }

    /// Only packets from `network`.
    pub(crate) fn from(mut self, network: IpNetwork) -> Self {
        self.source = canonical(network).map(Match::is);
        self
    }

    /// Only packets to `network`.
    pub(crate) fn towards(mut self, network: IpNetwork) -> Self {
        self.destination = canonical(network).map(Match::is);
        self
    }

    /// With a comment.
    pub(crate) fn comment(mut self, text: &str) -> Self {
        self.comment = Some(text.to_owned());
        self
    }

    /// Whether the rule goes on to `chain`.
    pub(crate) fn jumps_to(&self, chain: &str) -> bool {
        matches!(&self.target, Target::Jump(to) if to == chain)
    }

    /// Equal but for the comment: releases differ in the texts of shared rules.
    pub(crate) fn same_but_comment(&self, other: &Self) -> bool {
        let mut mine = self.clone();
        mine.comment.clone_from(&other.comment);
        mine == *other
    }

    /// The single source address, if the rule is for exactly one.
    pub(crate) fn source_host(&self) -> Option<std::net::IpAddr> {
        host(self.source.as_ref()?)
    }

    /// The single destination address, if the rule is for exactly one.
    pub(crate) fn destination_host(&self) -> Option<std::net::IpAddr> {
        host(self.destination.as_ref()?)
    }
}

fn host(network: &Match<IpNetwork>) -> Option<std::net::IpAddr> {
    let bits = if network.value.is_ipv4() { 32 } else { 128 };
    (!network.negated && network.value.prefix() == bits).then(|| network.value.ip())
}

/// A rule as found in the kernel, with what is needed to delete it again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The rule.
    pub(crate) rule: Rule,
    /// nf_tables: its handle.
    pub(crate) handle: Option<u64>,
    /// Legacy tables: its text after `-A <chain> `.
    pub(crate) text: Option<String>,
    /// nf_tables: the owner's comment, where the rule has no place for one that iptables would show.
    pub(crate) tag: Option<String>,
}

impl Stored {
    /// Whether it carries the tag of this attachment.
    pub(crate) fn is_tagged_for(&self, owner: &Owner) -> bool {
        let hash = owner.instance_hash();
        self.tag
            .as_deref()
            .is_some_and(|tag| tag.starts_with(&hash))
    }
}

/// The network with its host bits cleared; `None` for "any address", as the kernel stores it.
pub(crate) fn canonical(network: IpNetwork) -> Option<IpNetwork> {
    if network.prefix() == 0 {
        return None;
    }
    IpNetwork::new(network.network(), network.prefix()).ok()
}
