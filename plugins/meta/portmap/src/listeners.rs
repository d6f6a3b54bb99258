//! Programs of the host that have a port which is to be published: from then on the container gets what was theirs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnetwork::IpNetwork;
use netfilter::{Intent, Protocol};
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockProtocol, SockType, SockaddrStorage, bind, setsockopt, socket,
    sockopt,
};
use skel::log;

/// Says so if a program of the host has one of the ports. It is no error: rules come before sockets, and that may be
/// meant.
pub fn warn(intents: &[Intent]) {
    let mut told = Vec::new();
    for intent in intents {
        let Intent::Publish {
            host_ip,
            host_port,
            protocol,
            to,
            ..
        } = intent
        else {
            continue;
        };
        let anywhere = match to {
            IpNetwork::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            IpNetwork::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        };
        let address = SocketAddr::new(host_ip.unwrap_or(anywhere), *host_port);
        if !told.contains(&(*host_port, *protocol)) && is_taken(address, *protocol) {
            told.push((*host_port, *protocol));
            log::warn(format_args!(
                "a program of this host has {protocol} port {host_port}; what comes for it from outside goes to the container \
                 from now on (ss -lnp shows which program, another hostPort leaves it alone)"
            ));
        }
    }
}

/// Whether the port cannot be bound because somebody has it. Nothing is listened to, so no client can notice.
fn is_taken(address: SocketAddr, protocol: Protocol) -> bool {
    try_bind(address, protocol) == Err(Errno::EADDRINUSE)
}

fn try_bind(address: SocketAddr, protocol: Protocol) -> Result<(), Errno> {
    let family = if address.is_ipv4() {
        AddressFamily::Inet
    } else {
        AddressFamily::Inet6
    };
    let (kind, number) = match protocol {
        Protocol::Tcp => (SockType::Stream, SockProtocol::Tcp),
        Protocol::Udp => (SockType::Datagram, SockProtocol::Udp),
        // Hardly a kernel has it loaded, and asking would load it.
        Protocol::Sctp => return Ok(()),
    };
    let socket = socket(family, kind, SockFlag::SOCK_CLOEXEC, number)?;
    if protocol == Protocol::Tcp {
        // Connections that are closing do not count, who listens does.
        setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    }
    if !address.is_ipv4() {
        setsockopt(&socket, sockopt::Ipv6V6Only, &true)?;
    }
    bind(
        std::os::fd::AsRawFd::as_raw_fd(&socket),
        &SockaddrStorage::from(address),
    )
}
