//! An owner's record: everything it has of one kind, kept in elements of the set `owners`.
//!
//! The key names the owner and the kind, the userdata holds the comment `nft` shows and, in an entry of our own,
//! references to the elements and chains. So a removal needs neither a dump nor a memory. A record too long for one
//! element (254 bytes of userdata) goes on in further ones.

use super::entry::{Key, Slot};
use super::search;
use super::sets::{SetId, TABLE};
use crate::error::{Error, Result};
use crate::intent::Kinds;
use crate::nfnl::consts::flag;
use crate::nfnl::{Family, Request, Socket, udata_entries, udata_push, udata_with_comment};
use crate::owner::{Holder, Owner};

/// Our entry in the userdata; `nft` passes over types it does not know.
const REFERENCES: u8 = 0xf1;
/// The kernel keeps the length of an element's userdata and its one byte of header in a byte, so it refuses what
/// NFT_USERDATA_MAXLEN (256) would allow.
const USERDATA_MAX: usize = 254;
/// Mark of a chain's name among the references; sets have their own numbers.
const CHAIN: u8 = 0;

/// What an owner has of one kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Record {
    pub slots: Vec<Slot>,
    /// Chains that may have become idle when the elements are gone.
    pub chains: Vec<String>,
}

/// Where a record is: the hashes of network and instance (15 digits each: an interface name's length) and the kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    network: String,
    instance: String,
    kind: Kinds,
}

impl Place {
    pub fn of(owner: &Owner, kind: Kinds) -> Self {
        Self::from_hash(&owner.instance_hash(), kind)
    }

    /// From the 33 characters of an instance hash.
    pub fn from_hash(hash: &str, kind: Kinds) -> Self {
        let (network, instance) = hash.split_once('-').unwrap_or((hash, ""));
        let cut = |text: &str| text.get(..15).unwrap_or(text).to_owned();
        Self {
            network: cut(network),
            instance: cut(instance),
            kind,
        }
    }

    /// The kind of the record.
    pub fn kind(&self) -> Kinds {
        self.kind
    }

    /// Whether this is a record of that holder.
    pub fn is_of(&self, holder: &Holder) -> bool {
        *self == Self::from_hash(&holder.instance_hash, self.kind)
    }

    /// Whether an element of the set `owners` is one of this record's.
    pub fn has(&self, slot: &Slot) -> bool {
        (0..u8::MAX).any(|index| self.slot(index) == *slot)
    }

    /// The slot of the record's n-th element.
    pub fn slot(&self, index: u8) -> Slot {
        let kind = self.kind.to_string();
        let part = if index == 0 {
            kind
        } else {
            format!("{kind}-{index}")
        };
        let key = Key::name(&self.network)
            .and_name(&self.instance)
            .and_name(&part);
        Slot {
            set: SetId::Owners,
            key: key.0,
        }
    }
}

/// The key of an owner where its kind is clear.
pub(crate) fn owner_key(owner: &Owner) -> Key {
    let place = Place::of(owner, Kinds::CONFINE);
    Key::name(&place.network).and_name(&place.instance)
}

impl Record {
    /// Reads a record; `None` if the owner has nothing of the kind. Also gives the slots of its own elements.
    pub fn load(socket: &mut Socket, place: &Place) -> Result<Option<(Self, Vec<Slot>)>> {
        let mut record = Self::default();
        let mut own = Vec::new();
        for index in 0..u8::MAX {
            let slot = place.slot(index);
            let found = socket.element(Family::Inet, TABLE, slot.set.name(), &slot.key)?;
            let last = match found {
                None if own.is_empty() => return Ok(None),
                None => None,
                Some(element) => record.read(&element.userdata),
            };
            own.push(slot);
            match last {
                Some(true) => return Ok(Some((record, own))),
                Some(false) => {}
                None => break,
            }
        }
        search::reconstruct(socket, place).map(Some)
    }

    /// Adds the references in an element's userdata. Gives whether it was the record's last element.
    fn read(&mut self, userdata: &[u8]) -> Option<bool> {
        let (_, references) = udata_entries(userdata).find(|(kind, _)| *kind == REFERENCES)?;
        let (last, mut rest) = references.split_first()?;
        while let Some((number, after)) = rest.split_first() {
            rest = after;
            if *number == CHAIN {
                let (len, after) = rest.split_first()?;
                let (name, after) = after.split_at_checked((*len).into())?;
                self.chains.push(String::from_utf8_lossy(name).into_owned());
                rest = after;
            } else {
                self.slots
                    .push(Slot::from_compact(SetId::from_number(*number)?, &mut rest)?);
            }
        }
        Some(*last == 1)
    }

    /// The messages that write the record.
    pub fn write(&self, place: &Place, comment: &str) -> Result<Vec<Request>> {
        let base = udata_with_comment(comment);
        let room = USERDATA_MAX.saturating_sub(base.len() + 3);
        let mut parts: Vec<Vec<u8>> = vec![Vec::new()];
        for reference in self.references() {
            match parts.last_mut() {
                Some(part) if part.len() + reference.len() <= room => part.extend(reference),
                _ => parts.push(reference),
            }
        }
        let count = parts.len();
        let write = |(index, part): (usize, Vec<u8>)| {
            let slot = u8::try_from(index)
                .ok()
                .filter(|index| *index < u8::MAX)
                .map(|index| place.slot(index));
            let mut userdata = base.clone();
            let mut value = vec![u8::from(index + 1 == count)];
            value.extend(part);
            udata_push(&mut userdata, REFERENCES, &value);
            Some(slot?.add(flag::EXCL, &userdata, None))
        };
        let requests: Option<Vec<_>> = parts.into_iter().enumerate().map(write).collect();
        requests.ok_or_else(|| Error::Invalid {
            what: format!("request with {} rules", self.slots.len()),
            reason: "more than one attachment can hold".into(),
        })
    }

    fn references(&self) -> impl Iterator<Item = Vec<u8>> {
        let chains = self.chains.iter().map(|name| {
            let len = u8::try_from(name.len()).unwrap_or(u8::MAX);
            [CHAIN, len]
                .into_iter()
                .chain(name.bytes().take(len.into()))
                .collect()
        });
        let slots = self.slots.iter().map(|slot| {
            let mut reference = vec![slot.set.number()];
            reference.extend(slot.compact());
            reference
        });
        chains.chain(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_userdata_is_survived(userdata in proptest::collection::vec(any::<u8>(), 0..256)) {
            let _ = Record::default().read(&userdata);
        }

        #[test]
        fn any_references_are_survived(value in proptest::collection::vec(any::<u8>(), 0..250)) {
            let mut userdata = udata_with_comment("x");
            udata_push(&mut userdata, REFERENCES, &value);
            let _ = Record::default().read(&userdata);
        }
    }

    #[test]
    fn a_record_has_a_place_of_its_own() {
        let owner = |id: &str| Owner {
            network: "n".into(),
            container_id: id.into(),
            ifname: "eth0".into(),
        };
        let place = Place::of(&owner("a"), Kinds::PUBLISH);
        assert!(
            place.is_of(&Holder::from(&owner("a"))) && !place.is_of(&Holder::from(&owner("b")))
        );
        assert!(place.has(&place.slot(0)) && place.has(&place.slot(7)));
        assert!(!place.has(&Place::of(&owner("b"), Kinds::PUBLISH).slot(0)));
        assert!(!place.has(&Place::of(&owner("a"), Kinds::ADMIT).slot(0)));
    }
}
