//! CNI plugin `vlan`: an interface in a VLAN of one of the host's.

mod config;
mod error;

use interface::addressing::{Dad, Settings};
use interface::config::DnsConfig;
use interface::single::{Plan, Single, SinglePlugin};
use interface::stacked::{self, Stacked};
use interface::{World, master, verify};
use netlink::{Handle, KindData, Link, NewKind};
use skel::Request;

pub use config::Config;
pub use error::Error;

/// The plugin.
pub type Vlan = SinglePlugin<Kind>;

/// What is particular about vlan.
pub struct Kind;

impl Single for Kind {
    const NAME: &'static str = "vlan";
    const KIND: &'static str = "vlan";

    type Config = Config;
    type Own = Stacked;
    type Error = Error;

    fn dns(config: &Config) -> Option<&DnsConfig> {
        config.dns.as_ref()
    }

    fn plan(request: &Request<Config>, world: &World) -> Result<Plan<Stacked>, Error> {
        let config = &request.config;
        let id = config.vlan_id()?;
        let name = config.master()?;
        let place = master::place(world, config.link_in_container);
        let master = fit_master(place, name)?;
        let mtu = master::mtu(config.mtu, &master)?;
        Ok(Plan {
            mtu: Some(mtu.unwrap_or(master.mtu)),
            settings: Settings {
                dad: config.dad.unwrap_or(Dad::Optimistic),
                accept_ra: config.accept_ra,
                ..Settings::default()
            },
            own: Stacked {
                kind: NewKind::Vlan {
                    master: master.index,
                    id,
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
        master::verify(place, config.master()?, link)?;
        check_id(config, link)?;
        Ok(verify::has_mtu(link, interface::config::mtu(config.mtu)?)?)
    }

    fn status(config: &Config) -> Result<(), Error> {
        let (id, name) = (config.vlan_id()?, config.master()?);
        let kind = NewKind::Vlan { master: 0, id };
        Ok(stacked::status(kind, config.link_in_container, |host| {
            let master = fit_master(host, name)?;
            master::mtu(config.mtu, &master).map(drop)
        })?)
    }
}

/// The kernel sets no VLAN interface up whose master is down.
fn fit_master(place: &Handle, name: &str) -> Result<Link, interface::Error> {
    let master = master::find(place, name)?;
    master::require_ethernet(&master)?;
    master::require_up(&master)?;
    Ok(master)
}

fn check_id(config: &Config, link: &Link) -> Result<(), Error> {
    let KindData::Vlan { id } = link.data else {
        return Ok(());
    };
    let wanted = config.vlan_id()?;
    if id == wanted {
        return Ok(());
    }
    Err(Error::OtherVlan {
        link: link.name.clone(),
        is: id,
        wanted,
    })
}
