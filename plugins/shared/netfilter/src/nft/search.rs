//! Finding elements by their comments, for want of a record.

use super::entry::Slot;
use super::record::{Place, Record};
use super::sets::{SetId, TABLE};
use crate::error::Result;
use crate::nfnl::{Data, Element, Socket};
use crate::owner::Holder;

/// The elements of a set whose comments name an owner.
pub(super) fn holders(socket: &mut Socket, set: SetId) -> Result<Vec<(Slot, Element, Holder)>> {
    let elements = socket.elements(set.family(), TABLE, set.name())?;
    let holder = |element: Element| {
        let holder = Holder::parse(&element.comment()?)?;
        Some((
            Slot {
                set,
                key: element.key.clone(),
            },
            element,
            holder,
        ))
    };
    Ok(elements.into_iter().filter_map(holder).collect())
}

/// What a record must have said, from a reading of all sets. A ruleset that was saved as text and loaded again has its
/// comments, but not what else was in the userdata.
pub(super) fn reconstruct(socket: &mut Socket, place: &Place) -> Result<(Record, Vec<Slot>)> {
    let mut record = Record::default();
    for set in SetId::ALL
        .into_iter()
        .filter(|set| set.kind() == Some(place.kind()))
    {
        for (slot, element, _) in holders(socket, set)?
            .into_iter()
            .filter(|(.., holder)| place.is_of(holder))
        {
            record.slots.push(slot);
            if let Some(Data::Verdict(verdict)) = element.data {
                record.chains.extend(verdict.chain);
            }
        }
    }
    record.chains.sort();
    record.chains.dedup();
    let own = holders(socket, SetId::Owners)?
        .into_iter()
        .map(|(slot, ..)| slot);
    Ok((record, own.filter(|slot| place.has(slot)).collect()))
}
