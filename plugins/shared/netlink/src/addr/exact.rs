//! Addresses with everything the kernel tells of them, to be put back where they were lost.

use netlink_packet_core::{DefaultNla, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeader, AddressHeaderFlags, AddressMessage,
};
use nix::libc;

use super::{Address, HEADER_LEN};
use crate::error::Result;
use crate::handle::Handle;
use crate::link::LinkRef;
use crate::nla::attributes;
use crate::request::Request;

/// An address with every attribute the kernel tells, its lifetimes and those this crate does not know included.
#[derive(Debug, Clone)]
pub struct ExactAddress {
    address: Address,
    header: AddressHeader,
    attributes: Vec<(u16, Vec<u8>)>,
}

impl ExactAddress {
    /// What is known of it.
    #[must_use]
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The request that puts it on its link again. An IPv6 address that nobody else was found to hold is not asked about
    /// a second time; detection that had not ended begins anew.
    #[must_use]
    pub fn request(&self, link: &impl LinkRef) -> Request {
        let mut message = AddressMessage::default();
        message.header = AddressHeader {
            index: link.index(),
            flags: AddressHeaderFlags::empty(),
            ..self.header.clone()
        };
        let others = self.attributes.iter();
        let others = others.filter(|(kind, _)| *kind != libc::IFA_FLAGS);
        message.attributes = others
            .map(|(kind, value)| AddressAttribute::Other(DefaultNla::new(*kind, value.clone())))
            .collect();
        message
            .attributes
            .push(AddressAttribute::Flags(self.flags()));
        Request::new(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
            "add address",
            format!("{} to {}", self.address.ip, link.label()),
        )
    }

    fn flags(&self) -> AddressFlags {
        let mut flags = self.address.flags;
        let in_question = AddressFlags::Tentative | AddressFlags::Dadfailed;
        if self.address.ip.is_ipv6() && !flags.intersects(in_question) {
            flags |= AddressFlags::Nodad;
            flags -= AddressFlags::Optimistic;
        }
        flags - in_question
    }
}

impl Handle {
    /// The addresses of one link, of both families, each with everything the kernel tells of it.
    ///
    /// # Errors
    /// If the listing fails.
    pub fn exact_addresses(&self, link: &impl LinkRef) -> Result<Vec<ExactAddress>> {
        let object = format!("addresses of {}", link.label());
        let request = super::list_request(link.index(), object);
        let all = self.socket.exchange(&request, parse)?;
        let of_link = |one: &ExactAddress| one.address.index == link.index();
        Ok(all.into_iter().filter(of_link).collect())
    }
}

fn parse(kind: u16, payload: &[u8]) -> Option<ExactAddress> {
    let address = super::parse(kind, payload)?;
    let all = attributes(payload.get(HEADER_LEN..)?);
    Some(ExactAddress {
        address,
        header: AddressHeader::parse(payload).ok()?,
        attributes: all.map(|(kind, value)| (kind, value.to_vec())).collect(),
    })
}
