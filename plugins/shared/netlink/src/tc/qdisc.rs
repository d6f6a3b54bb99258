//! Queueing disciplines.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{TcAttribute, TcHandle};
use nix::errno::Errno;
use nix::libc;

use super::{HEADER_LEN, Header, TCA_KIND, TCA_OPTIONS, Tbf, message};
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::LinkRef;
use crate::nla::{self, attributes};
use crate::request::Request;

/// `TC_H_ROOT` and `TC_H_INGRESS` (linux/pkt_sched.h).
const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;
/// The number of every ingress queueing discipline.
const INGRESS_HANDLE: u32 = 0xffff_0000;
/// Where the filters for arriving packets of a `clsact` are (`TC_H_MIN_INGRESS`).
const CLSACT_FILTERS: u32 = 0xffff_fff2;
/// The number that a token bucket filter gets, `1:`, as the reference set gives it.
const TBF_HANDLE: u32 = 0x0001_0000;

/// Where on a link a queueing discipline is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the top of what is sent.
    Root,
    /// On what arrives; there are only filters there, no queue.
    Ingress,
}

impl Place {
    fn parent(self) -> u32 {
        match self {
            Self::Root => ROOT,
            Self::Ingress => INGRESS,
        }
    }
}

/// A queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Qdisc {
    /// The index of its link.
    pub link: u32,
    /// The kind, such as `tbf`, `ingress` or `clsact`.
    pub kind: String,
    /// Its number: the major one in the upper half. None has one that the kernel put there by itself.
    pub handle: Option<u32>,
    /// The settings, for a token bucket filter.
    pub tbf: Option<Tbf>,
}

impl Qdisc {
    /// Where filters for arriving packets belong, for one at [`Place::Ingress`].
    pub(super) fn filters(&self) -> u32 {
        match self.kind.as_str() {
            "clsact" => CLSACT_FILTERS,
            _ => INGRESS_HANDLE,
        }
    }
}

impl Request {
    /// Adds a token bucket filter, numbered `1:`, at the top of what a link sends.
    ///
    /// # Errors
    /// If the link's index is out of range.
    pub fn add_tbf(link: &impl LinkRef, tbf: &Tbf) -> Result<Self> {
        let mut message = message(link.index(), "tbf")?;
        message.header.parent = TcHandle::from(ROOT);
        message.header.handle = TcHandle::from(TBF_HANDLE);
        message.attributes.push(TcAttribute::Options(tbf.options()));
        Ok(Self::new(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "limit the rate of",
            link.label(),
        ))
    }

    /// Adds the place for filters on what arrives by a link.
    ///
    /// # Errors
    /// If the link's index is out of range.
    pub fn add_ingress(link: &impl LinkRef) -> Result<Self> {
        let mut message = message(link.index(), "ingress")?;
        message.header.parent = TcHandle::from(INGRESS);
        message.header.handle = TcHandle::from(INGRESS_HANDLE);
        Ok(Self::new(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "add an ingress queueing discipline to",
            link.label(),
        ))
    }

    /// Deletes the queueing discipline at that place, with everything in it.
    ///
    /// # Errors
    /// If the link's index is out of range.
    pub fn delete_qdisc(link: &impl LinkRef, place: Place) -> Result<Self> {
        let mut message = message(link.index(), "")?;
        message.header.parent = TcHandle::from(place.parent());
        Ok(Self::new(
            RouteNetlinkMessage::DelQueueDiscipline(message),
            0,
            "delete the queueing discipline of",
            link.label(),
        ))
    }
}

impl Handle {
    /// The queueing discipline at that place, if there is one that the kernel shows.
    ///
    /// # Errors
    /// If the link is gone, or the kernel refuses.
    pub fn qdisc(&self, link: &impl LinkRef, place: Place) -> Result<Option<Qdisc>> {
        let mut message = message(link.index(), "")?;
        message.header.parent = TcHandle::from(place.parent());
        let request = Request::new(
            RouteNetlinkMessage::GetQueueDiscipline(message),
            // The kernel tells all who listen for such news, and who asked only with this.
            NLM_F_ECHO,
            "find the queueing discipline of",
            link.label(),
        );
        match self.socket.exchange(&request, parse) {
            // The second is the answer about one that is there only inside the kernel.
            Err(Error::Kernel {
                errno: Errno::ENOENT | Errno::EINVAL,
                ..
            }) => Ok(None),
            other => Ok(other?.pop()),
        }
    }
}

/// Reads an `RTM_NEWQDISC` message; anything else is none.
pub(crate) fn parse(kind: u16, payload: &[u8]) -> Option<Qdisc> {
    if kind != libc::RTM_NEWQDISC {
        return None;
    }
    let header = Header::read(payload)?;
    let mut qdisc = Qdisc {
        link: header.link,
        kind: String::new(),
        handle: Some(header.handle).filter(|handle| *handle != 0),
        tbf: None,
    };
    // The kind stands before its options.
    for (kind, value) in attributes(payload.get(HEADER_LEN..)?) {
        match kind {
            TCA_KIND => qdisc.kind = nla::as_text(value),
            TCA_OPTIONS if qdisc.kind == "tbf" => qdisc.tbf = Tbf::read(value),
            _ => {}
        }
    }
    Some(qdisc)
}
