//! `ipMasq`.

use cni_types::result::CniResult;
use netfilter::{ApplyOptions, Hints, Intent, Kinds, Netfilter, Owner};
use skel::Transaction;

use crate::config::Config;
use crate::error::Error;
use crate::world::World;

/// What `ipMasq` asks of the packet filter for these addresses.
pub fn intents(config: &Config, result: &CniResult) -> Vec<Intent> {
    if !config.ip_masq {
        return Vec::new();
    }
    let sources = result.ips.iter().map(|ip| ip.address);
    sources
        .map(|source| Intent::Masquerade {
            source,
            except: Vec::new(),
        })
        .collect()
}

/// Masquerades what leaves the container for another subnet.
pub fn apply(
    transaction: &mut Transaction<World>,
    config: &Config,
    owner: &Owner,
    result: &CniResult,
) -> Result<(), Error> {
    let intents = intents(config, result);
    if intents.is_empty() {
        return Ok(());
    }
    let filter = transaction.filter()?;
    let backend = filter.choose(config.masquerade_backend()?, Kinds::MASQUERADE)?;
    // Before it is put up: the kernel may have done it though its answer is lost.
    let taken_back = owner.clone();
    transaction.on_failure("remove the masquerade", move |world: &mut World| {
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

/// Fails if the masquerade of an ADD would.
pub fn status(config: &Config, has_ipam: bool) -> Result<(), Error> {
    if !config.ip_masq || !has_ipam {
        return Ok(());
    }
    let mut filter = Netfilter::open()?;
    let backend = filter.choose(config.masquerade_backend()?, Kinds::MASQUERADE)?;
    Ok(filter.status(backend, Kinds::MASQUERADE)?)
}

/// Passes on what the packet filter has to say besides an error.
pub fn log_warnings(filter: &mut Netfilter) {
    for warning in filter.take_warnings() {
        skel::log::warn(format_args!("bridge: {warning}"));
    }
}
