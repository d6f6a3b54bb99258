//! One change to the kernel's state, ready to be sent.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;

/// One change, made by the constructors of the objects it changes and carried out by
/// [`Handle::execute`](crate::Handle::execute) or, several at once, by [`Handle::execute_all`](crate::Handle::execute_all).
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) message: RouteNetlinkMessage,
    pub(crate) flags: u16,
    pub(crate) what: &'static str,
    pub(crate) object: String,
}

impl Request {
    pub(crate) fn new(
        message: RouteNetlinkMessage,
        flags: u16,
        what: &'static str,
        object: impl Into<String>,
    ) -> Self {
        Self {
            message,
            flags,
            what,
            object: object.into(),
        }
    }

    /// Appends the message to `buffer` in wire form.
    pub(crate) fn encode(&self, sequence: u32, buffer: &mut Vec<u8>) {
        let mut header = NetlinkHeader::default();
        header.flags = self.flags | NLM_F_REQUEST | NLM_F_ACK;
        header.sequence_number = sequence;
        let mut message =
            NetlinkMessage::new(header, NetlinkPayload::InnerMessage(self.message.clone()));
        message.finalize();
        let start = buffer.len();
        // Messages that follow one another in one datagram start on a multiple of four.
        buffer.resize(start + message.buffer_len().next_multiple_of(4), 0);
        if let Some(room) = buffer.get_mut(start..) {
            message.serialize(room);
        }
    }
}
