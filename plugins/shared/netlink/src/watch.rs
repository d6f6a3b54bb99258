//! Waiting for the kernel to finish what goes on behind a request, by its notifications and never by polling.
//!
//! Each wait looks at the present state first, which is all that happens in the usual case. Only then does it subscribe,
//! and it looks once more after that: a change between the two looks cannot be missed.

use std::io;
use std::time::{Duration, Instant};

use netlink_sys::{Socket as RawSocket, SocketAddr, protocols::NETLINK_ROUTE};
use nix::libc;
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::addr::Address;
use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::link::{Link, LinkRef};
use crate::socket::{messages, receive_datagram};

/// `RTMGRP_LINK`, `RTMGRP_IPV6_IFADDR` and `RTMGRP_IPV6_ROUTE` (linux/rtnetlink.h), as bits of the address to bind to.
const GROUP_LINK: u32 = 1;
const GROUP_IPV6_ADDRESS: u32 = 0x100;
const GROUP_IPV6_ROUTE: u32 = 0x400;

/// `RT_SCOPE_UNIVERSE`.
const SCOPE_GLOBAL: u8 = 0;

/// Room for one notification.
const NOTICE_SIZE: usize = 16 * 1024;

impl Handle {
    /// Waits until a link [is running](Link::is_running), and gives its state then.
    ///
    /// A link gets its carrier when its other end goes up, but the kernel tells the rest of the system, the bridge it is a
    /// port of for one, in a deferred job. Frames sent before are lost. Since Linux 6.8 asking for the link does that
    /// job at once, so this returns without waiting there.
    ///
    /// # Errors
    /// [`Error::Timeout`] at `deadline`; [`is_not_found`](Error::is_not_found) if the link goes away.
    pub fn wait_running(&self, link: &impl LinkRef, deadline: Instant) -> Result<Link> {
        let started = Instant::now();
        let index = link.index();
        let now = self.link_by_index(index)?;
        if now.is_running() {
            return Ok(now);
        }
        let notices = self.subscribe(GROUP_LINK)?;
        loop {
            let now = self.link_by_index(index)?;
            if now.is_running() {
                return Ok(now);
            }
            let about_it = |kind, payload: &[u8]| {
                let seen = crate::link::parse(libc::RTM_NEWLINK, payload);
                matches!(kind, libc::RTM_NEWLINK | libc::RTM_DELLINK)
                    && seen.is_some_and(|l| l.index == index)
            };
            if !notices.wait(deadline, about_it)? {
                return Err(Error::Timeout {
                    what: format!("is still {}", state(&now)),
                    object: now.name,
                    waited: started.elapsed(),
                });
            }
        }
    }

    /// Waits until the IPv6 addresses of a link (which must be up) that `wanted` picks can be used: duplicate address
    /// detection has ended, and packets to them are taken in. The kernel does the latter in a deferred job even for addresses
    /// without detection; what arrives before is lost. Returns at once if there is nothing to wait for.
    ///
    /// # Errors
    /// [`Error::Duplicate`] if another station holds one of them; [`Error::Timeout`] at `deadline`.
    pub fn wait_settled(
        &self,
        link: &impl LinkRef,
        wanted: impl Fn(&Address) -> bool,
        deadline: Instant,
    ) -> Result<()> {
        self.wait_settled_in(None, link, wanted, deadline)
    }

    /// As [`Handle::wait_settled`], for a port of the VRF with the index `vrf`, which has its own table for what is
    /// taken in.
    ///
    /// # Errors
    /// As [`Handle::wait_settled`].
    pub fn wait_settled_in(
        &self,
        vrf: Option<u32>,
        link: &impl LinkRef,
        wanted: impl Fn(&Address) -> bool,
        deadline: Instant,
    ) -> Result<()> {
        let started = Instant::now();
        if self.unsettled(vrf, link, &wanted)?.is_none() {
            return Ok(());
        }
        let notices = self.subscribe(GROUP_IPV6_ADDRESS | GROUP_IPV6_ROUTE)?;
        while let Some(address) = self.unsettled(vrf, link, &wanted)? {
            if !notices.wait(deadline, |kind, payload| concerns(kind, payload, &address))? {
                let what = if address.is_tentative() {
                    "is still tentative"
                } else {
                    "is still not taken in"
                };
                return Err(Error::Timeout {
                    what: what.to_owned(),
                    object: format!("address {} on {}", address.ip.ip(), link.label()),
                    waited: started.elapsed(),
                });
            }
        }
        Ok(())
    }

