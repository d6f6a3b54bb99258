//! Addresses of links.

mod exact;

use std::net::{IpAddr, Ipv6Addr};

use ipnetwork::IpNetwork;
use netlink_packet_core::{NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeader, AddressMessage,
};
use nix::libc;
use rtnetlink::AddressMessageBuilder;

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::LinkRef;
use crate::nla::{self, attributes};
use crate::request::Request;
use crate::sys;

pub use exact::ExactAddress;

const HEADER_LEN: usize = 8;

/// An address on a link.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Address {
    /// The index of the link.
    pub index: u32,
    /// The local address with its prefix length.
    pub ip: IpNetwork,
    /// Its flags (`IFA_F_*`, rtnetlink(7)).
    pub flags: AddressFlags,
    /// Its scope: 0 global, 253 link, 254 host.
    pub scope: u8,
}

impl Address {
    /// Whether duplicate address detection has not ended, so that nothing can be sent from it yet.
    /// An optimistic address can be used in the meantime.
    #[must_use]
    pub fn is_tentative(&self) -> bool {
        self.flags.contains(AddressFlags::Tentative)
            && !self.flags.contains(AddressFlags::Optimistic)
    }

    /// Whether another station holds it.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.flags.contains(AddressFlags::Dadfailed)
    }
}

/// A random IPv6 link-local address, for a link whose hardware address is not its own.
///
/// # Errors
/// If the kernel has no random bytes.
pub fn random_link_local() -> Result<Ipv6Addr> {
    let id = sys::random::<8>().map_err(|source| Error::Io {
        what: "choose",
        object: "a random link-local address".to_owned(),
        source,
    })?;
    Ok(Ipv6Addr::from_bits(
        (0xfe80 << 112) | u128::from(u64::from_be_bytes(id)),
    ))
}

/// An address to be put on a link. IPv4 addresses with a prefix shorter than 31 get their broadcast address.
#[derive(Debug, Clone, Copy)]
pub struct NewAddress {
    /// The address with its prefix length.
    pub ip: IpNetwork,
    /// IPv6: no duplicate address detection, for a link where nobody else can hold it. It is usable at once.
    pub nodad: bool,
    /// IPv6: usable while detection runs (RFC 4429); works only where `optimistic_dad` is on.
    pub optimistic: bool,
    /// Do not make the route to its network.
    pub no_prefix_route: bool,
}

impl NewAddress {
    /// The address with no option set.
    #[must_use]
    pub fn new(ip: IpNetwork) -> Self {
        Self {
            ip,
            nodad: false,
            optimistic: false,
            no_prefix_route: false,
        }
    }

    /// Without duplicate address detection.
    #[must_use]
    pub fn nodad(mut self) -> Self {
        self.nodad = true;
        self
    }

    /// Usable while duplicate address detection runs.
    #[must_use]
    pub fn optimistic(mut self) -> Self {
        self.optimistic = true;
        self
    }

    /// The request that adds it to `link`.
    #[must_use]
    pub fn request(&self, link: &impl LinkRef) -> Request {
        self.request_with(link, NLM_F_EXCL, "add address")
    }

    /// The request that says it once more of a `link` that has it, and so makes sure of what belongs to it: the kernel
    /// puts the route to its network in where that is missing.
    #[must_use]
    pub fn confirm(&self, link: &impl LinkRef) -> Request {
        self.request_with(link, NLM_F_REPLACE, "confirm address")
    }

    fn request_with(&self, link: &impl LinkRef, conflict: u16, what: &'static str) -> Request {
        let mut message = message(self.ip, link.index());
        let flags = self.flags();
        if !flags.is_empty() {
            message.attributes.push(AddressAttribute::Flags(flags));
        }
        let object = format!("{} to {}", self.ip, link.label());
        Request::new(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | conflict,
            what,
            object,
        )
    }

