//! CNI plugin `dummy`: an interface that leads nowhere, to hold addresses.

use interface::addressing::{Announcing, Settings};
use interface::config::DnsConfig;
use interface::single::{Plan, Single, SinglePlugin};
use interface::{Error, World, stacked};
use netlink::{Errno, Handle, Link, NewKind, NewLink};
use serde::Deserialize;
use skel::Request;

/// The plugin.
pub type Dummy = SinglePlugin<Kind>;

/// What is particular about dummy.
pub struct Kind;

/// The keys that this plugin reads.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Config {
    /// Name servers for the container; replaces what IPAM says.
    pub dns: Option<DnsConfig>,
}

impl Single for Kind {
    const NAME: &'static str = "dummy";
    const KIND: &'static str = "dummy";

    type Config = Config;
    type Own = ();
    type Error = Error;

    fn dns(config: &Config) -> Option<&DnsConfig> {
        config.dns.as_ref()
    }

    fn plan(_: &Request<Config>, _: &World) -> Result<Plan<()>, Error> {
        Ok(Plan {
            mtu: None,
            settings: Settings {
                announcing: Announcing::Never,
                ..Settings::default()
            },
            own: (),
        })
    }

    fn create(world: &World, ifname: &str, (): &()) -> netlink::Result<()> {
        let link = NewLink {
            name: ifname.to_owned(),
            kind: NewKind::Dummy,
            mtu: None,
            mac: None,
        };
        world.container.create_link(&link, &world.container)
    }

    fn refusal(ifname: &str, (): &(), source: netlink::Error) -> Error {
        let cure = match source.errno() {
            Some(Errno::EOPNOTSUPP) => "load the module dummy",
            _ => "",
        };
        Error::NotMade {
            kind: Self::KIND,
            ifname: ifname.to_owned(),
            cure: cure.to_owned(),
            source: Box::new(source),
        }
    }

    fn verify(_: &Request<Config>, _: &World, _: &Link) -> Result<(), Error> {
        Ok(())
    }

    fn status(_: &Config) -> Result<(), Error> {
        stacked::require_kind(&Handle::host()?, NewKind::Dummy)
    }
}
