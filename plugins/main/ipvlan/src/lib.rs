//! CNI plugin `ipvlan`: an interface that shares the MAC address of one of the host's.

mod config;
mod error;

use cni_types::result::CniResult;
use interface::addressing::{Announcing, Dad, Settings};
use interface::config::DnsConfig;
use interface::single::{Plan, Single, SinglePlugin};
use interface::stacked::{self, Stacked};
use interface::{World, master, verify};
use netlink::{IpvlanMode, KindData, Link, NewKind};
use skel::{Request, log};

pub use config::Config;
pub use error::Error;

/// The plugin.
pub type Ipvlan = SinglePlugin<Kind>;

/// What is particular about ipvlan.
pub struct Kind;

impl Single for Kind {
    const NAME: &'static str = "ipvlan";
    const KIND: &'static str = "ipvlan";

    type Config = Config;
    type Own = Stacked;
    type Error = Error;

    fn dns(config: &Config) -> Option<&DnsConfig> {
        config.dns.as_ref()
    }

    /// Without IPAM, the addresses of the plugin before this one in a chain.
    fn given(request: &Request<Config>) -> Option<CniResult> {
        let previous = request.prev_result.as_ref()?;
        (request.ipam.is_none() && !previous.ips.is_empty()).then(|| previous.clone())
    }

    fn plan(request: &Request<Config>, world: &World) -> Result<Plan<Stacked>, Error> {
        let config = &request.config;
        let mode = config.mode()?;
        let mtu = interface::config::mtu(config.mtu)?;
        let place = master::place(world, config.link_in_container);
        let configured = master_name(request)?;
        let master = stacked::whole_master(place, configured)?;
        if let Some(mtu) = mtu.filter(|mtu| *mtu > master.mtu) {
            log::warn(format_args!(
                "mtu {mtu} is more than the {} of {}; larger packets are lost there",
                master.mtu, master.name
            ));
        }
        Ok(Plan {
            mtu: Some(mtu.unwrap_or(master.mtu)),
            settings: settings(config, mode),
            own: Stacked {
                kind: NewKind::Ipvlan {
                    master: master.index,
                    mode,
                },
                master: master.name,
                in_container: config.link_in_container,
                mtu,
                mac: None,
            },
        })
    }

    fn create(world: &World, ifname: &str, own: &Stacked) -> netlink::Result<()> {
        own.create(world, ifname)
    }

    fn refusal(ifname: &str, own: &Stacked, error: netlink::Error) -> Error {
        own.refusal(ifname, error).into()
    }

    fn verify(request: &Request<Config>, world: &World, link: &Link) -> Result<(), Error> {
        let config = &request.config;
        let place = master::place(world, config.link_in_container);
        master::verify(place, &config.master, link)?;
        check_mode(config, link)?;
        Ok(verify::has_mtu(link, interface::config::mtu(config.mtu)?)?)
    }

    fn status(config: &Config) -> Result<(), Error> {
        let kind = NewKind::Ipvlan {
            master: 0,
            mode: config.mode()?,
        };
        Ok(stacked::status(kind, config.link_in_container, |host| {
            // In a chain without a name, the plugin before this one names the master.
            match stacked::whole_master(host, &config.master) {
                Err(interface::Error::NoDefaultRoute) if !config.has_ipam() => Ok(()),
                other => other.map(drop),
            }
        })?)
    }
}

/// At the network layer there are no neighbours.
fn settings(config: &Config, mode: IpvlanMode) -> Settings {
    let (dad, announcing) = match mode {
        IpvlanMode::L2 => (config.dad.unwrap_or(Dad::Optimistic), Announcing::OnUp),
        IpvlanMode::L3 | IpvlanMode::L3s => (Dad::Off, Announcing::Never),
    };
    Settings {
        dad,
        announcing,
        accept_ra: config.accept_ra,
        ..Settings::default()
    }
}

/// The name of the master: as configured, else that of the only interface of the plugin before this one in a chain;
/// empty for that of the default route.
fn master_name(request: &Request<Config>) -> Result<&str, Error> {
    let configured = request.config.master.as_str();
    let Some(previous) = request
        .prev_result
        .as_ref()
        .filter(|_| configured.is_empty())
    else {
        return Ok(configured);
    };
    match previous.interfaces.as_slice() {
        [only] if !only.name.is_empty() => Ok(only.name.as_str()),
        _ => Err(Error::ChainedMaster),
    }
}

fn check_mode(config: &Config, link: &Link) -> Result<(), Error> {
    let KindData::Ipvlan { mode } = link.data else {
        return Ok(());
    };
    let wanted = config.mode()?;
    if mode == Some(wanted) {
        return Ok(());
    }
    Err(Error::Mode {
        link: link.name.clone(),
        is: mode.map_or_else(|| "another".to_owned(), |mode| mode.to_string()),
        wanted,
    })
}
