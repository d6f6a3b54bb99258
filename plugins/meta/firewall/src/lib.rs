//! CNI plugin `firewall`: lets the traffic of a container through the host's packet filter, and keeps
//! containers of other bridges away from it where the configuration says so.

mod config;
mod error;

use cni_types::SpecVersion;
use cni_types::conf::ValidAttachments;
use cni_types::result::CniResult;
use netfilter::{ApplyOptions, Backend, Hints, Intent, Kinds, Netfilter, Owner};
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request, Transaction};

pub use config::Config;
pub use error::Error;

/// What this plugin is responsible for.
const KINDS: Kinds = Kinds::ADMIT.with(Kinds::CONFINE);

/// The plugin.
pub struct Firewall;

impl Plugin for Firewall {
    const NAME: &'static str = "firewall";
    // The reference set starts at 0.4.0; 0.3.x has prevResult too, and lists with it exist.
    const VERSIONS: &'static [SpecVersion] = &[
        SpecVersion::V0_3_0,
        SpecVersion::V0_3_1,
        SpecVersion::V0_4_0,
        SpecVersion::V1_0_0,
        SpecVersion::V1_1_0,
    ];

    type Config = Config;
    type Error = Error;

    fn trace(log: fn(std::fmt::Arguments<'_>)) {
        netfilter::on_message(log);
    }

    fn add(request: &Request<Config>) -> Result<Added, Error> {
        let result = request.prev_result.clone().ok_or(Error::NoPrevResult)?;
        let wanted = Wanted::new(&request.config, &result)?;
        let owner = owner(request);
        let mut transaction = Transaction::new(open()?);
        let backend = transaction.choose(request.config.backend(), Kinds::ADMIT)?;
        for (backend, intents) in wanted.by_backend(backend) {
            // Before they are made: the kernel may have made them though its answer is lost.
            let kinds = Kinds::of(&intents);
            let hints = hints(&request.config, &result);
            let taken_back = owner.clone();
            transaction.on_failure(
                format!("remove the {kinds} rules"),
                move |filter: &mut Netfilter| filter.remove(&taken_back, kinds, &hints),
            );
            transaction.apply(backend, &owner, &intents, &ApplyOptions::default())?;
            skel::log::info(format_args!("{kinds} rules made by {backend}"));
        }
        log_warnings(&mut transaction);
        Ok(Added::new(result, transaction))
    }

    fn del(request: &DelRequest<Config>) -> Result<(), Error> {
        let owner = owner(request);
        let result = request.prev_result.clone().unwrap_or_default();
        let hints = Hints {
            search: request.prev_result.is_none(),
            ..hints(&request.config, &result)
        };
        let mut filter = open()?;
        filter.remove(&owner, KINDS, &hints)?;
        skel::log::info(format_args!("what admitted {owner} is removed"));
        log_warnings(&mut filter);
        Ok(())
    }

    fn check(request: &Request<Config>) -> Result<(), Error> {
        let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
        let wanted = Wanted::new(&request.config, result)?;
        let owner = owner(request);
        let mut filter = open()?;
        let asked = request.config.backend();
        let chosen = filter.choose(asked, Kinds::ADMIT)?;
        let Err(error) = wanted.verify(&mut filter, chosen, &owner) else {
            skel::log::info(format_args!("{chosen} admits {owner}"));
            return Ok(());
        };
        skel::log::info(format_args!("{chosen} does not admit {owner}: {error}"));
        // What fitted the host when the container came need not be what fits it today. But where a FORWARD
        // chain drops the rest by now, rules elsewhere do not help the container any more.
        let elsewhere = asked.is_none() && !filter.forward_is_closed();
        let others = Backend::ALL
            .into_iter()
            .filter(|other| elsewhere && *other != chosen);
        for other in others {
            if wanted.verify(&mut filter, other, &owner).is_ok() {
                return Ok(());
            }
        }
        Err(error.into())
    }

    fn reapply(request: &Request<Config>) -> Result<(), Error> {
        let result = request.prev_result.as_ref().ok_or(Error::NoPrevResult)?;
        let wanted = Wanted::new(&request.config, result)?;
        let mut filter = open()?;
        let backend = filter.choose(request.config.backend(), Kinds::ADMIT)?;
        for (backend, intents) in wanted.by_backend(backend) {
            filter.apply(backend, &owner(request), &intents, &ApplyOptions::default())?;
        }
        log_warnings(&mut filter);
        Ok(())
    }

    fn gc(request: &NetworkRequest<Config>) -> Result<(), Error> {
        let ValidAttachments::List(valid) = &request.valid else {
            return Ok(());
        };
        let owners: Vec<Owner> = valid
            .iter()
            .map(|a| Owner::new(request.network.as_str(), &a.container_id, &a.ifname))
            .collect();
        let mut filter = open()?;
        filter.collect(request.network.as_str(), &owners, KINDS)?;
        let (network, kept) = (&request.network, owners.len());
        skel::log::info(format_args!(
            "the rest of {network} is collected, {kept} kept"
        ));
        Ok(())
    }

    fn status(request: &NetworkRequest<Config>) -> Result<(), Error> {
        let policy = request.config.policy()?;
        let mut filter = open()?;
        let backend = filter.choose(request.config.backend(), Kinds::ADMIT)?;
        let not_ready = |backend| move |source| Error::NotReady { backend, source };
        if backend == Backend::Nftables && filter.forward_is_closed() {
            skel::log::warn(format_args!(
                "firewall: the policy of the iptables FORWARD chain is DROP, which rules of nftables cannot lift"
            ));
        }
        for chain in filter.obstacles() {
            skel::log::warn(format_args!(
                "firewall: chain {chain} drops what is forwarded unless its own rules accept it, which rules elsewhere \
                 cannot lift"
            ));
        }
        filter
            .status(backend, Kinds::ADMIT)
            .map_err(not_ready(backend))?;
        skel::log::info(format_args!("{backend} can admit"));
        if backend == Backend::Firewalld {
            filter
                .require_zone(&request.config.zone())
                .map_err(not_ready(backend))?;
        }
        if policy.is_some() {
            let backend = confining(backend);
            filter
                .status(backend, Kinds::CONFINE)
                .map_err(not_ready(backend))?;
        }
        Ok(())
    }
}

