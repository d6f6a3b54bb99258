//! Making a veth pair across two namespaces.

use std::borrow::Cow;
use std::os::fd::{AsFd, AsRawFd};

use netlink_packet_core::{NLM_F_CREATE, NLM_F_ECHO, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{InfoData, InfoVeth, LinkMessage};
use rtnetlink::{LinkMessageBuilder, LinkUnspec, LinkVeth};

use super::{Link, LinkRef, parse};
use crate::error::Result;
use crate::handle::Handle;
use crate::mac::MacAddr;
use crate::name;
use crate::request::Request;

/// How many random host names are tried before a taken name is reported.
const NAME_TRIES: u32 = 10;

/// A veth pair to be made: one end in the namespace of the handle (the host end), the other born in another namespace.
#[derive(Debug, Clone)]
pub struct NewVeth {
    /// The name of the far end, in its namespace.
    pub name: String,
    /// The hardware address of the far end.
    pub mac: MacAddr,
    /// The name of the host end; none means a random one ([`random_name`](crate::random_name)).
    pub host_name: Option<String>,
    /// The hardware address of the host end.
    pub host_mac: MacAddr,
    /// The MTU of both ends in bytes; none leaves it to the kernel (1500).
    pub mtu: Option<u32>,
    /// The index of the bridge the host end is born a port of.
    pub master: Option<u32>,
    /// Whether the host end is born up. It carries nothing before the far end is up too.
    pub host_up: bool,
}

impl NewVeth {
    /// A pair with random hardware addresses and host name, the kernel's MTU, no master and both ends down.
    ///
    /// # Errors
    /// If the kernel has no random bytes.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        Ok(Self {
            name: name.into(),
            mac: MacAddr::random()?,
            host_name: None,
            host_mac: MacAddr::random()?,
            mtu: None,
            master: None,
            host_up: false,
        })
    }
}

/// A veth pair that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Veth {
    /// The end in the namespace of the handle.
    pub host: VethEnd,
    /// The end in the other namespace.
    pub container: VethEnd,
}

/// One end of a new veth pair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VethEnd {
    /// The interface index in its namespace.
    pub index: u32,
    /// The name.
    pub name: String,
    /// The hardware address.
    pub mac: MacAddr,
    /// The MTU in bytes.
    pub mtu: u32,
}

impl LinkRef for VethEnd {
    fn index(&self) -> u32 {
        self.index
    }

    fn label(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.name)
    }
}

impl Handle {
    /// Makes a veth pair in one request: the far end is born in `container` under its final name, never moved or renamed,
    /// and the host end is born a port of its bridge. The host end has no transmit queue (length 0).
    ///
    /// # Errors
    /// [`is_exists`](crate::Error::is_exists), naming the far end, if its name is taken there, or naming the host end if a
    /// given host name is taken. A random host name that is taken is replaced by another.
    pub fn create_veth(&self, veth: &NewVeth, container: &Self) -> Result<Veth> {
        name::check_name(&veth.name)?;
        let mut tries = if veth.host_name.is_some() {
            1
        } else {
            NAME_TRIES
        };
        loop {
            let host_name = match &veth.host_name {
                Some(given) => given.clone(),
                None => name::random_name()?,
            };
            name::check_name(&host_name)?;
            tries -= 1;
            match self.try_veth(veth, &host_name, container) {
                Err(e) if e.is_exists() => self.judge_taken(veth, container, e, tries)?,
                other => return other,
            }
        }
    }

    /// Decides whether "exists" was about the random host name and another may be tried.
    fn judge_taken(
        &self,
        veth: &NewVeth,
        container: &Self,
        error: crate::Error,
        tries: u32,
    ) -> Result<()> {
        let far_end_taken = container.find_link(&veth.name)?.is_some();
        if tries > 0 && !far_end_taken {
            return Ok(());
        }
        Err(match error {
            crate::Error::Kernel {
                what,
                errno,
                message,
                ..
            } if far_end_taken => crate::Error::Kernel {
                what,
                object: format!("{} in the container", veth.name),
                errno,
                message,
            },
            other => other,
        })
    }

    fn try_veth(&self, veth: &NewVeth, host_name: &str, container: &Self) -> Result<Veth> {
        let message = RouteNetlinkMessage::NewLink(veth.message(host_name, container));
        // The kernel echoes the new link before its acknowledgement since Linux 6.2.
        let flags = NLM_F_CREATE | NLM_F_EXCL | NLM_F_ECHO;
        let request = Request::new(message, flags, "create veth pair", host_name);
        let host = match self.socket.exchange(&request, parse)?.pop() {
            Some(link) => link,
            None => self.link(host_name)?,
        };
        let index = match host.peer {
            Some(index) if index != 0 => index,
            _ => container.link(&veth.name)?.index,
        };
        let far_end = VethEnd {
            index,
            name: veth.name.clone(),
            mac: veth.mac,
            mtu: host.mtu,
        };
        Ok(Veth {
            host: end(host, veth.host_mac),
            container: far_end,
        })
    }
}

fn end(link: Link, mac: MacAddr) -> VethEnd {
    VethEnd {
        index: link.index,
        name: link.name,
        mac: link.mac.unwrap_or(mac),
        mtu: link.mtu,
    }
}

impl NewVeth {
    fn message(&self, host_name: &str, container: &Handle) -> LinkMessage {
        let mut host = LinkVeth::new(host_name, &self.name)
            .address(self.host_mac.octets().to_vec())
            .txqueuelen(0)
            .set_info_data(InfoData::Veth(InfoVeth::Peer(self.far_end(container))));
        if let Some(mtu) = self.mtu {
            host = host.mtu(mtu);
        }
        if let Some(master) = self.master {
            host = host.controller(master);
        }
        if self.host_up {
            host = host.up();
        }
        host.build()
    }

    fn far_end(&self, container: &Handle) -> LinkMessage {
        let mut end = LinkMessageBuilder::<LinkUnspec>::new()
            .name(&self.name)
            .address(self.mac.octets().to_vec());
        if let Some(netns) = container.netns() {
            end = end.setns_by_fd(netns.as_fd().as_raw_fd());
        }
        if let Some(mtu) = self.mtu {
            end = end.mtu(mtu);
        }
        end.build()
    }
}
