//! The VLANs of a bridge port (`IFLA_BRIDGE_VLAN_INFO`, linux/if_bridge.h).

use netlink_packet_core::NLM_F_DUMP;
use netlink_packet_route::link::{
    AfSpecBridge, BridgeVlanInfo, BridgeVlanInfoFlags as Flags, LinkAttribute, LinkExtentMask,
    LinkHeader, LinkMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use nix::errno::Errno;
use nix::libc;

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::LinkRef;
use crate::nla::attributes;
use crate::request::Request;

const HEADER_LEN: usize = 16;
/// `IFLA_BRIDGE_VLAN_INFO` within `IFLA_AF_SPEC`.
const VLAN_INFO: u16 = 2;

/// A run of VLANs of a port that share their flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VlanRange {
    /// The first VLAN, 1 to 4094.
    pub first: u16,
    /// The last VLAN, the same as `first` for a single one.
    pub last: u16,
    /// Whether untagged frames that come in belong to it. Only for a single VLAN.
    pub pvid: bool,
    /// Whether its frames leave untagged.
    pub untagged: bool,
}

impl VlanRange {
    /// VLANs whose frames carry their tag.
    #[must_use]
    pub fn tagged(first: u16, last: u16) -> Self {
        Self {
            first,
            last,
            pvid: false,
            untagged: false,
        }
    }

    /// The VLAN of the port's untagged frames, in and out.
    #[must_use]
    pub fn native(vid: u16) -> Self {
        Self {
            first: vid,
            last: vid,
            pvid: true,
            untagged: true,
        }
    }

    /// Whether `vid` is one of these.
    #[must_use]
    pub fn contains(&self, vid: u16) -> bool {
        (self.first..=self.last).contains(&vid)
    }

    /// One entry for a single VLAN, two for a run.
    fn entries(&self) -> impl Iterator<Item = AfSpecBridge> {
        let mut flags = Flags::empty();
        flags.set(Flags::Pvid, self.pvid);
        flags.set(Flags::Untagged, self.untagged);
        let ends = if self.first == self.last {
            [Some((self.first, flags)), None]
        } else {
            [
                Some((self.first, flags | Flags::RangeBegin)),
                Some((self.last, flags | Flags::RangeEnd)),
            ]
        };
        ends.into_iter()
            .flatten()
            .map(|(vid, flags)| AfSpecBridge::VlanInfo(BridgeVlanInfo { flags, vid }))
    }
}

impl Request {
    /// Puts a port into VLANs, all of them in one message. A VLAN it is in already takes the new flags.
    #[must_use]
    pub fn add_vlans(port: &impl LinkRef, vlans: &[VlanRange]) -> Self {
        let message = RouteNetlinkMessage::SetLink(message(port, vlans));
        Self::new(message, 0, "put into VLANs port", port.label())
    }

    /// Takes a port out of VLANs, all of them in one message. One it is not in is not an error.
    #[must_use]
    pub fn delete_vlans(port: &impl LinkRef, vlans: &[VlanRange]) -> Self {
        let message = RouteNetlinkMessage::DelLink(message(port, vlans));
        Self::new(message, 0, "take out of VLANs port", port.label())
    }
}

fn message(port: &impl LinkRef, vlans: &[VlanRange]) -> LinkMessage {
    let mut message = LinkMessage::default();
    message.header.interface_family = AddressFamily::Bridge;
    message.header.index = port.index();
    message.attributes = vec![LinkAttribute::AfSpecBridge(
        vlans.iter().flat_map(VlanRange::entries).collect(),
    )];
    message
}

impl Handle {
    /// Puts a port into VLANs.
    ///
    /// # Errors
    /// [`Error::NoVlanFiltering`] if the kernel cannot; otherwise the kernel's refusal.
    pub fn add_vlans(&self, port: &impl LinkRef, vlans: &[VlanRange]) -> Result<()> {
        self.execute(&Request::add_vlans(port, vlans))
            .map_err(|e| unsupported(port, e))
    }

    /// Takes a port out of VLANs.
    ///
    /// # Errors
    /// As [`Handle::add_vlans`].
    pub fn delete_vlans(&self, port: &impl LinkRef, vlans: &[VlanRange]) -> Result<()> {
        self.execute(&Request::delete_vlans(port, vlans))
            .map_err(|e| unsupported(port, e))
    }

    /// The VLANs a port is in, ascending. The kernel can only list all ports of all bridges, so this is for checks;
    /// a port just made is in the bridge's [`default_pvid`](crate::Link::default_pvid) and no other VLAN.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn vlans(&self, port: &impl LinkRef) -> Result<Vec<VlanRange>> {
        let mut message = LinkMessage::default();
        message.header.interface_family = AddressFamily::Bridge;
        message.attributes.push(LinkAttribute::ExtMask(vec![
            LinkExtentMask::BrvlanCompressed,
        ]));
        let request = Request::new(
            RouteNetlinkMessage::GetLink(message),
            NLM_F_DUMP,
            "list",
            "VLANs of bridge ports",
        );
        let index = port.index();
        let ranges = self
            .socket
            .exchange(&request, |kind, payload| parse(kind, payload, index))?;
        Ok(ranges.into_iter().flatten().collect())
    }
}

fn unsupported(port: &impl LinkRef, error: Error) -> Error {
    match error.errno() {
        Some(Errno::EOPNOTSUPP) => Error::NoVlanFiltering {
            link: port.label().into_owned(),
        },
        _ => error,
    }
}

/// Reads the VLANs in the message about the port `index`; anything else is none.
pub(crate) fn parse(kind: u16, payload: &[u8], index: u32) -> Option<Vec<VlanRange>> {
    let header = LinkHeader::parse(payload).ok()?;
    if kind != libc::RTM_NEWLINK || header.index != index {
        return None;
    }
    let mut ranges = Vec::new();
    let mut begin = None;
    let spec =
        attributes(payload.get(HEADER_LEN..)?).filter(|(kind, _)| *kind == libc::IFLA_AF_SPEC);
    for (_, value) in spec
        .flat_map(|(_, spec)| attributes(spec))
        .filter(|(kind, _)| *kind == VLAN_INFO)
    {
        let info = BridgeVlanInfo::try_from(value).ok()?;
        if info.flags.contains(Flags::RangeBegin) {
            begin = Some(info.vid);
            continue;
        }
        ranges.push(VlanRange {
            first: begin.take().unwrap_or(info.vid),
            last: info.vid,
            pvid: info.flags.contains(Flags::Pvid),
            untagged: info.flags.contains(Flags::Untagged),
        });
    }
    Some(ranges)
}
