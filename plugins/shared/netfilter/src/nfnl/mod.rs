//! nf_tables over netlink: a blocking socket, batches, dumps, and the objects they carry.
//!
//! Source: linux/netfilter/nfnetlink.h and linux/netfilter/nf_tables.h. All integers in attributes are big-endian.

mod attr;
mod batch;
pub mod consts;
mod decode;
mod message;
mod objects;
mod socket;
mod trace;
mod udata;

pub use attr::{Attr, Reader, Writer};
pub use batch::{Batch, Refusal};
pub use message::{Family, Request};
pub use objects::{Chain, Data, Element, Expr, Hook, Rule, Set, Table, Verdict};
pub use socket::Socket;
pub use trace::on_message;
pub(crate) use trace::tell;
pub use udata::{
    comment as udata_comment, entries as udata_entries, push as udata_push,
    with_comment as udata_with_comment,
};
