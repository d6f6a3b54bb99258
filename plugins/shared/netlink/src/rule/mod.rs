//! Policy rules: which routing table a packet's route is looked up in (ip-rule(8)).

mod read;

use std::net::IpAddr;

use ipnetwork::IpNetwork;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleHeader, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::error::Result;
use crate::handle::Handle;
use crate::request::Request;

/// A rule as the kernel describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// Whether it is for IPv6.
    pub ipv6: bool,
    /// Its place: the lowest is asked first.
    pub priority: u32,
    /// The packets' source, if that matters.
    pub src: Option<IpNetwork>,
    /// The table that is looked up; 0 for a rule that does something else.
    pub table: u32,
    /// Who made it, as for a route: 0 if nobody said so, 2 the kernel, ... (linux/rtnetlink.h).
    pub protocol: u8,
    /// Whether nothing but the source decides, and the table's answer is taken as it is.
    pub plain: bool,
}

/// A rule to be made, or the description of one to be deleted: packets from one network are looked up in one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRule {
    /// The packets' source. Bits behind the prefix are cleared.
    pub src: IpNetwork,
    /// The table.
    pub table: u32,
    /// Who makes it; 0 for nobody.
    pub protocol: u8,
    /// Its place. None leaves the choice to the kernel, which puts it before all but the one for the table `local`.
    pub priority: Option<u32>,
}

impl NewRule {
    /// The request that adds it.
    #[must_use]
    pub fn request(&self) -> Request {
        Request::new(
            RouteNetlinkMessage::NewRule(self.message()),
            NLM_F_CREATE | NLM_F_EXCL,
            "add rule",
            self.describe(),
        )
    }

    /// The request that deletes the first rule with these properties; without a priority any will do.
    #[must_use]
    pub fn delete_request(&self) -> Request {
        Request::new(
            RouteNetlinkMessage::DelRule(self.message()),
            0,
            "delete rule",
            self.describe(),
        )
    }

    fn message(&self) -> RuleMessage {
        let mut message = RuleMessage::default();
        message.header = RuleHeader {
            family: family(self.src.is_ipv6()),
            src_len: self.src.prefix(),
            // The attribute says it in full.
            table: u8::try_from(self.table).unwrap_or_default(),
            action: RuleAction::ToTable,
            ..RuleHeader::default()
        };
        message.attributes = vec![
            RuleAttribute::Source(self.src.network()),
            RuleAttribute::Table(self.table),
            RuleAttribute::Protocol(self.protocol.into()),
        ];
        let priority = self.priority.map(RuleAttribute::Priority);
        message.attributes.extend(priority);
        message
    }

    fn describe(&self) -> String {
        format!("from {} lookup {}", self.src, self.table)
    }
}

impl Rule {
    /// The description of this rule for deleting it or adding it again; none if it is not plain.
    #[must_use]
    pub fn to_new(&self) -> Option<NewRule> {
        Some(NewRule {
            src: self.src.filter(|_| self.plain)?,
            table: self.table,
            protocol: self.protocol,
            priority: Some(self.priority),
        })
    }

    /// Whether it is for packets from that one address.
    #[must_use]
    pub fn is_from(&self, ip: IpAddr) -> bool {
        self.src == Some(IpNetwork::from(ip))
    }
}

impl Handle {
    /// The rules for IPv4 (false) or IPv6 (true), in their order. A kernel that has none for the family has no rules.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn rules(&self, ipv6: bool) -> Result<Vec<Rule>> {
        match read::list(self, ipv6) {
            Err(e) if e.is_unsupported() => Ok(Vec::new()),
            other => other,
        }
    }

    /// Whether the kernel has rules for IPv4 (false) or IPv6 (true).
    ///
    /// # Errors
    /// If the listing fails for another reason.
    pub fn has_rules(&self, ipv6: bool) -> Result<bool> {
        match read::list(self, ipv6) {
            Ok(_) => Ok(true),
            Err(e) if e.is_unsupported() => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Adds a rule.
    ///
    /// # Errors
    /// [`is_exists`](crate::Error::is_exists) if there is one with the same properties, protocol included, in the place
    /// that is asked for. Where the kernel chooses the place, it makes another one.
    pub fn add_rule(&self, rule: &NewRule) -> Result<()> {
        self.execute(&rule.request())
    }

    /// Deletes the first rule with these properties.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found) if there is none.
    pub fn delete_rule(&self, rule: &NewRule) -> Result<()> {
        self.execute(&rule.delete_request())
    }
}

fn family(ipv6: bool) -> AddressFamily {
    if ipv6 {
        AddressFamily::Inet6
    } else {
        AddressFamily::Inet
    }
}
