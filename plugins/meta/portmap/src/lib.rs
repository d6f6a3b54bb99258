//! CNI plugin `portmap`: publishes ports of the container on the host.

mod config;
mod error;
mod hairpin;
mod listeners;
mod liveness;
mod localhost;

use std::net::IpAddr;
use std::time::Duration;

use cni_types::conf::ValidAttachments;
use cni_types::result::CniResult;
use ipnetwork::IpNetwork;
use netfilter::{ApplyOptions, Flows, Hints, Intent, Kinds, Netfilter, Owner, PublishedPort};
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request, Transaction};

pub use config::Config;
pub use error::Error;

/// The longest wait for the packet filter.
const PATIENCE: Duration = Duration::from_secs(20);

/// The plugin.
pub struct Portmap;

impl Plugin for Portmap {
    const NAME: &'static str = "portmap";

    type Config = Config;
    type Error = Error;

    fn trace(log: fn(std::fmt::Arguments<'_>)) {
        netlink::on_message(log);
        netfilter::on_message(log);
    }

    fn add(request: &Request<Config>) -> Result<Added, Error> {
        let result = request.prev_result.clone().ok_or(Error::NoPrevResult)?;
        let requested = request.config.backend()?;
        let intents = request
            .config
            .intents(&addresses(&result, request.ifname.as_str()))?;
        // Most calls have nothing to publish; they look at nothing else.
        if intents.is_empty() {
            return Ok(Added::unchanged(result));
        }
        let owner = owner(request);
        let mut transaction = Transaction::new(Netfilter::open()?);
        let backend = transaction.choose(requested, Kinds::PUBLISH)?;
        // Before they are published: the kernel may have done it though its answer is lost.
        let publisher = owner.clone();
        transaction.on_failure(
            "withdraw the published ports",
            move |filter: &mut Netfilter| {
                filter.remove(&publisher, Kinds::PUBLISH, &Hints::default())
            },
        );
        listeners::warn(&intents);
        transaction.apply(backend, &owner, &intents, &apply_options())?;
        skel::log::info(format_args!(
            "{} ports published by {backend}",
            intents.len()
        ));
        let containers: Vec<_> = intents.iter().filter_map(container).collect();
        forget_udp(
            &mut transaction,
            &request.config.good_ports(),
            Flows::NotTo(&containers),
        );
        localhost::open(&mut transaction, &localhost::targets(&intents))?;
        hairpin::allow(&mut transaction, &owner, &result)?;
        log_warnings(&mut transaction);
        Ok(Added::new(result, transaction))
    }

    fn del(request: &DelRequest<Config>) -> Result<(), Error> {
        let owner = owner(request);
        let result = request.prev_result.clone().unwrap_or_default();
        let hints = Hints {
            addresses: result.ips.iter().map(|ip| ip.address.ip()).collect(),
            ports: request.config.good_ports(),
            ..Hints::default()
        };
        let mut filter = Netfilter::open()?;
        filter.remove(&owner, Kinds::PUBLISH, &hints)?;
        skel::log::info(format_args!("the ports of {owner} are removed"));
        let flows = match hints.addresses.as_slice() {
            [] => Flows::All,
            containers => Flows::To(containers),
        };
        forget_udp(&mut filter, &hints.ports, flows);
        log_warnings(&mut filter);
        Ok(())
    }

    fn check(request: &Request<Config>) -> Result<(), Error> {
        let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
        let requested = request.config.backend()?;
        let intents = request
            .config
            .intents(&addresses(result, request.ifname.as_str()))?;
        if intents.is_empty() {
            return Ok(());
        }
        let owner = owner(request);
        Netfilter::open()?.verify_any(requested, Kinds::PUBLISH, &owner, &intents)?;
        skel::log::info(format_args!(
            "the ports of {owner} are published as they were"
        ));
        localhost::check(&localhost::targets(&intents))?;
        hairpin::check(&owner, result)
    }

    fn reapply(request: &Request<Config>) -> Result<(), Error> {
        let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
        let requested = request.config.backend()?;
        let intents = request
            .config
            .intents(&addresses(result, request.ifname.as_str()))?;
        if intents.is_empty() {
            return Ok(());
        }
        let mut filter = Netfilter::open()?;
        let backend = filter.choose(requested, Kinds::PUBLISH)?;
        let owner = owner(request);
        filter.apply(backend, &owner, &intents, &apply_options())?;
        localhost::open(&mut filter, &localhost::targets(&intents))?;
        hairpin::mend(&owner, result)?;
        log_warnings(&mut filter);
        Ok(())
    }

    fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
        let ValidAttachments::List(list) = &request.valid else {
            return Ok(());
        };
        let valid: Vec<Owner> = list
            .iter()
            .map(|a| Owner::new(request.network.as_str(), &a.container_id, &a.ifname))
            .collect();
        let mut filter = Netfilter::open()?;
        filter.collect(request.network.as_str(), &valid, Kinds::PUBLISH)?;
        let (network, kept) = (&request.network, valid.len());
        skel::log::info(format_args!(
            "the rest of {network} is collected, {kept} kept"
        ));
        log_warnings(&mut filter);
        Ok(())
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        let requested = request.config.backend()?;
        // Reports what is wrong with the options that an ADD would use.
        request.config.intents(&[])?;
        let mut filter = Netfilter::open()?;
        let backend = filter.choose(requested, Kinds::PUBLISH)?;
        filter
            .status(backend, Kinds::PUBLISH)
            .map_err(|source| Error::NotReady { backend, source })
    }
}

/// The container's first address of each family: of its own interface, or of no interface that is named.
fn addresses(result: &CniResult, ifname: &str) -> Vec<IpNetwork> {
    let of_container = result.ips.iter().filter(|ip| {
        result
            .interface_of(ip)
            .is_none_or(|i| i.name == ifname && !i.sandbox.is_empty())
    });
    let all: Vec<IpNetwork> = of_container.map(|ip| ip.address).collect();
    let first = |ipv6: bool| all.iter().copied().find(|ip| ip.is_ipv6() == ipv6);
    [first(false), first(true)].into_iter().flatten().collect()
}

fn container(intent: &Intent) -> Option<IpAddr> {
    match intent {
        Intent::Publish { to, .. } => Some(to.ip()),
        _ => None,
    }
}

/// Makes clients that keep sending UDP start over. A failure costs them a timeout, so it is only logged.
fn forget_udp(filter: &mut Netfilter, ports: &[PublishedPort], flows: Flows<'_>) {
    match filter.forget_udp(ports, flows) {
        Ok(0) => {}
        Ok(count) => skel::log::info(format_args!("portmap: {count} UDP flows forgotten")),
        Err(error) => skel::log::warn(format_args!("portmap: {error}")),
    }
}

fn apply_options() -> ApplyOptions<'static> {
    ApplyOptions {
        alive: &|holder, _| liveness::lives(holder),
        timeout: PATIENCE,
    }
}

fn owner<N>(request: &Request<Config, N>) -> Owner {
    Owner::new(
        request.network.as_str(),
        request.container_id.as_str(),
        request.ifname.as_str(),
    )
}

fn log_warnings(filter: &mut Netfilter) {
    for warning in filter.take_warnings() {
        skel::log::warn(format_args!("portmap: {warning}"));
    }
}
