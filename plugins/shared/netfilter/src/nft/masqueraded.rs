//! Whose a masqueraded address is, for backends whose own rules do not say.

use std::net::IpAddr;

use super::entry::Key;
use super::record::{Place, Record};
use super::sets::{SetId, TABLE};
use crate::error::Result;
use crate::intent::Kinds;
use crate::nfnl::Socket;
use crate::owner::{Holder, Owner};

/// The owner's masqueraded addresses.
pub(crate) fn addresses(socket: &mut Socket, owner: &Owner) -> Result<Vec<IpAddr>> {
    let found = Record::load(socket, &Place::of(owner, Kinds::MASQUERADE))?;
    let slots = found.map(|(record, _)| record.slots).unwrap_or_default();
    let address = |key: &[u8]| {
        let v4 = <[u8; 4]>::try_from(key).map(IpAddr::from);
        v4.or_else(|_| <[u8; 16]>::try_from(key).map(IpAddr::from))
            .ok()
    };
    let masquerades = slots
        .iter()
        .filter(|slot| matches!(slot.set, SetId::Masquerade4 | SetId::Masquerade6));
    Ok(masquerades.filter_map(|slot| address(&slot.key)).collect())
}

/// Who has the address masqueraded.
pub(crate) fn holder(socket: &mut Socket, address: IpAddr) -> Result<Option<Holder>> {
    let set = if address.is_ipv4() {
        SetId::Masquerade4
    } else {
        SetId::Masquerade6
    };
    let element = socket.element(set.family(), TABLE, set.name(), &Key::address(address).0)?;
    Ok(element.and_then(|element| Holder::parse(&element.comment()?)))
}
