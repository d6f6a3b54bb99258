//! Making an intermediate functional block: a link that queues what filters of other links send through it.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use nix::errno::Errno;
use rtnetlink::LinkIfb;

use super::Link;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::mac::MacAddr;
use crate::name;
use crate::request::Request;

/// An intermediate functional block to be made.
#[derive(Debug, Clone)]
pub struct NewIfb {
    /// Its name.
    pub name: String,
    /// Its hardware address, which no frame ever carries.
    pub mac: MacAddr,
    /// Its MTU in bytes.
    pub mtu: u32,
}

impl NewIfb {
    fn request(&self) -> Request {
        let builder = LinkIfb::new(&self.name)
            .address(self.mac.octets().to_vec())
            .mtu(self.mtu)
            .txqueuelen(0);
        Request::new(
            RouteNetlinkMessage::NewLink(builder.build()),
            NLM_F_CREATE | NLM_F_EXCL,
            "create intermediate functional block",
            &self.name,
        )
    }
}

impl Handle {
    /// Makes an intermediate functional block, which is down, and reads it back.
    ///
    /// # Errors
    /// [`is_exists`](Error::is_exists) if the name is taken, by whatever.
    pub fn create_ifb(&self, ifb: &NewIfb) -> Result<Link> {
        name::check_name(&ifb.name)?;
        self.execute(&ifb.request())?;
        self.link(&ifb.name)
    }

    /// Fails if the kernel has no intermediate functional blocks.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the kernel's words.
    pub fn require_ifb(&self) -> Result<()> {
        // A hardware address that no link can have: the kernel refuses it, but looks at it only if it knows the kind.
        let probe = NewIfb {
            name: "ifb-probe".to_owned(),
            mac: MacAddr::default(),
            mtu: 1500,
        };
        match self.execute(&probe.request()) {
            Err(Error::Kernel {
                errno: Errno::EADDRNOTAVAIL | Errno::EEXIST,
                ..
            })
            | Ok(()) => Ok(()),
            Err(other) => Err(other),
        }
    }
}
