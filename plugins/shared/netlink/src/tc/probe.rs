//! Whether this kernel can do it, found out by requests that change nothing.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::tc::{
    TcAction, TcActionAttribute, TcActionMessage, TcActionMessageAttribute, TcActionMirror,
    TcHandle,
};
use nix::errno::Errno;

use super::message;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::request::Request;

/// The loopback link is there in every namespace, under this index.
const LOOPBACK: u32 = 1;

impl Handle {
    /// Fails if the kernel has no token bucket filter.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's words.
    pub fn require_tbf(&self) -> Result<()> {
        // Without its settings it cannot be made, but the kernel says so only when it has it.
        let mut message = message(LOOPBACK, "tbf")?;
        message.header.parent = TcHandle::ROOT;
        message.header.handle = TcHandle::from(0x7fff_0000);
        self.require(&Request::new(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "limit a rate by",
            "the queueing discipline tbf",
        ))
    }

    /// Fails if the kernel cannot redirect traffic.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's words.
    pub fn require_redirect(&self) -> Result<()> {
        // An action without its settings, as above.
        let mut action = TcAction::default();
        let kind = TcActionMirror::KIND.to_owned();
        action.attributes = vec![TcActionAttribute::Kind(kind)];
        let mut message = TcActionMessage::default();
        message.attributes = vec![TcActionMessageAttribute::Actions(vec![action])];
        self.require(&Request::new(
            RouteNetlinkMessage::NewTrafficAction(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "redirect traffic by",
            "the action mirred",
        ))
    }

    /// "No such file" is the answer for what the kernel does not have; any other means that it looked at the settings.
    fn require(&self, request: &Request) -> Result<()> {
        match self.execute(request) {
            Err(
                error @ Error::Kernel {
                    errno: Errno::ENOENT | Errno::EOPNOTSUPP,
                    ..
                },
            ) => Err(error),
            Err(Error::Kernel {
                errno: Errno::EPERM,
                message,
                ..
            }) => Err(Error::Kernel {
                what: request.what,
                object: request.object.clone(),
                errno: Errno::EPERM,
                message,
            }),
            Err(Error::Kernel { .. }) | Ok(()) => Ok(()),
            Err(other) => Err(other),
        }
    }
}
