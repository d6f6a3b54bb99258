//! ADD.

use cni_types::result::Interface;
use interface::{World, owner};
use netfilter::Owner;
use netlink::tc::Place;
use netlink::{Link, Request as Change};
use skel::{Added, Request, Transaction, log};

use crate::config::Config;
use crate::error::Error;
use crate::limit::Limit;
use crate::{host_end, ifb};

/// The length of an Ethernet header, in bytes.
const ETHERNET: u32 = 14;

pub fn add(request: &Request<Config>) -> Result<Added, Error> {
    let limits = request.config.limits()?;
    let mut result = request.prev_result.clone().ok_or(Error::NoPrevResult)?;
    if limits.is_empty() {
        return Ok(Added::unchanged(result));
    }
    let mut transaction = Transaction::new(World::open(&request.netns)?);
    let link = host_end::find(&transaction, request.ifname.as_str(), &result)?;
    for limit in [limits.ingress, limits.egress].into_iter().flatten() {
        warn_of_small_burst(limit, &link);
    }
    if let Some(limit) = limits.ingress {
        limit_rate(&mut transaction, &link, limit)?;
    }
    if let Some(limit) = limits.egress {
        let block = redirect(&mut transaction, &owner(request), &link, limit)?;
        // It is there already if the list is run once more on its own result.
        if !result.interfaces.iter().any(|i| i.name == block.name) {
            result.interfaces.push(Interface {
                name: block.name,
                mac: block.mac.map(|mac| mac.to_string()).unwrap_or_default(),
                ..Interface::default()
            });
        }
    }
    Ok(Added::new(result, transaction))
}

fn warn_of_small_burst(limit: Limit, link: &Link) {
    let frame = link.mtu.saturating_add(ETHERNET);
    if limit.burst() < frame {
        log::warn(format_args!(
            "bandwidth: a burst of {} bytes is less than a full packet on {} ({frame} bytes), which can never pass",
            limit.burst(),
            link.name
        ));
    }
}

/// Limits what is sent out of a link.
fn limit_rate(
    transaction: &mut Transaction<World>,
    link: &Link,
    limit: Limit,
) -> Result<(), Error> {
    let there = transaction.host.qdisc(link, Place::Root)?;
    if let Some(qdisc) = there.filter(|qdisc| qdisc.handle.is_some()) {
        // An earlier ADD of this attachment got this far; nobody else sets the very same values.
        if qdisc.tbf.is_some_and(|tbf| limit.is_kept_by(&tbf)) {
            log::info(format_args!("{} is limited already", link.name));
            return Ok(());
        }
        return Err(Error::Occupied {
            link: link.name.clone(),
            kind: qdisc.kind,
        });
    }
    let index = link.index;
    transaction.on_failure(
        format!("lift the limit of {}", link.name),
        move |world: &mut World| {
            tolerate_absence(
                world
                    .host
                    .execute(&Change::delete_qdisc(&index, Place::Root)?),
            )
        },
    );
    Ok(transaction
        .host
        .execute(&Change::add_tbf(link, &limit.tbf())?)?)
}

/// Sends what arrives by a link through a block of its own, which limits it. The block is ready before the first packet.
fn redirect(
    transaction: &mut Transaction<World>,
    owner: &Owner,
    link: &Link,
    limit: Limit,
) -> Result<Link, Error> {
    let block = ifb::create(transaction, owner, link.mtu)?;
    let shape = Change::add_tbf(&block, &limit.tbf())?;
    transaction.host.execute(&shape)?;
    interface::redirect::apply(transaction, |world| &world.host, link, block.index)?;
    Ok(block)
}

fn tolerate_absence(outcome: netlink::Result<()>) -> netlink::Result<()> {
    match outcome {
        Err(error) if error.is_not_found() => Ok(()),
        other => other,
    }
}
