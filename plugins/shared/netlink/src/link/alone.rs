//! Making a link that comes alone: macvlan, ipvlan, vlan, dummy, vrf.

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoIpVlan, InfoKind, InfoMacVlan, InfoVlan, InfoVrf, IpVlanMode, LinkAttribute,
};
use nix::errno::Errno;
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::kind::{IpvlanMode, MacvlanMode};
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::mac::MacAddr;
use crate::name;
use crate::request::Request;

/// A hardware address that no driver gives to a link: it is a group's.
const NO_ADDRESS: [u8; 6] = [1, 0, 0, 0, 0, 0];

/// A mode that no ipvlan link has.
const NO_MODE: u16 = u16::MAX;

/// What a new link is. A master is named by its index in the namespace of the handle that makes the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewKind {
    /// A link with a hardware address of its own on the network of its master.
    Macvlan {
        /// The master.
        master: u32,
        /// The mode.
        mode: MacvlanMode,
        /// How many broadcast packets may be queued; none leaves it to the kernel (1000).
        bc_queue_len: Option<u32>,
    },
    /// A link that shares the hardware address of its master.
    Ipvlan {
        /// The master.
        master: u32,
        /// The mode.
        mode: IpvlanMode,
    },
    /// A link whose frames are tagged on its master (IEEE 802.1Q).
    Vlan {
        /// The master.
        master: u32,
        /// The VLAN, 0 to 4094.
        id: u16,
    },
    /// A link that drops what is sent over it.
    Dummy,
    /// A domain of routing of its own: the links that are its ports use its table and no other.
    Vrf {
        /// The table.
        table: u32,
    },
}

/// A link to be made.
#[derive(Debug, Clone)]
pub struct NewLink {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: NewKind,
    /// Its MTU in bytes; none leaves it to the kernel, which takes the master's.
    pub mtu: Option<u32>,
    /// Its hardware address; none leaves it to the kernel. An ipvlan link, and a macvlan link in mode
    /// [`Passthru`](MacvlanMode::Passthru), is born with that of its master whatever stands here.
    pub mac: Option<MacAddr>,
}

impl NewKind {
    /// What the kernel calls it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Macvlan { .. } => "macvlan",
            Self::Ipvlan { .. } => "ipvlan",
            Self::Vlan { .. } => "vlan",
            Self::Dummy => "dummy",
            Self::Vrf { .. } => "vrf",
        }
    }

    fn master(&self) -> Option<u32> {
        match self {
            Self::Macvlan { master, .. }
            | Self::Ipvlan { master, .. }
            | Self::Vlan { master, .. } => Some(*master),
            Self::Dummy | Self::Vrf { .. } => None,
        }
    }

    fn info(&self) -> InfoKind {
        match self {
            Self::Macvlan { .. } => InfoKind::MacVlan,
            Self::Ipvlan { .. } => InfoKind::IpVlan,
            Self::Vlan { .. } => InfoKind::Vlan,
            Self::Dummy => InfoKind::Dummy,
            Self::Vrf { .. } => InfoKind::Vrf,
        }
    }

    fn data(&self) -> Option<InfoData> {
        match self {
            Self::Macvlan {
                mode, bc_queue_len, ..
            } => {
                let mut data = vec![InfoMacVlan::Mode(mode.to_kernel())];
                data.extend(bc_queue_len.map(InfoMacVlan::BcQueueLen));
                Some(InfoData::MacVlan(data))
            }
            Self::Ipvlan { mode, .. } => {
                Some(InfoData::IpVlan(vec![InfoIpVlan::Mode(mode.to_kernel())]))
            }
            Self::Vlan { id, .. } => Some(InfoData::Vlan(vec![InfoVlan::Id(*id)])),
            Self::Dummy => None,
            Self::Vrf { table } => Some(InfoData::Vrf(vec![InfoVrf::TableId(*table)])),
        }
    }

    fn verb(&self) -> &'static str {
        match self {
            Self::Macvlan { .. } => "create macvlan",
            Self::Ipvlan { .. } => "create ipvlan",
            Self::Vlan { .. } => "create vlan",
            Self::Dummy => "create dummy",
            Self::Vrf { .. } => "create vrf",
        }
    }

    /// A request that the kind's driver refuses before it makes anything.
    fn impossible(&self) -> Request {
        let mut builder = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(self.info());
        builder = match self {
            Self::Ipvlan { .. } => builder.set_info_data(InfoData::IpVlan(vec![InfoIpVlan::Mode(
                IpVlanMode::Other(NO_MODE),
            )])),
            _ => builder.address(NO_ADDRESS.to_vec()),
        };
        Request::new(
            RouteNetlinkMessage::NewLink(builder.build()),
            NLM_F_CREATE | NLM_F_EXCL,
            "look for links of kind",
            self.name(),
        )
    }
}

impl NewLink {
    fn request(&self, place: &Handle) -> Request {
        let mut builder = LinkMessageBuilder::<LinkUnspec>::new_with_info_kind(self.kind.info())
            .name(self.name.clone());
        if let Some(data) = self.kind.data() {
            builder = builder.set_info_data(data);
        }
        if let Some(master) = self.kind.master() {
            builder = builder.append_extra_attribute(LinkAttribute::Link(master));
        }
        if let Some(netns) = place.netns() {
            builder = builder.setns_by_fd(netns.as_fd().as_raw_fd());
        }
        if let Some(mtu) = self.mtu {
            builder = builder.mtu(mtu);
        }
        if let Some(mac) = self.mac {
            builder = builder.address(mac.octets().to_vec());
        }
        Request::new(
            RouteNetlinkMessage::NewLink(builder.build()),
            NLM_F_CREATE | NLM_F_EXCL,
            self.kind.verb(),
            &self.name,
        )
    }
}

impl Handle {
    /// Makes a link in one request: it is born in `place` under its name, never moved or renamed.
    ///
    /// # Errors
    /// [`is_exists`](Error::is_exists) if the name is taken there, or if the master has that VLAN already. `EBUSY` if the
    /// master serves something that rules this kind out, such as a bridge; `EOPNOTSUPP` if the kernel does not know the
    /// kind or the master cannot carry it.
    pub fn create_link(&self, link: &NewLink, place: &Self) -> Result<()> {
        name::check_name(&link.name)?;
        self.execute(&link.request(place))
    }

    /// Whether the kernel can make links of this kind. It is found out by a request that the kind's driver refuses, which
    /// makes a kernel load the driver if it is a module.
    ///
    /// # Errors
    /// If the kernel refuses for another reason, such as a lack of privilege.
    pub fn knows_kind(&self, kind: &NewKind) -> Result<bool> {
        match self.execute(&kind.impossible()) {
            Ok(()) => Ok(true),
            Err(Error::Kernel {
                errno: Errno::EOPNOTSUPP,
                ..
            }) => Ok(false),
            Err(Error::Kernel {
                errno: Errno::EADDRNOTAVAIL | Errno::EINVAL,
                ..
            }) => Ok(true),
            Err(error) => Err(error),
        }
    }
}