    fn flags(&self) -> AddressFlags {
        let mut flags = AddressFlags::empty();
        flags.set(AddressFlags::Nodad, self.nodad && self.ip.is_ipv6());
        flags.set(
            AddressFlags::Optimistic,
            self.optimistic && self.ip.is_ipv6(),
        );
        flags.set(AddressFlags::Noprefixroute, self.no_prefix_route);
        flags
    }
}

impl Request {
    /// Removes an address from a link.
    #[must_use]
    pub fn delete_address(link: &impl LinkRef, ip: IpNetwork) -> Self {
        let object = format!("{ip} from {}", link.label());
        let message = message(ip, link.index());
        Self::new(
            RouteNetlinkMessage::DelAddress(message),
            0,
            "delete address",
            object,
        )
    }
}

fn message(ip: IpNetwork, index: u32) -> AddressMessage {
    match ip {
        IpNetwork::V4(net) => AddressMessageBuilder::<std::net::Ipv4Addr>::new()
            .index(index)
            .address(net.ip(), net.prefix())
            .build(),
        IpNetwork::V6(net) => AddressMessageBuilder::<std::net::Ipv6Addr>::new()
            .index(index)
            .address(net.ip(), net.prefix())
            .build(),
    }
}

impl Handle {
    /// Puts an address on a link.
    ///
    /// # Errors
    /// [`is_exists`](crate::Error::is_exists) if it is there already.
    pub fn add_address(&self, link: &impl LinkRef, address: &NewAddress) -> Result<()> {
        self.execute(&address.request(link))
    }

    /// Removes an address from a link.
    ///
    /// # Errors
    /// [`is_not_found`](crate::Error::is_not_found) if it is not there.
    pub fn delete_address(&self, link: &impl LinkRef, ip: IpNetwork) -> Result<()> {
        self.execute(&Request::delete_address(link, ip))
    }

    /// The addresses of one link, of both families.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn addresses(&self, link: &impl LinkRef) -> Result<Vec<Address>> {
        let object = format!("addresses of {}", link.label());
        // A kernel that checks strictly lists this link only; older ones list all of them.
        let all = self.list_addresses(link.index(), object)?;
        Ok(all
            .into_iter()
            .filter(|address| address.index == link.index())
            .collect())
    }

    /// The addresses of all links.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn all_addresses(&self) -> Result<Vec<Address>> {
        self.list_addresses(0, "addresses".to_owned())
    }

    fn list_addresses(&self, index: u32, object: String) -> Result<Vec<Address>> {
        self.socket.exchange(&list_request(index, object), parse)
    }
}

/// The request that lists the addresses of one link; with index 0, of all.
fn list_request(index: u32, object: String) -> Request {
    let mut message = AddressMessage::default();
    message.header.index = index;
    Request::new(
        RouteNetlinkMessage::GetAddress(message),
        NLM_F_DUMP,
        "list",
        object,
    )
}

/// Reads an `RTM_NEWADDR` message; anything else is none.
pub(crate) fn parse(kind: u16, payload: &[u8]) -> Option<Address> {
    if kind != libc::RTM_NEWADDR {
        return None;
    }
    let header = AddressHeader::parse(payload).ok()?;
    let mut flags = AddressFlags::from_bits_retain(header.flags.bits().into());
    let (mut address, mut local) = (None, None);
    for (kind, value) in attributes(payload.get(HEADER_LEN..)?) {
        match kind {
            libc::IFA_ADDRESS => address = nla::as_ip(value),
            libc::IFA_LOCAL => local = nla::as_ip(value),
            libc::IFA_FLAGS => flags = AddressFlags::from_bits_retain(nla::as_u32(value)?),
            _ => {}
        }
    }
    // IFA_LOCAL is the own address of a point-to-point link, where IFA_ADDRESS is the peer's; IPv6 mostly has only the latter.
    let ip: IpAddr = local.or(address)?;
    let ip = IpNetwork::new(ip, header.prefix_len).ok()?;
    Some(Address {
        index: header.index,
        ip,
        flags,
        scope: header.scope.into(),
    })
}
