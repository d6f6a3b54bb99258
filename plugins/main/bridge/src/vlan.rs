//! VLANs of a port, and the gateway's own port in a VLAN.

use std::collections::BTreeSet;

use netlink::{Handle, Link, LinkChange, LinkRef, NewVeth, VlanRange};
use skel::Transaction;

use crate::config::PortVlans;
use crate::error::Error;
use crate::world::World;

/// The VLAN that an untagged frame belongs to on a port that has a trunk only.
const NATIVE: u16 = 1;

/// Puts a new port into its VLANs, and takes it out of the one that the kernel gave it.
pub fn set(
    host: &Handle,
    bridge: &Link,
    vlans: &PortVlans,
    port: &impl LinkRef,
) -> Result<(), Error> {
    let wanted = wanted(vlans);
    if wanted.is_empty() {
        return Ok(());
    }
    let given = bridge
        .default_pvid
        .filter(|vid| *vid != 0 && !vlans.keep_default);
    if let Some(vid) = given.filter(|vid| !wanted.iter().any(|range| range.contains(*vid))) {
        host.delete_vlans(port, &[VlanRange::native(vid)])?;
    }
    Ok(host.add_vlans(port, &wanted)?)
}

/// The VLANs of a port: the untagged one, then the tagged ones.
pub fn wanted(vlans: &PortVlans) -> Vec<VlanRange> {
    let native = vlans.access.or((!vlans.trunk.is_empty()).then_some(NATIVE));
    let tagged = vlans
        .trunk
        .iter()
        .copied()
        .filter(|vid| Some(*vid) != native);
    let mut wanted: Vec<VlanRange> = native.map(VlanRange::native).into_iter().collect();
    wanted.extend(runs(&tagged.collect()));
    wanted
}

/// Consecutive VLANs as one range each.
fn runs(ids: &BTreeSet<u16>) -> Vec<VlanRange> {
    let mut runs: Vec<(u16, u16)> = Vec::new();
    for id in ids {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == *id => *last = *id,
            _ => runs.push((*id, *id)),
        }
    }
    runs.into_iter()
        .map(|(first, last)| VlanRange::tagged(first, last))
        .collect()
}

/// Name of the interface that carries the gateway address of a VLAN.
pub fn gateway_name(bridge: &str, vid: u16) -> String {
    format!("{bridge}.{vid}")
}

/// Finds the interface of the gateway in a VLAN, or makes it: one end of a pair on the host whose other end
/// is a port of the bridge in that VLAN.
pub fn ensure_gateway(
    transaction: &mut Transaction<World>,
    bridge: &Link,
    vlans: &PortVlans,
    vid: u16,
) -> Result<Link, Error> {
    let name = gateway_name(&bridge.name, vid);
    if let Some(link) = transaction.host.find_link(&name)? {
        if !link.is_veth() {
            return Err(Error::NotAVlanGateway(name));
        }
        return Ok(link);
    }
    let pair = NewVeth {
        mtu: Some(bridge.mtu),
        master: Some(bridge.index),
        ..NewVeth::new(name.as_str())?
    };
    let made = match transaction.host.create_veth(&pair, &transaction.host) {
        // Another ADD was faster.
        Err(error) if error.is_exists() => return Ok(transaction.host.link(&name)?),
        other => other?,
    };
    let (index, on_bridge) = (made.container.index, bridge.index);
    transaction.on_failure(format!("delete {name}"), move |world: &mut World| {
        if crate::bridging::has_other_ports(&world.host, on_bridge, index)? {
            return Ok(());
        }
        world.host.delete_link(&index)
    });
    let access = PortVlans {
        access: Some(vid),
        trunk: BTreeSet::new(),
        ..vlans.clone()
    };
    set(&transaction.host, bridge, &access, &made.host)?;
    transaction
        .host
        .change_link(&made.host, &LinkChange::new().up(true))?;
    transaction.host.set_up(&made.container)?;
    Ok(transaction.host.link(&name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vlans(access: Option<u16>, trunk: &[u16]) -> PortVlans {
        PortVlans {
            access,
            trunk: trunk.iter().copied().collect(),
            filtering: true,
            keep_default: false,
        }
    }

    #[test]
    fn a_trunk_without_an_untagged_vlan_keeps_the_native_one() {
        let got = wanted(&vlans(None, &[101, 200, 201, 202]));
        assert_eq!(
            got,
            [
                VlanRange::native(1),
                VlanRange::tagged(101, 101),
                VlanRange::tagged(200, 202)
            ]
        );
    }

    #[test]
    fn the_untagged_vlan_comes_first() {
        let got = wanted(&vlans(Some(100), &[5]));
        assert_eq!(got, [VlanRange::native(100), VlanRange::tagged(5, 5)]);
    }

    #[test]
    fn vlan_1_in_the_trunk_stays_the_native_one() {
        let got = wanted(&vlans(None, &[1, 2]));
        assert_eq!(got, [VlanRange::native(1), VlanRange::tagged(2, 2)]);
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(wanted(&vlans(None, &[])).is_empty());
    }
}
