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
    /// Fails if the kernel has no token bucket filter, or the process may not use it.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's words.
    pub fn require_tbf(&self) -> Result<()> {
        // Without its settings it cannot be made, but the kernel says so only when it has it.
        let mut message = message(LOOPBACK, "tbf")?;
        message.header.parent = TcHandle::ROOT;
        message.header.handle = TcHandle::from(0x7fff_0000);
        let request = Request::new(
            RouteNetlinkMessage::NewQueueDiscipline(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "limit a rate by",
            "the queueing discipline tbf",
        );
        self.require(&request, &[Errno::ENOENT, Errno::EOPNOTSUPP, Errno::EPERM])
    }

    /// Fails if the kernel cannot redirect traffic. In a user namespace it does not say, and this succeeds.
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
        let request = Request::new(
            RouteNetlinkMessage::NewTrafficAction(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "redirect traffic by",
            "the action mirred",
        );
        self.require(&request, &[Errno::ENOENT, Errno::EOPNOTSUPP])
    }

    /// Fails for those answers that mean "no such thing"; any other means that the kernel looked at the settings.
    fn require(&self, request: &Request, no_such_thing: &[Errno]) -> Result<()> {
        match self.execute(request) {
            Err(Error::Kernel { errno, .. }) if !no_such_thing.contains(&errno) => Ok(()),
            other => other,
        }
    }
}
