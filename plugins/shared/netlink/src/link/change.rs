//! Changing and deleting a link.

use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{DefaultNla, NLA_F_NESTED};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    AfSpecInet, AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoBridgePort, InfoPortData,
    InfoPortKind, LinkAttribute, LinkFlags,
};
use rtnetlink::{LinkMessageBuilder, LinkUnspec};

use super::LinkRef;
use crate::error::Result;
use crate::handle::Handle;
use crate::mac::MacAddr;
use crate::name;
use crate::netns::Netns;
use crate::request::Request;

/// `IFLA_INET_CONF` (linux/if_link.h), and `IPV4_DEVCONF_ARP_NOTIFY`, `IPV4_DEVCONF_ROUTE_LOCALNET` (linux/ip.h).
pub(super) const INET_CONF: u16 = 1;
const ARP_NOTIFY: u16 = 22;
pub(super) const ROUTE_LOCALNET: u16 = 26;

/// What is to change about a link. All of it goes in one message and so under one hold of the kernel's RTNL lock.
/// Port settings take effect before the link goes up, whatever the order of the calls.
#[derive(Debug, Clone, Default)]
pub struct LinkChange {
    up: Option<bool>,
    promisc: Option<bool>,
    all_multicast: Option<bool>,
    name: Option<String>,
    mac: Option<MacAddr>,
    mtu: Option<u32>,
    master: Option<u32>,
    alias: Option<String>,
    tx_queue_len: Option<u32>,
    no_link_local: bool,
    ipv4: Vec<(u16, bool)>,
    port: Vec<InfoBridgePort>,
    netns: Option<Netns>,
}

impl LinkChange {
    /// No change yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets it up (true) or down.
    #[must_use]
    pub fn up(mut self, up: bool) -> Self {
        self.up = Some(up);
        self
    }

    /// Switches promiscuous mode.
    #[must_use]
    pub fn promisc(mut self, on: bool) -> Self {
        self.promisc = Some(on);
        self
    }

    /// Switches the reception of all multicast frames.
    #[must_use]
    pub fn all_multicast(mut self, on: bool) -> Self {
        self.all_multicast = Some(on);
        self
    }

    /// Renames it.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Moves it to another namespace, where the other changes take effect: one request that moves and renames leaves no
    /// moment in which the link has neither its old name nor its new one. The link goes down and loses its addresses,
    /// routes and master. The kernel keeps it under its old name for an instant if that is free there; if the new one is
    /// taken then, it stays under the old one, and the request is refused.
    #[must_use]
    pub fn netns(mut self, netns: &Netns) -> Self {
        self.netns = Some(netns.clone());
        self
    }

    /// Gives it a hardware address.
    #[must_use]
    pub fn mac(mut self, mac: MacAddr) -> Self {
        self.mac = Some(mac);
        self
    }

    /// Sets the MTU in bytes.
    #[must_use]
    pub fn mtu(mut self, mtu: u32) -> Self {
        self.mtu = Some(mtu);
        self
    }

    /// Makes it a port of the link with that index; 0 releases it.
    #[must_use]
    pub fn master(mut self, index: u32) -> Self {
        self.master = Some(index);
        self
    }

    /// Sets the free text (at most 255 bytes); empty removes it.
    #[must_use]
    pub fn alias(mut self, text: impl Into<String>) -> Self {
        self.alias = Some(text.into());
        self
    }

    /// Sets the transmit queue length.
    #[must_use]
    pub fn tx_queue_len(mut self, packets: u32) -> Self {
        self.tx_queue_len = Some(packets);
        self
    }

    /// The kernel gives it no IPv6 link-local address of its own accord. To be sent before the link goes up; a
    /// kernel without IPv6 refuses it.
    #[must_use]
    pub fn no_link_local(mut self) -> Self {
        self.no_link_local = true;
        self
    }

    /// Whether the kernel announces the link's IPv4 addresses by ARP when it goes up or its hardware address is set.
    #[must_use]
    pub fn arp_notify(mut self, on: bool) -> Self {
        self.ipv4.push((ARP_NOTIFY, on));
        self
    }

    /// Whether packets from or to 127.0.0.0/8 may pass the link.
    #[must_use]
    pub fn route_localnet(mut self, on: bool) -> Self {
        self.ipv4.push((ROUTE_LOCALNET, on));
        self
    }

    /// For a port of a bridge (already one when this is sent): whether frames may leave by the port they came in on.
    #[must_use]
    pub fn hairpin(mut self, on: bool) -> Self {
        self.port.push(InfoBridgePort::HairpinMode(on));
        self
    }

    /// For a port of a bridge (already one when this is sent): whether it is kept from other isolated ports.
    #[must_use]
    pub fn isolated(mut self, on: bool) -> Self {
        self.port.push(InfoBridgePort::Isolated(on));
        self
    }

