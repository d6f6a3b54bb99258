//! The intermediate functional block of an attachment: its names, and whose one is.
//!
//! The reference set gives it a name by network and container and nothing else. Here the alias tells the owner. A block
//! gets its alias in the request that sets it up, so one that is down and has none was left by an ADD that was killed in
//! between; its MAC address, which it is born with, tells whose that was.

use interface::World;
use netfilter::{Owner, hex_digest, network_hash};
use netlink::{Link, LinkChange, MacAddr, NewIfb};
use skel::{Transaction, log};

use crate::error::Error;

/// What the names begin with.
const PREFIX: &str = "bwp";

/// Hex digits of a hash in a name.
const DIGITS: usize = 12;

/// The names for the block, best first. The first is the reference set's, and the same for every interface of a container
/// on one network; the second is for when another of them has it.
pub fn names(owner: &Owner) -> [String; 2] {
    let Owner {
        network,
        container_id,
        ifname,
    } = owner;
    let texts = [
        format!("{network}{container_id}"),
        format!("{network}{container_id}/{ifname}"),
    ];
    texts.map(|text| format!("{PREFIX}{}", hex_digest(&text, DIGITS)))
}

/// Three bytes for the network, two for the attachment.
fn mac(owner: &Owner) -> MacAddr {
    let [_, n0, n1, n2, ..] = network_mac(&owner.network).octets();
    let hash = owner.instance_hash();
    let instance = hash.rsplit('-').next().unwrap_or_default();
    let [i0, i1, ..] = bytes(instance);
    MacAddr::new([2, n0, n1, n2, i0, i1])
}

/// The beginning that the MAC addresses of a network have in common.
fn network_mac(network: &str) -> MacAddr {
    let [n0, n1, n2] = bytes(&network_hash(network));
    MacAddr::new([2, n0, n1, n2, 0, 0])
}

fn bytes(hex: &str) -> [u8; 3] {
    let value = hex
        .get(..6)
        .and_then(|six| u32::from_str_radix(six, 16).ok());
    let [_, a, b, c] = value.unwrap_or_default().to_be_bytes();
    [a, b, c]
}

/// Whether it is the block of this attachment, finished or not.
pub fn is_of(link: &Link, owner: &Owner) -> bool {
    has_alias(link, &owner.instance_hash()) || (is_unfinished(link) && link.mac == Some(mac(owner)))
}

/// Whether it is a block that the reference set would have made for this attachment. It says no more than its name.
pub fn is_of_reference(link: &Link, owner: &Owner) -> bool {
    let [first, _] = names(owner);
    link.is_ifb() && link.name == first && link.alias.is_none() && !is_of(link, owner)
}

/// Whether it is a block of this network, and of none of the valid attachments. Blocks of the reference set do not tell
/// their network.
pub fn is_stale(link: &Link, network: &str, valid: &[Owner]) -> bool {
    let begins_like_network = link.mac.is_some_and(|mac| {
        let ([a, b, c, d, ..], [w, x, y, z, ..]) = (mac.octets(), network_mac(network).octets());
        [a, b, c, d] == [w, x, y, z]
    });
    let of_network = has_alias(link, &format!("{}-", network_hash(network)))
        || (is_unfinished(link) && begins_like_network);
    of_network && !valid.iter().any(|owner| is_of(link, owner))
}

fn has_alias(link: &Link, beginning: &str) -> bool {
    let alias = link.alias.as_deref();
    link.is_ifb() && alias.is_some_and(|alias| alias.starts_with(beginning))
}

fn is_unfinished(link: &Link) -> bool {
    link.is_ifb() && !link.up && link.alias.is_none() && link.name.starts_with(PREFIX)
}

/// Makes the block of an attachment, and sets it up. One that is there from an earlier ADD is replaced: whatever it
/// belonged to is gone, or is being set up anew.
pub fn create(
    transaction: &mut Transaction<World>,
    owner: &Owner,
    mtu: u32,
) -> Result<Link, Error> {
    let names = names(owner);
    for name in &names {
        if let Some(link) = transaction.host.find_link(name)? {
            if !is_of(&link, owner) {
                continue;
            }
            log::info(format_args!("{name} of an earlier ADD is replaced"));
            transaction.host.remove_link(&link)?;
        }
        // Before it is made: the kernel may have done it though its answer is lost.
        let (doomed, of) = (name.clone(), owner.clone());
        transaction.on_failure(
            format!("delete {name}"),
            move |world: &mut World| match world.host.find_link(&doomed)? {
                Some(link) if is_of(&link, &of) => world.host.remove_link(&link),
                _ => Ok(()),
            },
        );
        let new = NewIfb {
            name: name.clone(),
            mac: mac(owner),
            mtu,
        };
        match transaction.host.create_ifb(&new) {
            Err(error) if error.is_exists() => {}
            made => return set_up(transaction, owner, made?),
        }
    }
    Err(Error::NamesTaken(names.join(" and ")))
}

fn set_up(world: &World, owner: &Owner, link: Link) -> Result<Link, Error> {
    // An address of its own would be of no use to anybody.
    let requests = [
        LinkChange::new().no_link_local().request(&link)?,
        LinkChange::new()
            .alias(owner.comment())
            .up(true)
            .request(&link)?,
    ];
    let mut verdicts = world.host.execute_each(&requests)?.into_iter();
    if let Some(Err(error)) = verdicts.next() {
        log::debug(format_args!("{error}"));
    }
    verdicts.try_for_each(|verdict| verdict)?;
    Ok(link)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_is_that_of_the_reference_set() {
        let [first, second] = names(&Owner::new("bwnet", "bA", "eth0"));
        assert_eq!(first, "bwp39e7deecef5f");
        assert_eq!(second.len(), first.len());
        let [same, other] = names(&Owner::new("bwnet", "bA", "net1"));
        assert_eq!(first, same);
        assert_ne!(second, other);
    }

    #[test]
    fn mac_addresses_tell_network_and_attachment() {
        let [a, b] = ["eth0", "net1"].map(|ifname| mac(&Owner::new("n", "c", ifname)).octets());
        assert_eq!(a[..4], b[..4]);
        assert_ne!(a, b);
        assert_eq!(a[0], 2);
        assert_ne!(a[..4], mac(&Owner::new("m", "c", "eth0")).octets()[..4]);
    }
}
