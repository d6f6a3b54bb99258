//! ADD, DEL, CHECK and GC. STATUS is in its own module.

use std::net::IpAddr;
use std::time::Duration;

use cni_types::json::Key;
use cni_types::result::{CniResult, Dns, Ip};
use cni_types::{ContainerId, IfName, ValidAttachments, Value};
use ipam_store::{Allocation, Boot, Options, Owner, RangeSet, Store};
use skel::{Added, DelRequest, NetworkRequest, Plugin, Request, Transaction, log};

use crate::config::{self, Config, Place};
use crate::error::Error;
use crate::{resolv, status};

/// How long a command waits for the lock.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// The plugin.
pub struct HostLocal;

impl Plugin for HostLocal {
    const NAME: &'static str = "host-local";

    /// As it came: a DEL takes from it what it can, even if the whole makes no sense.
    type Config = Value;

    type Error = Error;

    fn keys() -> Vec<Key> {
        config::keys()
    }

    fn add(request: &Request<Value>) -> Result<Added, Error> {
        request.args.require_well_formed()?;
        let config = Config::decode(&request.config, request.version, &request.args)?;
        let dns = read_dns(&config)?;
        let place = Place::of(&request.config, request.network.as_str());
        let owner = owner(&request.container_id, &request.ifname);

        let mut store = Store::open(&place.dir, &options(&place))?;
        for address in store.reclaim()? {
            log::info(format_args!("freed {address}, which belonged to nobody"));
        }
        let allocations = store.allocate(&owner, &config.sets, &config.requested)?;
        log::info(format_args!("leases written"));

        let result = result(&allocations, config, dns);
        // The lock is not kept while the result is written, which may take as long as the reader likes.
        drop(store);
        let mut changes = Transaction::new(place);
        changes.on_failure(
            "give the addresses back",
            move |place| match Store::open_existing(&place.dir, &options(place))? {
                Some(mut store) => store.withdraw(&owner, &allocations),
                None => Ok(()),
            },
        );
        Ok(Added::new(result, changes))
    }

    fn del(request: &DelRequest<Value>) -> Result<(), Error> {
        let place = Place::of(&request.config, request.network.as_str());
        let Some(mut store) = Store::open_existing(&place.dir, &options(&place))? else {
            return Ok(());
        };
        store.release(&owner(&request.container_id, &request.ifname))?;
        Ok(())
    }

    fn check(request: &Request<Value>) -> Result<(), Error> {
        let config = Config::decode(&request.config, request.version, &request.args)?;
        let place = Place::of(&request.config, request.network.as_str());
        let owner = owner(&request.container_id, &request.ifname);
        let mut leases = match Store::open_existing(&place.dir, &options(&place))? {
            Some(mut store) => {
                let mut live = Vec::new();
                for address in store.find(&owner)? {
                    if !store.is_stale(address)? {
                        live.push(address);
                    }
                }
                live
            }
            None => Vec::new(),
        };
        if leases.is_empty() {
            return Err(Error::NoLease {
                owner,
                dir: place.dir,
            });
        }
        let result = addresses_of(request.prev_result.as_ref());
        leases.sort();
        if result.is_empty() || agree(&leases, &result, &config.sets) {
            return Ok(());
        }
        Err(Error::OtherAddresses {
            owner,
            leases,
            result,
            dir: place.dir,
        })
    }

    fn gc(request: &NetworkRequest<Value>) -> Result<(), Error> {
        let ValidAttachments::List(valid) = &request.valid else {
            return Ok(());
        };
        let place = Place::of(&request.config, request.network.as_str());
        let Some(mut store) = Store::open_existing(&place.dir, &options(&place))? else {
            return Ok(());
        };
        let owners: Vec<Owner> = valid
            .iter()
            .map(|a| Owner::new(&a.container_id, &a.ifname))
            .collect();
        for address in store.collect(&owners)? {
            log::info(format_args!("freed {address}, whose attachment is gone"));
        }
        Ok(())
    }

    fn status(request: &NetworkRequest<Value>) -> Result<(), Error> {
        let config = Config::decode(&request.config, request.version, &Default::default())?;
        read_dns(&config)?;
        let place = Place::of(&request.config, request.network.as_str());
        status::check(&place.dir, &options(&place), &config.sets)
    }
}

/// How the store of a network is opened.
fn options(place: &Place) -> Options {
    Options {
        wait: LOCK_WAIT,
        reclaim: place.reclaim.then(Boot::current).flatten(),
        // Leases that outlive a boot must outlive a power failure too.
        sync: !place.reclaim,
    }
}

fn owner(container_id: &ContainerId, ifname: &IfName) -> Owner {
    Owner::new(container_id.as_str(), ifname.as_str())
}

fn read_dns(config: &Config) -> Result<Dns, Error> {
    match &config.resolv_conf {
        None => Ok(Dns::default()),
        Some(path) => resolv::read(path).map_err(|source| Error::ResolvConf {
            path: path.clone(),
            source,
        }),
    }
}

fn result(allocations: &[Allocation], config: Config, dns: Dns) -> CniResult {
    let ip = |allocation: &Allocation| Ip {
        address: allocation.address,
        gateway: Some(allocation.gateway),
        interface: None,
    };
    CniResult {
        interfaces: Vec::new(),
        ips: allocations.iter().map(ip).collect(),
        routes: config.routes,
        dns,
    }
}

fn addresses_of(result: Option<&CniResult>) -> Vec<IpAddr> {
    let ips = result.map(|r| r.ips.as_slice()).unwrap_or_default();
    let mut addresses: Vec<IpAddr> = ips.iter().map(|ip| ip.address.ip()).collect();
    addresses.sort();
    addresses
}

/// Whether the result has every address leased, and every address of the result that is ours to give is leased.
fn agree(leases: &[IpAddr], result: &[IpAddr], sets: &[RangeSet]) -> bool {
    let ours = |address: &&IpAddr| sets.iter().any(|set| set.range_of(**address).is_some());
    leases.iter().all(|address| result.contains(address))
        && result
            .iter()
            .filter(ours)
            .all(|address| leases.contains(address))
}
