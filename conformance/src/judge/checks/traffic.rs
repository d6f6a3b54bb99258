//! Real packets, the first of which must arrive: there is no second try.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::json;

use crate::chain::{Attachment, Network, Runtime};
use crate::judge::attach::{Attached, parse};
use crate::judge::check::{Check, Versions, reference};
use crate::judge::place::{Families, merge};
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, expect, fault, skip};
use crate::net::{HOST_V4, OUTSIDE_V4};
use crate::probe::{self, BRIEFLY, PATIENCE, Server, Transport, ping};

const REACH: &str = "when ADD has returned, the network works";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "traffic.gateway",
        title: "the container reaches its gateway, over IPv4",
        clause: reference(REACH),
        versions: Versions::Newest,
        run: |trial| gateway(trial, Families::V4),
    },
    Check {
        id: "traffic.gateway-over-ipv6",
        title: "the container reaches its gateway, over IPv6",
        clause: reference(REACH),
        versions: Versions::Newest,
        run: |trial| gateway(trial, Families::Both),
    },
    Check {
        id: "traffic.neighbours",
        title: "two containers of a network reach each other",
        clause: reference(REACH),
        versions: Versions::Newest,
        run: neighbours,
    },
    Check {
        id: "traffic.from-the-host",
        title: "the host reaches a server in the container",
        clause: reference(REACH),
        versions: Versions::Newest,
        run: from_host,
    },
    Check {
        id: "traffic.masquerade",
        title: "with ipMasq the outside sees the host's address",
        clause: reference("bridge and ptp: ipMasq"),
        versions: Versions::Newest,
        run: masquerade,
    },
    Check {
        id: "traffic.loopback",
        title: "after ADD of loopback 127.0.0.1 answers in the container",
        clause: reference("loopback: sets the interface up"),
        versions: Versions::Newest,
        run: loopback,
    },
    Check {
        id: "traffic.published-port",
        title: "a published port is reached from outside, and is closed after DEL",
        clause: reference("portmap: portMappings"),
        versions: Versions::NewestFrom("0.3.0"),
        run: published_port,
    },
    Check {
        id: "traffic.through-the-firewall",
        title: "traffic passes where the host drops what it forwards",
        clause: reference("firewall: lets the container's traffic through"),
        versions: Versions::Newest,
        run: firewall,
    },
    Check {
        id: "traffic.routes",
        title: "the routes of IPAM are in the container",
        clause: reference("main plugins apply IPAM's routes"),
        versions: Versions::Newest,
        run: outside_by_route,
    },
];

fn with_gateway(trial: &Trial<'_>, families: Families) -> Verdict<Attached> {
    if !trial.subject.profile().has_gateway {
        return skip("its interface leads nowhere here");
    }
    let mut attached = trial.attach_with(families)?;
    trial.add(&mut attached)?;
    Ok(attached)
}

fn gateway(trial: &Trial<'_>, families: Families) -> Verdict {
    let attached = with_gateway(trial, families)?;
    let to = if families == Families::V4 {
        &attached.addresses.gateway_v4
    } else {
        &attached.addresses.gateway_v6
    };
    expect("first packet", ping(&attached.netns, parse(to)?, PATIENCE))
}

fn address(attached: &Attached) -> Verdict<IpAddr> {
    let address: ipnetwork::IpNetwork = parse(&attached.addresses.v4)?;
    Ok(address.ip())
}

fn neighbours(trial: &Trial<'_>) -> Verdict {
    let one = with_gateway(trial, Families::V4)?;
    let two = with_gateway(trial, Families::V4)?;
    expect("first packet", ping(&one.netns, address(&two)?, PATIENCE))?;
    expect(
        "first packet back",
        ping(&two.netns, address(&one)?, PATIENCE),
    )
}

fn serve(attached: &Attached) -> Verdict<(Server, SocketAddr)> {
    let at = SocketAddr::new(address(attached)?, 80);
    let server = expect(
        "serve on the address",
        Server::start(&attached.netns, Transport::Udp, at, "container"),
    )?;
    Ok((server, at))
}

fn from_host(trial: &Trial<'_>) -> Verdict {
    let attached = with_gateway(trial, Families::V4)?;
    if trial.subject.profile().on_uplink {
        return skip("the host does not reach interfaces on its own uplink");
    }
    let (_server, at) = serve(&attached)?;
    expect(
        "first datagram",
        probe::ask(trial.host()?.netns(), Transport::Udp, at, PATIENCE),
    )
    .map(drop)
}

fn masquerade(trial: &Trial<'_>) -> Verdict {
    if !matches!(trial.subject.name.as_str(), "bridge" | "ptp") {
        return skip("it does not masquerade");
    }
    let mut attached = trial.attach()?;
    merge(&mut attached.config, &json!({"ipMasq": true}));
    trial.add(&mut attached)?;
    let outside = SocketAddr::new(OUTSIDE_V4, 7000);
    let host = trial.host()?;
    host.sysctl("net/ipv4/ip_forward", "1")?;
    let _server = Server::start(host.outside(), Transport::Udp, outside, "outside")?;
    let seen = expect(
        "first datagram",
        probe::ask(&attached.netns, Transport::Udp, outside, PATIENCE),
    )?;
    ensure(seen.peer == HOST_V4, || {
        format!("the outside saw {}", seen.peer)
    })?;
    trial.must("DEL", &attached)
}

