//! Sending everything that arrives by one link out of another.

use netlink::tc::{Filter, Place, Qdisc, Redirect};
use netlink::{Handle, Link, Request};
use skel::Transaction;

use crate::error::Error;
use crate::world::World;

/// The turn of our filter in a place of our own, as in the reference set.
const FIRST: u16 = 1;

/// The turn of our filter where others were before: behind them, even those that let the kernel choose (0xc000). What is
/// redirected is not shown to any filter after it.
const LAST: u16 = 0xc001;

/// Redirects what arrives by `from` to the link with the index `to`, both in the namespace of the handle that `at` picks. A
/// queueing discipline for arriving packets that somebody else made is used with the filters in it.
///
/// # Errors
/// What the kernel refuses.
pub fn apply<X: 'static>(
    transaction: &mut Transaction<World<X>>,
    at: fn(&World<X>) -> &Handle,
    from: &Link,
    to: u32,
) -> Result<(), Error> {
    let (place, priority) = provide_place(transaction, at, from)?;
    let (link, used) = (from.index, place.clone());
    transaction.on_failure(
        format!("remove the filter of {}", from.name),
        move |world: &mut World<X>| {
            remove_filters(at(world), link, &used, |filter| filter.redirect == Some(to))
        },
    );
    let redirect = Redirect {
        to,
        priority: Some(priority),
    };
    let change = Request::add_redirect(from, &place, &redirect)?;
    Ok(at(transaction).execute(&change)?)
}

/// The place for filters of what arrives by a link, made unless somebody else made one, and the turn for ours there.
fn provide_place<X: 'static>(
    transaction: &mut Transaction<World<X>>,
    at: fn(&World<X>) -> &Handle,
    from: &Link,
) -> Result<(Qdisc, u16), Error> {
    let mut priority = LAST;
    let mut place = at(transaction).qdisc(from, Place::Ingress)?;
    if place.is_none() {
        let link = from.index;
        transaction.on_failure(
            format!("remove the ingress queueing discipline of {}", from.name),
            move |world: &mut World<X>| remove_empty_place(at(world), link),
        );
        match at(transaction).execute(&Request::add_ingress(from)?) {
            Ok(()) => priority = FIRST,
            // Another program was faster.
            Err(error) if error.is_exists() => {}
            Err(error) => return Err(error.into()),
        }
        place = at(transaction).qdisc(from, Place::Ingress)?;
    }
    let place =
        place.ok_or_else(|| Error::Check(format!("interface {} takes no filters", from.name)))?;
    remove_filters(at(transaction), from.index, &place, is_dead)?;
    Ok((place, priority))
}

/// CHECK: what arrives by `from` goes to the link with the index `to`.
///
/// # Errors
/// [`Error::Check`] if it does not.
pub fn verify(handle: &Handle, from: &Link, to: &Link) -> Result<(), Error> {
    if targets(handle, from)?.contains(&to.index) {
        return Ok(());
    }
    Err(Error::Check(format!(
        "what arrives by interface {} does not go to {}",
        from.name, to.name
    )))
}

/// The indices of the links to which what arrives by `from` is redirected.
///
/// # Errors
/// What the kernel refuses.
pub fn targets(handle: &Handle, from: &Link) -> Result<Vec<u32>, Error> {
    let Some(place) = handle.qdisc(from, Place::Ingress)? else {
        return Ok(Vec::new());
    };
    let filters = handle.filters(from, &place)?;
    Ok(filters
        .iter()
        .filter_map(|filter| filter.redirect)
        .filter(|index| *index != 0)
        .collect())
}

/// Ends the redirections of `from` to the links with these indices, and to links that are gone; with the last filter goes
/// the queueing discipline for arriving packets, if it is of the kind that we make.
///
/// # Errors
/// What the kernel refuses; what is gone already is no error.
pub fn remove(handle: &Handle, from: &Link, to: &[u32]) -> Result<(), Error> {
    let Some(place) = handle.qdisc(from, Place::Ingress)? else {
        return Ok(());
    };
    let leads_there = |filter: &Filter| filter.redirect.is_some_and(|index| to.contains(&index));
    remove_filters(handle, from.index, &place, |filter| {
        leads_there(filter) || is_dead(filter)
    })?;
    Ok(remove_empty_place(handle, from.index)?)
}

/// A filter of ours whose link is gone, so that it drops everything.
fn is_dead(filter: &Filter) -> bool {
    filter.redirect == Some(0) && [FIRST, LAST].contains(&filter.priority)
}

/// Removes the place that we made, unless somebody else uses it by now.
fn remove_empty_place(handle: &Handle, link: u32) -> netlink::Result<()> {
    let Some(place) = handle.qdisc(&link, Place::Ingress)? else {
        return Ok(());
    };
    if place.kind != "ingress" || !handle.filters(&link, &place)?.is_empty() {
        return Ok(());
    }
    let deleted = handle.execute(&Request::delete_qdisc(&link, Place::Ingress)?);
    tolerate_absence(handle, link, deleted)
}

fn remove_filters(
    handle: &Handle,
    link: u32,
    place: &Qdisc,
    doomed: impl Fn(&Filter) -> bool,
) -> netlink::Result<()> {
    for filter in handle.filters(&link, place)?.iter().filter(|f| doomed(f)) {
        let deleted = handle.execute(&Request::delete_filter(&link, filter)?);
        tolerate_absence(handle, link, deleted)?;
    }
    Ok(())
}

/// What another DEL was faster with is no error. The kernel calls a filter "invalid" whose whole place has gone.
fn tolerate_absence(
    handle: &Handle,
    link: u32,
    outcome: netlink::Result<()>,
) -> netlink::Result<()> {
    let Err(error) = outcome else { return Ok(()) };
    if error.is_not_found() {
        return Ok(());
    }
    match handle.qdisc(&link, Place::Ingress) {
        Ok(None) => Ok(()),
        Err(absent) if absent.is_not_found() => Ok(()),
        _ => Err(error),
    }
}