    /// The first wanted address that cannot be used yet; a duplicate is an error.
    fn unsettled(
        &self,
        vrf: Option<u32>,
        link: &impl LinkRef,
        wanted: impl Fn(&Address) -> bool,
    ) -> Result<Option<Address>> {
        let addresses = self.addresses(link)?;
        let wanted: Vec<_> = addresses
            .into_iter()
            .filter(|a| a.ip.is_ipv6() && wanted(a))
            .collect();
        if let Some(address) = wanted.iter().find(|a| a.is_duplicate()) {
            return Err(Error::Duplicate {
                address: address.ip.ip(),
                link: link.label().into_owned(),
            });
        }
        for address in wanted {
            if address.is_tentative() || !self.takes_in(vrf, &address)? {
                return Ok(Some(address));
            }
        }
        Ok(None)
    }

    /// Whether packets to an own address are delivered here.
    fn takes_in(&self, vrf: Option<u32>, address: &Address) -> Result<bool> {
        // Link-local addresses can be the same on many links, and asking by address alone may answer for another.
        if address.scope != SCOPE_GLOBAL {
            return Ok(true);
        }
        let way = match vrf {
            Some(vrf) => self.way_over(vrf, address.ip.ip()),
            None => self.way_to(address.ip.ip()),
        };
        match way {
            Ok(way) => Ok(way.local),
            Err(Error::Kernel { .. }) => Ok(false),
            Err(other) => Err(other),
        }
    }

    fn subscribe(&self, groups: u32) -> Result<Notices> {
        self.inside(|| Notices::open(groups))?.map_err(failed)
    }
}

/// A socket that receives notifications.
struct Notices(RawSocket);

impl Notices {
    fn open(groups: u32) -> io::Result<Self> {
        let mut socket = RawSocket::new(NETLINK_ROUTE)?;
        socket.bind(&SocketAddr::new(0, groups))?;
        Ok(Self(socket))
    }

    /// Waits for a notification that `relevant` picks; false at the deadline. Lost notifications count as relevant.
    fn wait(&self, deadline: Instant, relevant: impl Fn(u16, &[u8]) -> bool) -> Result<bool> {
        let mut bytes = Vec::with_capacity(NOTICE_SIZE);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(false);
            }
            self.wait_at_most(left)?;
            match receive_datagram(&self.0, &mut bytes) {
                Ok(()) if messages(&bytes).any(|(kind, payload)| relevant(kind, payload)) => {
                    return Ok(true);
                }
                Ok(()) => {}
                Err(e) if e.raw_os_error() == Some(libc::ENOBUFS) => return Ok(true),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(failed(e)),
            }
        }
    }

    /// Bounds the next receive. A bound of zero would mean none, so it is never less than a microsecond.
    fn wait_at_most(&self, left: Duration) -> Result<()> {
        let micros = i64::try_from(left.as_micros()).unwrap_or(i64::MAX).max(1);
        setsockopt(
            &self.0,
            sockopt::ReceiveTimeout,
            &TimeVal::microseconds(micros),
        )
        .map_err(|errno| failed(errno.into()))
    }
}

/// Whether a notification may be what `address` waits for: a word about its link's addresses, or its local route.
fn concerns(kind: u16, payload: &[u8], address: &Address) -> bool {
    match kind {
        libc::RTM_NEWADDR | libc::RTM_DELADDR => crate::addr::parse(libc::RTM_NEWADDR, payload)
            .is_some_and(|seen| seen.index == address.index),
        libc::RTM_NEWROUTE => {
            crate::route::parse(kind, payload).is_some_and(|seen| seen.dst.ip() == address.ip.ip())
        }
        _ => false,
    }
}

fn state(link: &Link) -> String {
    match link {
        Link { up: false, .. } => "administratively down".to_owned(),
        Link { carrier: false, .. } => "without carrier".to_owned(),
        _ => format!("in state {}", link.operstate.to_string().to_lowercase()),
    }
}

fn failed(source: io::Error) -> Error {
    Error::Io {
        what: "wait for",
        object: "netlink notifications".to_owned(),
        source,
    }
}
