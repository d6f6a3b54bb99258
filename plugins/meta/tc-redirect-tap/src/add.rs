//! ADD.

use cni_types::result::Interface;
use interface::{World, owner, redirect};
use netfilter::Owner;
use netlink::tun::NewTap;
use netlink::{Link, LinkChange};
use skel::{Added, Request, Transaction, log};

use crate::config::Config;
use crate::error::Error;
use crate::{del, machine};

pub fn add(request: &Request<Config>) -> Result<Added, Error> {
    let wanted = request.config.tap(&request.args)?;
    let mut result = request.prev_result.clone().ok_or(Error::NoPrevResult)?;
    let owner = owner(request);
    let ifname = request.ifname.as_str();
    let mut transaction = Transaction::new(World::open(&request.netns)?);
    let link = transaction.container.find_link(ifname)?;
    let link = link.ok_or_else(|| Error::NotFound(ifname.to_owned()))?;
    clear_the_way(&transaction, &link, &wanted, &owner)?;

    let tap = create(&mut transaction, &wanted, &owner, link.mtu)?;
    redirect::apply(&mut transaction, |world| &world.container, &tap, link.index)?;
    redirect::apply(&mut transaction, |world| &world.container, &link, tap.index)?;

    let interface = |mac: Option<netlink::MacAddr>, sandbox: String| Interface {
        name: tap.name.clone(),
        mac: mac.map(|mac| mac.to_string()).unwrap_or_default(),
        mtu: link.mtu.into(),
        sandbox,
        ..Interface::default()
    };
    let sandbox = request.netns.as_path().display().to_string();
    let outer = interface(tap.mac, sandbox);
    let inner = interface(link.mac, request.container_id.as_str().to_owned());
    machine::describe(&mut result, ifname, outer, inner);
    Ok(Added::new(result, transaction))
}

/// A live tap of an earlier ADD, or a name that is taken, is found out before anything is changed. A tap to which the
/// interface does not lead was left by an ADD that was killed, or by an interface that is gone; it is removed.
fn clear_the_way(world: &World, link: &Link, wanted: &NewTap, owner: &Owner) -> Result<(), Error> {
    let container = &world.container;
    let leads_to = redirect::targets(container, link)?;
    let (ours, others): (Vec<Link>, Vec<Link>) = container
        .links()?
        .into_iter()
        .partition(|other| del::is_of(other, owner));
    if let Some(tap) = ours.iter().find(|tap| leads_to.contains(&tap.index)) {
        return Err(Error::Added(tap.name.clone()));
    }
    let mut names = others.iter().map(|other| &other.name);
    if let Some(name) = &wanted.name
        && names.any(|other| other == name)
    {
        return Err(interface::Error::Exists(name.clone()).into());
    }
    for tap in ours {
        log::info(format_args!("{} of an earlier ADD is replaced", tap.name));
        container.remove_link(&tap)?;
    }
    Ok(())
}

/// Makes the tap with all of its settings. It stays only from then on: whatever happens before, the kernel takes it away
/// with the file that it was made through.
fn create(
    transaction: &mut Transaction<World>,
    wanted: &NewTap,
    owner: &Owner,
    mtu: u32,
) -> Result<Link, Error> {
    let container = &transaction.container;
    let tap = container.create_tap(wanted)?;
    let link = container.link(tap.name())?;
    let requests = [
        // What the container's own kernel would say by the tap is not for the machine to hear.
        LinkChange::new().no_link_local().request(&link)?,
        LinkChange::new()
            .mtu(mtu)
            .alias(owner.comment())
            .request(&link)?,
    ];
    let mut verdicts = container.execute_each(&requests)?.into_iter();
    if let Some(Err(error)) = verdicts.next() {
        log::debug(format_args!("{error}"));
    }
    verdicts.try_for_each(|verdict| verdict)?;
    let index = link.index;
    transaction.on_failure(format!("delete {}", link.name), move |world: &mut World| {
        world.container.remove_link(&index)
    });
    tap.persist()?;
    transaction.container.set_up(&link)?;
    Ok(link)
}
