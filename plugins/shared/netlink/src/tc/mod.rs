//! Traffic control (tc(8)): the queueing disciplines and filters by which traffic is shaped and redirected.
//!
//! Objects are asked for one by one, never listed for the whole host, so that the cost does not grow with its links.

mod filter;
mod probe;
mod qdisc;
mod tbf;

use netlink_packet_route::tc::{TcAttribute, TcMessage};

use crate::error::{Error, Result};
use crate::nla;

#[cfg(test)]
pub(crate) use filter::parse as parse_filter;
pub use filter::{Filter, Redirect};
#[cfg(test)]
pub(crate) use qdisc::parse as parse_qdisc;
pub use qdisc::{Place, Qdisc};
pub use tbf::{TICKS_PER_MICROSECOND, Tbf};

/// Bytes of a `tcmsg` header (linux/rtnetlink.h).
const HEADER_LEN: usize = 20;
/// `TCA_KIND` and `TCA_OPTIONS`.
const TCA_KIND: u16 = 1;
const TCA_OPTIONS: u16 = 2;

/// The fields of a `tcmsg` header that are read.
struct Header {
    link: u32,
    handle: u32,
    parent: u32,
    info: u32,
}

impl Header {
    fn read(payload: &[u8]) -> Option<Self> {
        let field = |at: usize| payload.get(at..).and_then(nla::as_u32);
        Some(Self {
            link: field(4)?,
            handle: field(8)?,
            parent: field(12)?,
            info: field(16)?,
        })
    }
}

/// A message about an object of that kind on the link with that index.
fn message(link: u32, kind: &str) -> Result<TcMessage> {
    // The kernel gives out no index beyond 31 bits.
    let index = i32::try_from(link).map_err(|_| Error::Malformed {
        what: "control the traffic of",
        object: format!("#{link}"),
        why: "the interface index is out of range".to_owned(),
    })?;
    let mut message = TcMessage::with_index(index);
    if !kind.is_empty() {
        message.attributes.push(TcAttribute::Kind(kind.to_owned()));
    }
    Ok(message)
}
