//! Who holds a key we want, and what may be done about it.

use std::net::IpAddr;

use super::entry::{Entry, Slot, destination_address};
use super::plan::{is_claim, is_port};
use super::record::{Place, Record};
use super::sets::{Field, SetId, TABLE};
use crate::error::{Error, Result};
use crate::intent::{Kinds, Protocol};
use crate::netfilter::ApplyOptions;
use crate::nfnl::{Data, Element, Request, Socket};
use crate::owner::{Holder, Owner};

/// A claim on a host port, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Claim {
    v6: bool,
    protocol: u8,
    port: u16,
    host: Option<IpAddr>,
}

impl Claim {
    fn of(slot: &Slot) -> Option<Self> {
        if !is_claim(slot) {
            return None;
        }
        let mut host = None;
        let mut rest = slot.key.as_slice();
        let (mut protocol, mut port) = (0, 0);
        for field in slot.set.key() {
            let (component, after) = rest.split_at_checked(field.padded())?;
            rest = after;
            match field {
                Field::Ip4 => {
                    host = component
                        .first_chunk::<4>()
                        .map(|octets| IpAddr::from(*octets))
                }
                Field::Ip6 => {
                    host = component
                        .first_chunk::<16>()
                        .map(|octets| IpAddr::from(*octets))
                }
                Field::Proto => protocol = *component.first()?,
                Field::Port => port = u16::from_be_bytes(*component.first_chunk::<2>()?),
                Field::Ether | Field::Name => return None,
            }
        }
        let v6 = matches!(
            slot.set,
            SetId::Publish6 | SetId::PublishAt6 | SetId::PublishThen6
        );
        Some(Self {
            v6,
            protocol,
            port,
            host,
        })
    }

    fn overlaps(&self, other: &Self) -> bool {
        let same_port =
            self.v6 == other.v6 && self.protocol == other.protocol && self.port == other.port;
        same_port && (self.host.is_none() || other.host.is_none() || self.host == other.host)
    }
}

/// Whether two elements claim the same host port: an address of its own overlaps the claim on all addresses.
pub(crate) fn overlap(one: &Slot, other: &Slot) -> bool {
    match (Claim::of(one), Claim::of(other)) {
        (Some(one), Some(other)) => one.overlaps(&other),
        _ => false,
    }
}

/// Elements of others that overlap a claim under another key. The same key is found out by the kernel.
pub(super) fn overlapping(socket: &mut Socket, claim: &Slot) -> Result<Vec<(Slot, Element)>> {
    let Some(wanted) = Claim::of(claim) else {
        return Ok(Vec::new());
    };
    let (any, then, at) = if wanted.v6 {
        (SetId::Publish6, SetId::PublishThen6, SetId::PublishAt6)
    } else {
        (SetId::Publish4, SetId::PublishThen4, SetId::PublishAt4)
    };
    let port = claim.key.len().saturating_sub(8);
    let port = claim.key.get(port..).unwrap_or_default();
    let mut found = Vec::new();
    for set in [any, then].into_iter().filter(|set| *set != claim.set) {
        let element = socket.element(set.family(), TABLE, set.name(), port)?;
        found.extend(element.map(|element| (set, element)));
    }
    if wanted.host.is_none() {
        let elements = socket.elements(at.family(), TABLE, at.name())?;
        found.extend(elements.into_iter().map(|element| (at, element)));
    }
    let slots = found.into_iter().map(|(set, element)| {
        (
            Slot {
                set,
                key: element.key.clone(),
            },
            element,
        )
    });
    Ok(slots.filter(|(slot, _)| overlap(slot, claim)).collect())
}

/// Whether the owner's container publishes the port already, on another network.
pub(super) fn is_served(socket: &mut Socket, owner: &Owner, entry: &Entry) -> Result<bool> {
    let mut found = overlapping(socket, &entry.slot)?;
    found.extend(occupant(socket, entry)?.map(|element| (entry.slot.clone(), element)));
    let holders = found
        .iter()
        .filter_map(|(_, element)| Holder::parse(&element.comment()?));
    Ok(is_port(&entry.slot)
        && holders
            .into_iter()
            .any(|holder| holder.is_of_container(owner)))
}

/// The element that has the key of a wanted one.
pub(super) fn occupant(socket: &mut Socket, entry: &Entry) -> Result<Option<Element>> {
    socket.element(
        entry.slot.set.family(),
        TABLE,
        entry.slot.set.name(),
        &entry.slot.key,
    )
}

/// What must go before ours can come.
#[derive(Debug, Default)]
pub(super) struct Displaced {
    /// Elements to delete.
    pub slots: Vec<Slot>,
    /// Chains that these may have been the last to use.
    pub chains: Vec<String>,
    /// Who lost something, for a log.
    pub losers: Vec<String>,
    /// Records that lose a part: where, under which comment, and what stays.
    shrunk: Vec<(Place, String, Record)>,
}

