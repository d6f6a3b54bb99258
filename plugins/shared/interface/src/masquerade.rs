//! `ipMasq`: what leaves the container for another subnet carries the host's address.

use cni_types::result::CniResult;
use netfilter::{ApplyOptions, Backend, Hints, Intent, Kinds, Netfilter, Owner};
use skel::{Transaction, log};

use crate::error::Error;
use crate::world::World;

/// The backend that `ipMasqBackend` names, if it names one.
///
/// # Errors
/// [`Error::MasqueradeBackend`] if there is none of that name.
pub fn backend(name: Option<&str>) -> Result<Option<Backend>, Error> {
    match name {
        None => Ok(None),
        Some("nftables") => Ok(Some(Backend::Nftables)),
        Some("iptables") => Ok(Some(Backend::Iptables)),
        Some(other) => Err(Error::MasqueradeBackend(other.to_owned())),
    }
}

/// What `ipMasq` asks of the packet filter for these addresses.
pub fn intents(result: &CniResult) -> Vec<Intent> {
    let sources = result.ips.iter().map(|ip| ip.address);
    sources
        .map(|source| Intent::Masquerade {
            source,
            except: Vec::new(),
        })
        .collect()
}

/// Masquerades what leaves the container for another subnet.
///
/// # Errors
/// When there is no usable backend, or it refuses; [`Error::MasqueradeOfAll`].
pub fn apply<X: 'static>(
    transaction: &mut Transaction<World<X>>,
    asked: Option<Backend>,
    owner: &Owner,
    result: &CniResult,
) -> Result<(), Error> {
    let intents = intents(result);
    if intents.is_empty() {
        return Ok(());
    }
    if let Some(ip) = result.ips.iter().find(|ip| ip.address.prefix() == 0) {
        return Err(Error::MasqueradeOfAll(ip.address));
    }
    let filter = transaction.filter()?;
    let backend = filter.choose(asked, Kinds::MASQUERADE)?;
    // Before it is put up: the kernel may have done it though its answer is lost.
    let taken_back = owner.clone();
    transaction.on_failure("remove the masquerade", move |world: &mut World<X>| {
        Ok::<_, Error>(
            world
                .filter()?
                .remove(&taken_back, Kinds::MASQUERADE, &Hints::default())?,
        )
    });
    let filter = transaction.filter()?;
    filter.apply(backend, owner, &intents, &ApplyOptions::default())?;
    log_warnings(filter);
    Ok(())
}

/// Puts the masquerade back where it is missing.
///
/// # Errors
/// As [`apply`].
pub fn reapply<X>(
    world: &mut World<X>,
    asked: Option<Backend>,
    owner: &Owner,
    result: &CniResult,
) -> Result<(), Error> {
    let intents = intents(result);
    if intents.is_empty() {
        return Ok(());
    }
    let filter = world.filter()?;
    let backend = filter.choose(asked, Kinds::MASQUERADE)?;
    filter.apply(backend, owner, &intents, &ApplyOptions::default())?;
    log_warnings(filter);
    Ok(())
}

/// Takes the owner's rules of these kinds away: quickly by what the result says, and by searching where it is lost. Returns the
/// filter, for what else is to be done with it.
///
/// # Errors
/// When the packet filter cannot be opened, or refuses.
pub fn remove_rules(
    owner: &Owner,
    kinds: Kinds,
    result: Option<&CniResult>,
) -> netfilter::Result<Netfilter> {
    let leased = result.iter().flat_map(|result| &result.ips);
    let hints = Hints {
        addresses: leased.map(|ip| ip.address.ip()).collect(),
        search: result.is_none(),
        ..Hints::default()
    };
    let mut filter = Netfilter::open()?;
    let removed = filter.remove(owner, kinds, &hints);
    log_warnings(&mut filter);
    removed?;
    Ok(filter)
}

/// CHECK: the masquerade is in place, in whatever backend unless one is asked for.
///
/// # Errors
/// When something of it is missing.
pub fn verify<X>(
    world: &mut World<X>,
    asked: Option<Backend>,
    owner: &Owner,
    result: &CniResult,
) -> Result<(), Error> {
    let intents = intents(result);
    if intents.is_empty() {
        return Ok(());
    }
    Ok(world
        .filter()?
        .verify_any(asked, Kinds::MASQUERADE, owner, &intents)?)
}

/// STATUS: fails if the masquerade of an ADD would.
///
/// # Errors
/// Why it would.
pub fn status(asked: Option<Backend>) -> Result<(), Error> {
    let mut filter = Netfilter::open()?;
    let backend = filter.choose(asked, Kinds::MASQUERADE)?;
    Ok(filter.status(backend, Kinds::MASQUERADE)?)
}

/// Passes on what the packet filter has to say besides an error.
pub fn log_warnings(filter: &mut Netfilter) {
    for warning in filter.take_warnings() {
        log::warn(format_args!("{warning}"));
    }
}