fn loopback(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role != Role::Loopback {
        return skip("not loopback");
    }
    let attached = trial.added()?;
    expect(
        "127.0.0.1",
        ping(&attached.netns, IpAddr::V4(Ipv4Addr::LOCALHOST), PATIENCE),
    )
}

/// bridge and host-local of the same directory, with this plugin behind them.
fn list(
    trial: &Trial<'_>,
    plugins: &[&str],
    extra: serde_json::Value,
) -> Verdict<(Network, Runtime)> {
    for plugin in ["bridge", "host-local"].iter().chain(plugins) {
        if !trial.subject.directory.join(plugin).is_file() {
            return skip(format!("there is no {plugin} beside it"));
        }
    }
    let mut own = json!({"type": trial.subject.name});
    merge(&mut own, &extra);
    let list = json!({"cniVersion": trial.version, "name": "traffic", "plugins": [
        {"type": "bridge", "bridge": "jb0", "isGateway": true, "ipMasq": true,
         "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}}, own]});
    Ok((
        Network::parse(&list.to_string())?,
        Runtime::new(&trial.subject.directory),
    ))
}

fn run_list(runtime: &Runtime, network: &Network, attachment: &mut Attachment) -> Verdict<IpAddr> {
    let result = runtime.add(network, attachment)?;
    match crate::facts::addresses(&result).first() {
        Some(one) => Ok(one.address.ip()),
        None => fault(format!("no address: {result}")),
    }
}

fn published_port(trial: &Trial<'_>) -> Verdict {
    if trial.subject.name != "portmap" {
        return skip("it publishes no ports");
    }
    let (network, runtime) = list(trial, &[], json!({"capabilities": {"portMappings": true}}))?;
    let host = trial.host()?;
    let netns = host.container("web")?;
    let ports = json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}, {"hostPort": 8080, "containerPort": 80, "protocol": "udp"}]);
    let mut attachment = Attachment::new("web", netns.path()).capability("portMappings", ports);
    let own = SocketAddr::new(run_list(&runtime, &network, &mut attachment)?, 80);
    let published = SocketAddr::new(HOST_V4, 8080);
    for transport in [Transport::Tcp, Transport::Udp] {
        let _server = expect("serve", Server::start(&netns, transport, own, "web"))?;
        let seen = expect(
            "from outside",
            probe::ask(host.outside(), transport, published, PATIENCE),
        )?;
        ensure(seen.server == "web", || format!("{} answered", seen.server))?;
    }
    runtime.del(&network, &attachment)?;
    closed_port(trial)
}

/// The container keeps its interface and its server here: what closes the port is DEL of this plugin alone.
fn closed_port(trial: &Trial<'_>) -> Verdict {
    let host = trial.host()?;
    host.sysctl("net/ipv4/ip_forward", "1")?;
    let attached = trial.added()?;
    let port = attached
        .config
        .pointer("/runtimeConfig/portMappings/0/hostPort");
    let port = port.and_then(serde_json::Value::as_u64).unwrap_or_default();
    let published = SocketAddr::new(HOST_V4, u16::try_from(port).unwrap_or_default());
    let own = attached.addresses.v4.split('/').next().unwrap_or_default();
    let own = SocketAddr::new(parse(own)?, 80);
    let _server = expect(
        "serve",
        Server::start(&attached.netns, Transport::Tcp, own, "web"),
    )?;
    let ask = |patience| probe::ask(host.outside(), Transport::Tcp, published, patience);
    expect("from outside", ask(PATIENCE))?;
    trial.must("DEL", &attached)?;
    ensure(ask(BRIEFLY).is_err(), || {
        "the port is open after DEL".to_owned()
    })
}

fn firewall(trial: &Trial<'_>) -> Verdict {
    if trial.subject.name != "firewall" {
        return skip("it lets nothing through");
    }
    let (network, runtime) = list(trial, &[], json!({}))?;
    let host = trial.host()?;
    host.sysctl("net/ipv4/ip_forward", "1")?;
    let Some(tool) = crate::chain::find_tool("iptables", &crate::chain::standard_path()) else {
        return skip("there is no iptables here to drop with");
    };
    let status = std::process::Command::new(tool)
        .args(["-P", "FORWARD", "DROP"])
        .output();
    if !status.is_ok_and(|output| output.status.success()) {
        return skip("iptables does not work here");
    }
    let netns = host.container("web")?;
    let mut attachment = Attachment::new("web", netns.path());
    run_list(&runtime, &network, &mut attachment)?;
    let outside = SocketAddr::new(OUTSIDE_V4, 7000);
    let _server = Server::start(host.outside(), Transport::Udp, outside, "outside")?;
    expect(
        "to the outside",
        probe::ask(&netns, Transport::Udp, outside, PATIENCE),
    )
    .map(drop)
}

fn outside_by_route(trial: &Trial<'_>) -> Verdict {
    let attached = with_gateway(trial, Families::V4)?;
    let routes = crate::net::Rtnl::open(&attached.netns)?.routes()?;
    let default = routes
        .iter()
        .any(|route| route.header.destination_prefix_length == 0);
    ensure(default, || {
        "there is no default route in the container".to_owned()
    })
}