impl Displaced {
    /// Plans to displace a whole record.
    pub fn displace_record(&mut self, socket: &mut Socket, place: &Place) -> Result<()> {
        if let Some((record, own)) = Record::load(socket, place)? {
            self.add(record.slots.into_iter().chain(own));
            self.chains.extend(record.chains);
        }
        self.shrunk.retain(|(known, ..)| known != place);
        Ok(())
    }

    /// Plans to displace an element that stands in the way of `owner`. A port of another live container is an error; one
    /// of the same container on another network is left alone. Gives whether the owner's element may come.
    pub fn displace(
        &mut self,
        socket: &mut Socket,
        owner: &Owner,
        (slot, element): (&Slot, &Element),
        kind: Kinds,
        options: &ApplyOptions<'_>,
    ) -> Result<bool> {
        if self.slots.contains(slot) {
            return Ok(true);
        }
        let comment = element.comment().unwrap_or_default();
        let Some(holder) = Holder::parse(&comment) else {
            self.add([slot.clone()]);
            return Ok(true);
        };
        let place = Place::from_hash(&holder.instance_hash, kind);
        if holder.is(owner) {
            self.add([slot.clone()]);
            return self.displace_record(socket, &place).map(|()| true);
        }
        if is_port(slot) && lives(&holder, element, options) {
            // A container on several networks is given the same ports on each; the first one serves them.
            return if holder.is_of_container(owner) {
                Ok(false)
            } else {
                taken(slot, holder)
            };
        }
        self.losers
            .push(format!("{slot} was taken over from {holder}"));
        self.add([slot.clone()]);
        if is_port(slot) {
            // Its holder is dead, so all its ports go.
            self.displace_record(socket, &place)?;
        } else {
            self.shrink(socket, place, comment, slot)?;
        }
        Ok(true)
    }

    /// The messages that write what stays of shrunk records.
    pub fn mending(&self) -> Result<Vec<Request>> {
        let left = self
            .shrunk
            .iter()
            .filter(|(.., record)| !record.slots.is_empty());
        let written = left.map(|(place, comment, record)| record.write(place, comment));
        Ok(written
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// Takes one element out of somebody's record; the rest of it may be in use.
    fn shrink(
        &mut self,
        socket: &mut Socket,
        place: Place,
        comment: String,
        slot: &Slot,
    ) -> Result<()> {
        if let Some((.., record)) = self.shrunk.iter_mut().find(|(known, ..)| *known == place) {
            record.slots.retain(|known| known != slot);
        } else if let Some((mut record, own)) = Record::load(socket, &place)? {
            self.add(own);
            record.slots.retain(|known| known != slot);
            self.shrunk.push((place, comment, record));
        }
        Ok(())
    }

    fn add(&mut self, slots: impl IntoIterator<Item = Slot>) {
        for slot in slots {
            if !self.slots.contains(&slot) {
                self.slots.push(slot);
            }
        }
    }
}

fn lives(holder: &Holder, element: &Element, options: &ApplyOptions<'_>) -> bool {
    let address = match &element.data {
        Some(Data::Value(value)) => destination_address(value),
        _ => None,
    };
    address.is_none_or(|address| (options.alive)(holder, address))
}

fn taken(slot: &Slot, holder: Holder) -> Result<bool> {
    let claim = Claim::of(slot);
    let protocol = claim.and_then(|claim| Protocol::from_number(claim.protocol));
    match (claim, protocol) {
        (Some(claim), Some(protocol)) => Err(Error::PortTaken {
            port: claim.port,
            protocol,
            host_ip: claim.host,
            holder: Box::new(holder),
        }),
        _ => Err(Error::Invalid {
            what: slot.to_string(),
            reason: format!("it belongs to {holder}"),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nft::entry::Key;

    fn slot(host: Option<IpAddr>, protocol: Protocol, port: u16) -> Slot {
        match host {
            None => Slot {
                set: SetId::Publish4,
                key: Key::port(protocol, port).0,
            },
            Some(ip) => Slot {
                set: SetId::PublishAt4,
                key: Key::address(ip).and_port(protocol, port).0,
            },
        }
    }

    #[test]
    fn all_addresses_overlap_each() {
        let (one, two) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let any = slot(None, Protocol::Tcp, 80);
        assert!(overlap(&any, &any));
        assert!(overlap(&any, &slot(Some(one), Protocol::Tcp, 80)));
        assert!(overlap(&slot(Some(one), Protocol::Tcp, 80), &any));
        assert!(!overlap(
            &slot(Some(one), Protocol::Tcp, 80),
            &slot(Some(two), Protocol::Tcp, 80)
        ));
        assert!(!overlap(&any, &slot(None, Protocol::Udp, 80)));
        assert!(!overlap(&any, &slot(None, Protocol::Tcp, 81)));
        let v6 = Slot {
            set: SetId::Publish6,
            key: any.key.clone(),
        };
        assert!(!overlap(&any, &v6));
    }
}