/// The intents of one attachment.
struct Wanted {
    admit: Vec<Intent>,
    confine: Vec<Intent>,
}

impl Wanted {
    fn new(config: &Config, result: &CniResult) -> Result<Self, Error> {
        let admit = result
            .ips
            .iter()
            .map(|ip| Intent::Admit {
                address: ip.address.ip(),
                admin_chain: config.admin_chain(),
                zone: Some(config.zone()),
            })
            .collect();
        let confine = match config.policy()? {
            None => Vec::new(),
            Some(policy) => {
                let mut interfaces = host_interfaces(result);
                vec![Intent::Confine {
                    bridge: interfaces.next().ok_or(Error::NoBridge)?,
                    port: interfaces.next(),
                    policy,
                }]
            }
        };
        Ok(Self { admit, confine })
    }

    /// The intents by who carries them out: all at once where that is one.
    fn by_backend(&self, backend: Backend) -> Vec<(Backend, Vec<Intent>)> {
        let (admit, confine) = (self.admit.clone(), self.confine.clone());
        let parts = match confining(backend) {
            same if same == backend => vec![(backend, [admit, confine].concat())],
            other => vec![(backend, admit), (other, confine)],
        };
        parts
            .into_iter()
            .filter(|(_, intents)| !intents.is_empty())
            .collect()
    }
}

impl Wanted {
    fn verify(
        &self,
        filter: &mut Netfilter,
        backend: Backend,
        owner: &Owner,
    ) -> netfilter::Result<()> {
        self.by_backend(backend)
            .iter()
            .try_for_each(|(backend, intents)| filter.verify(*backend, owner, intents))
    }
}

/// firewalld has no rule between two bridges; our own table stands beside it.
fn confining(backend: Backend) -> Backend {
    match backend {
        Backend::Firewalld => Backend::Nftables,
        other => other,
    }
}

/// Names of the interfaces that are not in a container, in order: the bridge comes first.
fn host_interfaces(result: &CniResult) -> impl Iterator<Item = String> + '_ {
    let on_host = result
        .interfaces
        .iter()
        .filter(|i| i.sandbox.is_empty() && !i.name.is_empty());
    on_host.map(|i| i.name.clone())
}

/// The packet filter, with every backend this plugin offers.
fn open() -> Result<Netfilter, Error> {
    Ok(Netfilter::open()?.with_firewalld())
}

/// What helps to find objects that do not name their owner.
fn hints(config: &Config, result: &CniResult) -> Hints {
    Hints {
        addresses: result.ips.iter().map(|ip| ip.address.ip()).collect(),
        bridge: host_interfaces(result).next(),
        zone: Some(config.zone()),
        ..Hints::default()
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
        skel::log::warn(format_args!("firewall: {warning}"));
    }
}
