//! Filters that send what arrives by one link out by another.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAction, TcActionAttribute, TcActionMirror, TcActionMirrorOption, TcActionOption,
    TcActionType, TcAttribute, TcFilterU32, TcFilterU32Option, TcHandle, TcMirror,
    TcMirrorActionType, TcOption, TcU32Key, TcU32Selector, TcU32SelectorFlags,
};
use nix::libc;

use super::{HEADER_LEN, Header, Qdisc, TCA_KIND, TCA_OPTIONS, message};
use crate::error::Result;
use crate::handle::Handle;
use crate::link::LinkRef;
use crate::nla::{self, attributes};
use crate::request::Request;

/// `ETH_P_ALL` (linux/if_ether.h), in the byte order of the wire.
const ALL_PROTOCOLS: u16 = 3_u16.to_be();
/// `TCA_U32_ACT` (linux/pkt_cls.h), `TCA_ACT_KIND`, `TCA_ACT_OPTIONS` and `TCA_MIRRED_PARMS`.
const U32_ACT: u16 = 7;
const ACT_KIND: u16 = 1;
const ACT_OPTIONS: u16 = 2;
const MIRRED_PARMS: u16 = 2;
/// `TCA_EGRESS_REDIR`, and where it and the link's index stand in `struct tc_mirred`.
const EGRESS_REDIRECT: u32 = 1;
const MIRRED_ACTION_AT: usize = 20;
const MIRRED_LINK_AT: usize = 24;

/// A filter on what arrives by a link.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filter {
    /// The kind, such as `u32` or `bpf`.
    pub kind: String,
    /// Its turn among the others: the lowest is asked first.
    pub priority: u16,
    /// The protocol that it looks at (in the byte order of the wire).
    protocol: u16,
    /// Its number within its kind.
    handle: u32,
    /// Where it is.
    parent: u32,
    /// The index of the link out of which it sends what it matches; 0 if that link is gone, so that it drops it all.
    pub redirect: Option<u32>,
}

/// A redirection to be made of everything that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Redirect {
    /// The index of the link to send it out of.
    pub to: u32,
    /// Its turn among other filters; none puts it before all that are there.
    pub priority: Option<u16>,
}

impl Request {
    /// Sends everything that arrives by a link out of another, by a filter in `place`, the link's queueing discipline
    /// at [`Place::Ingress`](super::Place::Ingress).
    ///
    /// # Errors
    /// If the link's index is out of range.
    pub fn add_redirect(link: &impl LinkRef, place: &Qdisc, redirect: &Redirect) -> Result<Self> {
        let mut message = message(link.index(), TcFilterU32::KIND)?;
        message.header.parent = TcHandle::from(place.filters());
        message.header.info = info(redirect.priority.unwrap_or(0), ALL_PROTOCOLS);
        let options = [
            TcFilterU32Option::Selector(everything()),
            TcFilterU32Option::Action(vec![send_out_of(redirect.to)]),
        ];
        message.attributes.push(TcAttribute::Options(
            options.into_iter().map(TcOption::U32).collect(),
        ));
        Ok(Self::new(
            RouteNetlinkMessage::NewTrafficFilter(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "redirect the traffic of",
            link.label(),
        ))
    }

    /// Deletes a filter.
    ///
    /// # Errors
    /// If the link's index is out of range.
    pub fn delete_filter(link: &impl LinkRef, filter: &Filter) -> Result<Self> {
        let mut message = message(link.index(), &filter.kind)?;
        message.header.parent = TcHandle::from(filter.parent);
        message.header.handle = TcHandle::from(filter.handle);
        message.header.info = info(filter.priority, filter.protocol);
        Ok(Self::new(
            RouteNetlinkMessage::DelTrafficFilter(message),
            0,
            "delete a filter of",
            link.label(),
        ))
    }
}

impl Handle {
    /// The filters in `place`, the link's queueing discipline at [`Place::Ingress`](super::Place::Ingress).
    ///
    /// # Errors
    /// If the link is gone, or the kernel refuses.
    pub fn filters(&self, link: &impl LinkRef, place: &Qdisc) -> Result<Vec<Filter>> {
        let mut message = message(link.index(), "")?;
        message.header.parent = TcHandle::from(place.filters());
        let request = Request::new(
            RouteNetlinkMessage::GetTrafficFilter(message),
            NLM_F_DUMP,
            "list the filters of",
            link.label(),
        );
        self.socket.exchange(&request, parse)
    }
}

/// The field of a header in which a filter's priority and protocol are.
fn info(priority: u16, protocol: u16) -> u32 {
    u32::from(priority) << 16 | u32::from(protocol)
}

/// One key none of whose bits counts.
fn everything() -> TcU32Selector {
    let mut selector = TcU32Selector::default();
    selector.flags = TcU32SelectorFlags::Terminal;
    selector.nkeys = 1;
    selector.keys = vec![TcU32Key::default()];
    selector
}

fn send_out_of(link: u32) -> TcAction {
    let mut mirror = TcMirror::default();
    mirror.generic.action = TcActionType::Stolen;
    mirror.eaction = TcMirrorActionType::EgressRedir;
    mirror.ifindex = link;
    let options = vec![TcActionOption::Mirror(TcActionMirrorOption::Parms(mirror))];
    let mut action = TcAction::default();
    action.attributes = vec![
        TcActionAttribute::Kind(TcActionMirror::KIND.to_owned()),
        TcActionAttribute::Options(options),
    ];
    action
}

/// Reads an `RTM_NEWTFILTER` message; anything else is none.
pub(crate) fn parse(kind: u16, payload: &[u8]) -> Option<Filter> {
    if kind != libc::RTM_NEWTFILTER {
        return None;
    }
    let header = Header::read(payload)?;
    let [p0, p1, q0, q1] = header.info.to_be_bytes();
    let mut filter = Filter {
        kind: String::new(),
        priority: u16::from_be_bytes([p0, p1]),
        protocol: u16::from_be_bytes([q0, q1]),
        handle: header.handle,
        parent: header.parent,
        redirect: None,
    };
    // The kind stands before its options.
    for (kind, value) in attributes(payload.get(HEADER_LEN..)?) {
        match kind {
            TCA_KIND => filter.kind = nla::as_text(value),
            TCA_OPTIONS if filter.kind == TcFilterU32::KIND => filter.redirect = redirect(value),
            _ => {}
        }
    }
    Some(filter)
}

/// Where the first action of a u32 filter sends packets, if that is what it does.
fn redirect(options: &[u8]) -> Option<u32> {
    let find = |list, wanted| {
        attributes(list)
            .find(|(kind, _)| *kind == wanted)
            .map(|(_, value)| value)
    };
    let (_, first) = attributes(find(options, U32_ACT)?).next()?;
    if nla::as_text(find(first, ACT_KIND)?) != TcActionMirror::KIND {
        return None;
    }
    let parms = find(find(first, ACT_OPTIONS)?, MIRRED_PARMS)?;
    let field = |at: usize| parms.get(at..).and_then(nla::as_u32);
    field(MIRRED_LINK_AT).filter(|_| field(MIRRED_ACTION_AT) == Some(EGRESS_REDIRECT))
}
