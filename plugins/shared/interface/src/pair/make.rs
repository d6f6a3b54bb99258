//! Making a pair.

use netfilter::Owner;
use netlink::{Handle, NewVeth, Veth};
use skel::Transaction;

use super::{is_unfinished, names};
use crate::error::Error;
use crate::world::World;

/// Makes a pair, the host's end under a name that tells its owner. The caller gives that end its alias when it sets it
/// up. What an ADD of the same attachment left half-made is removed first.
///
/// # Errors
/// [`Error::Exists`] if the name in the container is taken, else the kernel's refusal.
pub fn create<X: 'static>(
    transaction: &mut Transaction<World<X>>,
    mut pair: NewVeth,
    owner: &Owner,
) -> Result<Veth, Error> {
    // The kernel may have made it though its answer is lost.
    let begun = owner.clone();
    transaction.on_failure("look for a pair half made", move |world: &mut World<X>| {
        remove_unfinished(&world.host, &begun)
    });
    let veth = create_named(transaction, &mut pair, owner)?;
    let made = veth.host.clone();
    transaction.on_failure(
        format!("delete {}", made.name),
        // The pair goes with the container's namespace, too.
        move |world: &mut World<X>| world.host.remove_link(&made),
    );
    Ok(veth)
}

/// Makes the pair under the first of its names that is free; under a random one if none is.
fn create_named<X>(world: &World<X>, pair: &mut NewVeth, owner: &Owner) -> Result<Veth, Error> {
    let names = names(owner).map(Some);
    let mut cleared = false;
    for name in names.into_iter().chain([None]) {
        pair.host_name = name;
        loop {
            match world.host.create_veth(pair, &world.container) {
                Err(error) if error.is_exists() => {}
                other => return Ok(other?),
            }
            if world.container.find_link(&owner.ifname)?.is_some() {
                return Err(Error::Exists(owner.ifname.clone()));
            }
            if std::mem::replace(&mut cleared, true) {
                break;
            }
            // An ADD of this attachment was killed half-way, in a namespace that it does not have any more.
            remove_unfinished(&world.host, owner)?;
        }
    }
    Err(Error::Exists(owner.ifname.clone()))
}

fn remove_unfinished(host: &Handle, owner: &Owner) -> netlink::Result<()> {
    let links = host.links()?;
    let mut unfinished = links.iter().filter(|link| is_unfinished(link, owner));
    unfinished.try_for_each(|link| host.remove_link(link))
}