    /// The request that makes these changes to `link`.
    ///
    /// # Errors
    /// If the new name is no name for a link.
    pub fn request(&self, link: &impl LinkRef) -> Result<Request> {
        if let Some(name) = &self.name {
            name::check_name(name)?;
        }
        let mut builder = LinkMessageBuilder::<LinkUnspec>::new().index(link.index());
        for attribute in self.attributes() {
            builder = builder.append_extra_attribute(attribute);
        }
        if !self.port.is_empty() {
            builder = builder
                .set_port_kind(InfoPortKind::Bridge)
                .set_port_data(InfoPortData::BridgePort(self.port.clone()));
        }
        let mut message = builder.build();
        let flags = [
            (LinkFlags::Up, self.up),
            (LinkFlags::Promisc, self.promisc),
            (LinkFlags::Allmulti, self.all_multicast),
        ];
        for (flag, wanted) in flags {
            message.header.flags.set(flag, wanted == Some(true));
            message.header.change_mask.set(flag, wanted.is_some());
        }
        // RTM_NEWLINK without NLM_F_CREATE changes what exists; RTM_SETLINK would ignore the port settings.
        Ok(Request::new(
            RouteNetlinkMessage::NewLink(message),
            0,
            self.verb(),
            link.label(),
        ))
    }

    fn attributes(&self) -> impl Iterator<Item = LinkAttribute> {
        let name = self.name.clone().map(LinkAttribute::IfName);
        let mac = self
            .mac
            .map(|mac| LinkAttribute::Address(mac.octets().to_vec()));
        let mtu = self.mtu.map(LinkAttribute::Mtu);
        let master = self.master.map(LinkAttribute::Controller);
        let alias = self.alias.clone().map(LinkAttribute::IfAlias);
        let queue = self.tx_queue_len.map(LinkAttribute::TxQueueLen);
        let families = self.families();
        let families = (!families.is_empty()).then_some(LinkAttribute::AfSpecUnspec(families));
        let netns = self
            .netns
            .as_ref()
            .map(|netns| LinkAttribute::NetNsFd(netns.as_fd().as_raw_fd()));
        [netns, name, mac, mtu, master, alias, queue, families]
            .into_iter()
            .flatten()
    }

    /// What concerns one address family.
    fn families(&self) -> Vec<AfSpecUnspec> {
        let mut families = Vec::new();
        if !self.ipv4.is_empty() {
            let settings = DefaultNla::new(INET_CONF | NLA_F_NESTED, inet_conf(&self.ipv4));
            families.push(AfSpecUnspec::Inet(vec![AfSpecInet::Other(settings)]));
        }
        if self.no_link_local {
            let no_address = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
            families.push(AfSpecUnspec::Inet6(vec![no_address]));
        }
        families
    }

    /// The most telling word for an error.
    fn verb(&self) -> &'static str {
        match self {
            Self { netns: Some(_), .. } => "move link",
            Self { name: Some(_), .. } => "rename link",
            Self {
                master: Some(0), ..
            } => "release port",
            Self {
                master: Some(_), ..
            } => "attach port",
            Self { mac: Some(_), .. } => "set the hardware address of",
            Self { mtu: Some(_), .. } => "set the MTU of",
            Self { up: Some(true), .. } => "set up",
            Self {
                up: Some(false), ..
            } => "set down",
            _ => "change link",
        }
    }
}

/// Settings as `IFLA_INET_CONF` takes them: an attribute each, whose type is the setting.
fn inet_conf(settings: &[(u16, bool)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (setting, on) in settings {
        bytes.extend(8_u16.to_ne_bytes());
        bytes.extend(setting.to_ne_bytes());
        bytes.extend(u32::from(*on).to_ne_bytes());
    }
    bytes
}

impl Request {
    /// Deletes a link.
    #[must_use]
    pub fn delete_link(link: &impl LinkRef) -> Self {
        let message = LinkUnspec::new_with_index(link.index()).build();
        Self::new(
            RouteNetlinkMessage::DelLink(message),
            0,
            "delete link",
            link.label(),
        )
    }
}

impl Handle {
    /// Makes the changes to a link.
    ///
    /// # Errors
    /// The kernel's refusal; nothing is promised about the other changes of the same message then.
    pub fn change_link(&self, link: &impl LinkRef, change: &LinkChange) -> Result<()> {
        self.execute(&change.request(link)?)
    }

    /// Sets a link up.
    ///
    /// # Errors
    /// As [`Handle::change_link`].
    pub fn set_up(&self, link: &impl LinkRef) -> Result<()> {
        self.change_link(link, &LinkChange::new().up(true))
    }

    /// Sets a link down.
    ///
    /// # Errors
    /// As [`Handle::change_link`].
    pub fn set_down(&self, link: &impl LinkRef) -> Result<()> {
        self.change_link(link, &LinkChange::new().up(false))
    }

    /// Deletes a link; with one end of a veth pair the other goes too.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found) if it is gone already.
    pub fn delete_link(&self, link: &impl LinkRef) -> Result<()> {
        self.execute(&Request::delete_link(link))
    }

    /// Deletes a link that may be gone already. That it is gone is looked at twice, as somebody relies on it.
    ///
    /// # Errors
    /// As [`Handle::delete_link`], but for one that is not there.
    pub fn remove_link(&self, link: &impl LinkRef) -> Result<()> {
        match self.delete_link(link) {
            Err(error) if error.is_not_found() => match self.link_by_index(link.index()) {
                Err(gone) if gone.is_not_found() => Ok(()),
                Err(other) => Err(other),
                Ok(_) => Err(error),
            },
            other => other,
        }
    }
}
