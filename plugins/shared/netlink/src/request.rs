//! One change to the kernel's state, ready to be sent.

use netlink_packet_core::{
    Emitable, NLM_F_ACK, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::RouteNetlinkMessage;

/// What a request carries.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// A message that `netlink-packet-route` knows.
    Typed(RouteNetlinkMessage),
    /// A message of another type, in wire form.
    Raw {
        /// The message type (`RTM_*`).
        kind: u16,
        /// What follows the netlink header.
        payload: Vec<u8>,
    },
}

impl From<RouteNetlinkMessage> for Body {
    fn from(message: RouteNetlinkMessage) -> Self {
        Self::Typed(message)
    }
}

/// One change, made by the constructors of the objects it changes and carried out by
/// [`Handle::execute`](crate::Handle::execute) or, several at once, by [`Handle::execute_all`](crate::Handle::execute_all).
#[derive(Debug, Clone)]
pub struct Request {
    pub(crate) message: Body,
    pub(crate) flags: u16,
    pub(crate) what: &'static str,
    pub(crate) object: String,
}

impl Request {
    pub(crate) fn new(
        message: impl Into<Body>,
        flags: u16,
        what: &'static str,
        object: impl Into<String>,
    ) -> Self {
        Self {
            message: message.into(),
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
        let start = buffer.len();
        match &self.message {
            Body::Typed(message) => {
                let payload = NetlinkPayload::InnerMessage(message.clone());
                let mut message = NetlinkMessage::new(header, payload);
                message.finalize();
                buffer.resize(start + message.buffer_len(), 0);
                if let Some(room) = buffer.get_mut(start..) {
                    message.serialize(room);
                }
            }
            Body::Raw { kind, payload } => {
                let length = header.buffer_len() + payload.len();
                header.message_type = *kind;
                header.length = u32::try_from(length).unwrap_or(u32::MAX);
                buffer.resize(start + header.buffer_len(), 0);
                if let Some(room) = buffer.get_mut(start..) {
                    header.emit(room);
                }
                buffer.extend_from_slice(payload);
            }
        }
        // Messages that follow one another in one datagram start on a multiple of four.
        buffer.resize(buffer.len().next_multiple_of(4), 0);
    }
}
