//! Whose an admitted address is.
//!
//! Neither firewalld's sources nor the iptables layout's accept rules name an owner: they are removed by address.
//! That goes wrong in two ways, and what is known of masquerading mends both. A removal that does not know the
//! addresses finds them there. And one that comes late, when the address belongs to another container already,
//! must not cut that one off.

use std::net::IpAddr;

use crate::carrier::Context;
use crate::iptables;
use crate::nft;
use crate::owner::Owner;

/// The addresses whose admission ends with the owner, from those the caller knows. Nothing here is an error: it
/// only makes a removal better than it would be.
pub(crate) fn ending(context: &mut Context<'_>, owner: &Owner, known: &[IpAddr]) -> Vec<IpAddr> {
    if known.is_empty() {
        return found(context, owner);
    }
    known
        .iter()
        .copied()
        .filter(|address| !belongs_to_another(context, owner, *address))
        .collect()
}

fn found(context: &mut Context<'_>, owner: &Owner) -> Vec<IpAddr> {
    let mut addresses = nft::masqueraded(context.socket, owner).unwrap_or_default();
    addresses.extend(iptables::masqueraded(context.socket, owner).unwrap_or_default());
    addresses.sort();
    addresses.dedup();
    addresses
}

/// Whether somebody else has the address, and the owner has it no more.
fn belongs_to_another(context: &mut Context<'_>, owner: &Owner, address: IpAddr) -> bool {
    let in_nft = nft::masquerader(context.socket, address).ok().flatten();
    if in_nft.as_ref().is_some_and(|holder| holder.is(owner)) {
        return false;
    }
    let in_iptables = iptables::masqueraders(context.socket, address).unwrap_or_default();
    let ours = |(network, id): &(String, Option<String>)| {
        *network == owner.network && id.as_ref().is_none_or(|id| *id == owner.container_id)
    };
    if in_iptables.iter().any(ours) {
        return false;
    }
    let other = in_nft.map(|holder| holder.to_string()).or_else(|| {
        let (network, id) = in_iptables.into_iter().next()?;
        Some(format!(
            "container {} of network {network}",
            id.unwrap_or_default()
        ))
    });
    if let Some(other) = &other {
        context.warnings.push(format!(
            "{address} stays admitted: it belongs to {other} by now, not to {owner}"
        ));
    }
    other.is_some()
}
