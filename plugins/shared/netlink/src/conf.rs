//! Switches of the kernel's IP that rtnetlink can read, without `/proc/sys`.
//!
//! Every network namespace has its own `net/ipv4` and `net/ipv6` under `/proc/sys`, and the kernel finds the right one by
//! going through those of all namespaces: 1.2 ms for each file that a process opens when there are 1,000 containers. The
//! same values are to be had from rtnetlink for some microseconds (linux/netconf.h).

use nix::libc;

use crate::error::{Error, Result};
use crate::handle::Handle;
use crate::nla;
use crate::request::{Body, Request};

/// `RTM_NEWNETCONF` and `RTM_GETNETCONF`.
const NEW_NETCONF: u16 = 80;
const GET_NETCONF: u16 = 82;
/// `NETCONFA_IFINDEX` with the value for "all", and `NETCONFA_FORWARDING`.
const IFINDEX: u16 = 1;
const ALL: i32 = -1;
const FORWARDING: u16 = 2;
/// `struct netconfmsg`: the address family, padded.
const HEADER_LEN: usize = 4;

impl Handle {
    /// Whether this namespace passes packets of a family on: `net.ipv4.ip_forward`, `net.ipv6.conf.all.forwarding`.
    ///
    /// # Errors
    /// A kernel without that family, or older than Linux 3.8, refuses.
    pub fn forwards(&self, ipv6: bool) -> Result<bool> {
        let family = if ipv6 { libc::AF_INET6 } else { libc::AF_INET };
        let mut payload = vec![u8::try_from(family).unwrap_or_default(), 0, 0, 0];
        payload.extend(8_u16.to_ne_bytes());
        payload.extend(IFINDEX.to_ne_bytes());
        payload.extend(ALL.to_ne_bytes());
        let body = Body::Raw {
            kind: GET_NETCONF,
            payload,
        };
        let object = if ipv6 { "IPv6" } else { "IPv4" };
        let request = Request::new(body, 0, "read the forwarding switch of", object);
        let answers = self.socket.exchange(&request, forwarding)?;
        answers.first().copied().ok_or_else(|| Error::Malformed {
            what: request.what,
            object: request.object,
            why: "it says nothing of forwarding".to_owned(),
        })
    }
}

fn forwarding(kind: u16, payload: &[u8]) -> Option<bool> {
    if kind != NEW_NETCONF {
        return None;
    }
    nla::attributes(payload.get(HEADER_LEN..)?)
        .find(|(kind, _)| *kind == FORWARDING)
        .and_then(|(_, value)| nla::as_i32(value))
        .map(|value| value != 0)
}
