//! CNI plugin `macvlan`: an interface with a MAC address of its own on the network of one of the host's.

mod config;
mod error;

use interface::addressing::{Dad, Settings};
use interface::config::DnsConfig;
use interface::single::{Plan, Single, SinglePlugin};
use interface::stacked::{self, Stacked};
use interface::{World, master, verify};
use netlink::{KindData, Link, LinkChange, NewKind};
use skel::Request;

pub use config::Config;
pub use error::Error;

/// The plugin.
pub type Macvlan = SinglePlugin<Kind>;

/// What is particular about macvlan.
pub struct Kind;

impl Single for Kind {
    const NAME: &'static str = "macvlan";
    const KIND: &'static str = "macvlan";

    type Config = Config;
    type Own = Stacked;
    type Error = Error;

    fn dns(config: &Config) -> Option<&DnsConfig> {
        config.dns.as_ref()
    }

    fn plan(request: &Request<Config>, world: &World) -> Result<Plan<Stacked>, Error> {
        let config = &request.config;
        let mode = config.mode()?;
        let mac = config.mac(&request.args)?;
        let place = master::place(world, config.link_in_container);
        let master = stacked::whole_master(place, &config.master)?;
        let mtu = master::mtu(config.mtu, &master)?;
        Ok(Plan {
            mtu: Some(mtu.unwrap_or(master.mtu)),
            settings: Settings {
                dad: config.dad.unwrap_or(Dad::Optimistic),
                accept_ra: config.accept_ra,
                ..Settings::default()
            },
            own: Stacked {
                kind: NewKind::Macvlan {
                    master: master.index,
                    mode,
                    bc_queue_len: config.bc_queue_len(),
                },
                master: master.name,
                in_container: config.link_in_container,
                mtu,
                mac,
            },
        })
    }

    fn create(world: &World, ifname: &str, own: &Stacked) -> netlink::Result<()> {
        own.create(world, ifname)?;
        let Some(mac) = own.mac else {
            return Ok(());
        };
        // In mode passthru it is born with its master's, and the master takes over what is set now.
        let link = world.container.link(ifname)?;
        if link.mac == Some(mac) {
            return Ok(());
        }
        world
            .container
            .change_link(&link, &LinkChange::new().mac(mac))
    }

    fn refusal(ifname: &str, own: &Stacked, error: netlink::Error) -> Error {
        own.refusal(ifname, error).into()
    }

    fn verify(request: &Request<Config>, world: &World, link: &Link) -> Result<(), Error> {
        let config = &request.config;
        let place = master::place(world, config.link_in_container);
        master::verify(place, &config.master, link)?;
        check_data(config, link)?;
        Ok(verify::has_mtu(link, interface::config::mtu(config.mtu)?)?)
    }

    fn status(config: &Config) -> Result<(), Error> {
        let kind = NewKind::Macvlan {
            master: 0,
            mode: config.mode()?,
            bc_queue_len: None,
        };
        Ok(stacked::status(kind, config.link_in_container, |host| {
            let master = stacked::whole_master(host, &config.master)?;
            master::mtu(config.mtu, &master).map(drop)
        })?)
    }
}

fn check_data(config: &Config, link: &Link) -> Result<(), Error> {
    let KindData::Macvlan { mode, bc_queue_len } = link.data else {
        return Ok(());
    };
    let wanted = config.mode()?;
    if mode != Some(wanted) {
        return Err(Error::Mode {
            link: link.name.clone(),
            is: mode.map_or_else(|| "another".to_owned(), |mode| mode.to_string()),
            wanted,
        });
    }
    match (config.bc_queue_len(), bc_queue_len) {
        (Some(wanted), Some(is)) if wanted != is => Err(Error::QueueLength {
            link: link.name.clone(),
            is,
            wanted,
        }),
        _ => Ok(()),
    }
}
