//! A link in the container that sits on another link, its master: macvlan, ipvlan, vlan.

use netlink::{Errno, Handle, Link, MacAddr, NewKind, NewLink};

use crate::error::Error;
use crate::master;
use crate::world::World;

/// A link to be made on a master, with all that was looked up for it.
#[derive(Debug, Clone)]
pub struct Stacked {
    /// The master's name.
    pub master: String,
    /// Whether the master is in the container.
    pub in_container: bool,
    /// What the new link is.
    pub kind: NewKind,
    /// Its MTU in bytes; none leaves it to the kernel, which takes the master's.
    pub mtu: Option<u32>,
    /// Its MAC address, if one is asked for.
    pub mac: Option<MacAddr>,
}

impl Stacked {
    /// Makes the link in the container under its name.
    ///
    /// # Errors
    /// As [`Handle::create_link`].
    pub fn create(&self, world: &World, ifname: &str) -> netlink::Result<()> {
        let link = NewLink {
            name: ifname.to_owned(),
            kind: self.kind,
            mtu: self.mtu,
            mac: self.mac,
        };
        master::place(world, self.in_container).create_link(&link, &world.container)
    }

    /// What the kernel's refusal to make it means.
    #[must_use]
    pub fn refusal(&self, ifname: &str, source: netlink::Error) -> Error {
        Error::NotMade {
            kind: self.kind.name(),
            ifname: ifname.to_owned(),
            cure: self.cure(&source),
            source: Box::new(source),
        }
    }

    fn cure(&self, refusal: &netlink::Error) -> String {
        let (master, kind) = (&self.master, self.kind.name());
        match (refusal.errno(), self.kind) {
            (Some(Errno::EEXIST), NewKind::Vlan { id, .. }) => format!(
                "VLAN {id} of {master} is taken by another interface, perhaps in another container, and there can be only one"
            ),
            (Some(Errno::EBUSY), _) => format!(
                "{master} serves something that rules {kind} out, such as a bridge, a bond, macvlan or ipvlan"
            ),
            (Some(Errno::EINVAL), NewKind::Macvlan { .. }) => format!(
                "a macvlan in mode passthru must be alone on its master, so look for others on {master}"
            ),
            (Some(Errno::EADDRINUSE), NewKind::Ipvlan { .. }) => {
                format!(
                    "another interface on {master}, perhaps in another container, has that address"
                )
            }
            (Some(Errno::EADDRINUSE), _) => format!(
                "{master}, or another interface on it, perhaps in another container, has that MAC address"
            ),
            (Some(Errno::EOPNOTSUPP), _) => {
                format!(
                    "load the module {kind} if it is missing; else {master} cannot carry {kind}"
                )
            }
            _ => String::new(),
        }
    }
}

/// STATUS: the kernel has links of that kind, and the master is there and fit. A master in a container cannot be looked
/// at beforehand.
///
/// # Errors
/// [`Error::NoSuchKind`], or why the master is not fit.
pub fn status(
    kind: NewKind,
    in_container: bool,
    look: impl FnOnce(&Handle) -> Result<(), Error>,
) -> Result<(), Error> {
    let host = Handle::host()?;
    require_kind(&host, kind)?;
    if in_container {
        return Ok(());
    }
    look(&host)
}

/// The kernel has links of that kind.
///
/// # Errors
/// [`Error::NoSuchKind`].
pub fn require_kind(host: &Handle, kind: NewKind) -> Result<(), Error> {
    if host.knows_kind(&kind)? {
        Ok(())
    } else {
        Err(Error::NoSuchKind(kind.name()))
    }
}

/// A master for macvlan or ipvlan, which take all its frames.
///
/// # Errors
/// As [`master::find`]; [`Error::UnfitMaster`].
pub fn whole_master(place: &Handle, configured: &str) -> Result<Link, Error> {
    let link = master::find(place, configured)?;
    master::require_ethernet(&link)?;
    master::require_no_port(&link)?;
    Ok(link)
}
