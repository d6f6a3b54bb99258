//! Every way a packet has to go, tried.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::facts::Assigned;
use crate::net::{HOST_V4, HOST_V6, Host, Netns, OUTSIDE_V4, OUTSIDE_V6};
use crate::probe::{self, PATIENCE, Server, Transport, ping};
use crate::{Error, Result};

use super::report::Report;
use super::scenes::Scene;

/// The port that list a and b publish on the host, and the container's own.
pub const HOST_PORT: u16 = 8080;
pub const CONTAINER_PORT: u16 = 80;
const OUTSIDE_PORT: u16 = 7000;

const TRANSPORTS: [Transport; 2] = [Transport::Tcp, Transport::Udp];

/// A container and the addresses its ADD promised.
#[derive(Debug)]
pub struct Container<'a> {
    pub name: &'static str,
    pub netns: &'a Netns,
    pub addresses: Vec<Assigned>,
}

/// Who may be seen as the sender.
enum Source {
    Exactly(IpAddr),
    Anybody,
}

/// Tries everything for each address family of the first container.
pub fn show(report: &mut Report, scene: &Scene, host: &Host, one: &Container, two: &Container) {
    for assigned in &one.addresses {
        let own = assigned.address.ip();
        let family = if own.is_ipv4() { "IPv4" } else { "IPv6" };
        let neighbour = two.addresses.iter().map(|other| other.address.ip());
        let Some(neighbour) = neighbour
            .into_iter()
            .find(|ip| ip.is_ipv4() == own.is_ipv4())
        else {
            report.fact(
                &format!("{family}: the second container has an address"),
                Err(Error::Missing {
                    what: format!("an {family} address of {}", two.name),
                }),
            );
            continue;
        };
        let servers = [
            (one.netns, own, CONTAINER_PORT, one.name),
            (two.netns, neighbour, CONTAINER_PORT, two.name),
            (host.outside(), outside(own), OUTSIDE_PORT, "outside"),
        ]
        .into_iter()
        .flat_map(|(netns, address, port, name)| {
            TRANSPORTS.map(|kind| Server::start(netns, kind, SocketAddr::new(address, port), name))
        })
        .collect::<Result<Vec<_>>>();
        let Ok(_servers) = servers.map_err(|error| {
            report.fact(
                &format!("{family}: servers listen on the promised addresses"),
                Err(error),
            );
        }) else {
            continue;
        };
        plain(report, family, host, one, assigned, neighbour);
        if scene.publishes {
            published(report, scene, family, host, one, two, own);
        }
    }
    if !scene.publishes {
        report.not_applicable("published ports", "this list has no portmap");
    }
}

fn outside(family_of: IpAddr) -> IpAddr {
    if family_of.is_ipv4() {
        OUTSIDE_V4
    } else {
        OUTSIDE_V6
    }
}

fn host_address(family_of: IpAddr) -> IpAddr {
    if family_of.is_ipv4() {
        HOST_V4
    } else {
        HOST_V6
    }
}

/// What needs no published port.
fn plain(
    report: &mut Report,
    family: &str,
    host: &Host,
    one: &Container,
    assigned: &Assigned,
    neighbour: IpAddr,
) {
    let own = assigned.address.ip();
    let gateway = assigned
        .gateway
        .ok_or_else(|| Error::Missing {
            what: "a gateway in the result".into(),
        })
        .and_then(|gateway| {
            ping(one.netns, gateway, PATIENCE)?;
            Ok(format!("{gateway} answers ping"))
        });
    report.fact(&format!("{family} container -> gateway"), gateway);
    let to_neighbour = SocketAddr::new(neighbour, CONTAINER_PORT);
    both(
        report,
        &format!("{family} container -> another container"),
        |kind| try_ask(one.netns, kind, to_neighbour, "c2", &Source::Exactly(own)),
    );
    let far = SocketAddr::new(outside(own), OUTSIDE_PORT);
    let masqueraded = Source::Exactly(host_address(own));
    both(
        report,
        &format!("{family} container -> outside, masqueraded"),
        |kind| try_ask(one.netns, kind, far, "outside", &masqueraded),
    );
    let direct = SocketAddr::new(own, CONTAINER_PORT);
    both(report, &format!("{family} host -> container"), |kind| {
        try_ask(host.netns(), kind, direct, "c1", &Source::Anybody)
    });
}

/// Everybody to the published port.
fn published(
    report: &mut Report,
    scene: &Scene,
    family: &str,
    host: &Host,
    one: &Container,
    two: &Container,
    own: IpAddr,
) {
    let at_host = SocketAddr::new(host_address(own), HOST_PORT);
    let kept = Source::Exactly(outside(own));
    both(
        report,
        &format!("{family} outside -> published port, source kept"),
        |kind| try_ask(host.outside(), kind, at_host, "c1", &kept),
    );
    if own.is_ipv4() {
        let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), HOST_PORT);
        both(
            report,
            &format!("{family} host -> published port at 127.0.0.1"),
            |kind| try_ask(host.netns(), kind, local, "c1", &Source::Anybody),
        );
    }
    both(
        report,
        &format!("{family} host -> published port at its address"),
        |kind| try_ask(host.netns(), kind, at_host, "c1", &Source::Anybody),
    );
    both(
        report,
        &format!("{family} neighbour -> published port"),
        |kind| try_ask(two.netns, kind, at_host, "c1", &Source::Anybody),
    );
    let itself = format!("{family} container -> its own published port");
    if scene.hairpin_forbidden {
        report.not_applicable(&itself, "this list says \"hairpinMode\": false");
    } else {
        both(report, &itself, |kind| {
            try_ask(one.netns, kind, at_host, "c1", &Source::Anybody)
        });
    }
}

fn both(report: &mut Report, name: &str, attempt: impl Fn(Transport) -> Result<String>) {
    for kind in TRANSPORTS {
        report.fact(&format!("{name}, {kind}"), attempt(kind));
    }
}

fn try_ask(
    from: &Netns,
    kind: Transport,
    to: SocketAddr,
    server: &str,
    source: &Source,
) -> Result<String> {
    let seen = probe::ask(from, kind, to, PATIENCE)?;
    if seen.server != server {
        return Err(Error::unexpected(
            format!("{server} to answer at {to}"),
            seen.server,
        ));
    }
    match source {
        Source::Exactly(address) if seen.peer != *address => {
            let found = seen.peer.to_string();
            Err(Error::unexpected(format!("{address} as the sender"), found))
        }
        _ => Ok(format!("{to} sees {}", seen.peer)),
    }
}
