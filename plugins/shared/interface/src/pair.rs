//! Whose a veth pair is: by its host end's alias, and before it has one, by its name.
//!
//! A pair comes to life in one request to the kernel and gets its alias in another. A plugin that is killed in
//! between leaves a pair without an alias, which must be found all the same; so the name tells the owner, too.

mod make;
mod remove;

use netfilter::Owner;
use netlink::Link;

pub use make::create;
pub use remove::{collect, remove};

/// What the names begin with.
const PREFIX: &str = "veth";

/// Hex digits of the network's hash in a name.
const NETWORK_DIGITS: usize = 3;

/// Hex digits of the attachment's hash in a name; together the name has the 15 bytes that the kernel takes.
const INSTANCE_DIGITS: usize = 8;

/// The names for the host's end, best first. The second is for when the first belongs to somebody else, whose
/// hash has the same beginning.
pub fn names(owner: &Owner) -> [String; 2] {
    let hash = owner.instance_hash();
    let prefix = network_prefix(&owner.network);
    let instance = hash.rsplit('-').next().unwrap_or_default();
    let (first, second) = instance
        .split_at_checked(INSTANCE_DIGITS)
        .unwrap_or_default();
    [first, second].map(|digits| format!("{prefix}{digits}"))
}

fn network_prefix(network: &str) -> String {
    let hash = netfilter::network_hash(network);
    let digits = hash.get(..NETWORK_DIGITS).unwrap_or_default();
    format!("{PREFIX}{digits}")
}

/// Whether it is the host's end of a pair of this attachment.
pub fn is_of(link: &Link, owner: &Owner) -> bool {
    has_alias(link, &owner.instance_hash()) || is_unfinished(link, owner)
}

/// Whether it is the host's end of a pair that an ADD of this attachment began and did not finish.
pub fn is_unfinished(link: &Link, owner: &Owner) -> bool {
    is_nobodys(link) && names(owner).contains(&link.name)
}

/// Whether it is the host's end of a pair of this network, and of none of the valid attachments.
pub fn is_stale(link: &Link, network: &str, valid: &[Owner]) -> bool {
    let name = network_prefix(network);
    let of_network = has_alias(link, &format!("{}-", netfilter::network_hash(network)))
        || (is_nobodys(link)
            && link.name.len() == name.len() + INSTANCE_DIGITS
            && link.name.starts_with(&name));
    of_network && !valid.iter().any(|owner| is_of(link, owner))
}

fn has_alias(link: &Link, beginning: &str) -> bool {
    link.is_veth()
        && link
            .alias
            .as_deref()
            .is_some_and(|alias| alias.starts_with(beginning))
}

/// A pair gets its alias and is set up in the same request.
fn is_nobodys(link: &Link) -> bool {
    link.is_veth() && !link.up && link.alias.as_deref().unwrap_or_default().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(container_id: &str) -> Owner {
        Owner {
            network: "net".into(),
            container_id: container_id.into(),
            ifname: "eth0".into(),
        }
    }

    #[test]
    fn names_tell_owners_apart_and_fit_the_kernel() {
        let [first, second] = names(&owner("a"));
        assert_eq!((first.len(), second.len()), (15, 15));
        assert_ne!(first, second);
        assert_ne!(first, names(&owner("b"))[0]);
        assert_eq!(first, names(&owner("a"))[0]);
        assert_eq!(
            first[..7],
            names(&owner("b"))[0][..7],
            "one network, one beginning"
        );
    }
}
