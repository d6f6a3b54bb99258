//! Making a bridge.

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoBridge, InfoData};
use nix::errno::Errno;
use rtnetlink::{LinkBridge, LinkMessageBuilder};

use super::Link;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::mac::MacAddr;
use crate::name;
use crate::request::Request;

/// A bridge to be made.
#[derive(Debug, Clone)]
pub struct NewBridge {
    /// Its name.
    pub name: String,
    /// Its hardware address. With an address given at birth the bridge never takes over that of a port, so neighbours
    /// keep a valid entry for it while containers come and go; see [`MacAddr::random`].
    pub mac: MacAddr,
    /// Its MTU in bytes; none leaves it to the kernel, which then follows the smallest port.
    pub mtu: Option<u32>,
    /// Whether it filters by VLAN.
    pub vlan_filtering: bool,
    /// Whether it is born up.
    pub up: bool,
}

impl NewBridge {
    fn request(&self) -> Request {
        let mut builder =
            LinkMessageBuilder::<LinkBridge>::new(&self.name).address(self.mac.octets().to_vec());
        if let Some(mtu) = self.mtu {
            builder = builder.mtu(mtu);
        }
        if self.vlan_filtering {
            builder =
                builder.set_info_data(InfoData::Bridge(vec![InfoBridge::VlanFiltering(true)]));
        }
        if self.up {
            builder = builder.up();
        }
        let message = RouteNetlinkMessage::NewLink(builder.build());
        Request::new(
            message,
            NLM_F_CREATE | NLM_F_EXCL,
            "create bridge",
            &self.name,
        )
    }

    /// A kernel without VLAN filtering refuses the wish with a bare number; one without bridges says so in words.
    fn explain(&self, error: Error) -> Error {
        match error {
            Error::Kernel {
                errno: Errno::EOPNOTSUPP,
                message: None,
                ..
            } if self.vlan_filtering => Error::NoVlanFiltering {
                link: self.name.clone(),
            },
            other => other,
        }
    }
}

impl Handle {
    /// Makes a bridge and reads it back.
    ///
    /// # Errors
    /// [`is_exists`](Error::is_exists) if the name is taken, by whatever; [`Error::NoVlanFiltering`] if filtering is wanted
    /// and the kernel cannot (no bridge is left then).
    pub fn create_bridge(&self, bridge: &NewBridge) -> Result<Link> {
        name::check_name(&bridge.name)?;
        self.execute(&bridge.request())
            .map_err(|e| bridge.explain(e))?;
        let made = self.link(&bridge.name)?;
        // An older kernel without VLAN filtering ignores the wish without a word.
        if bridge.vlan_filtering && made.vlan_filtering != Some(true) {
            self.delete_link(&made)?;
            return Err(Error::NoVlanFiltering {
                link: bridge.name.clone(),
            });
        }
        Ok(made)
    }
}
