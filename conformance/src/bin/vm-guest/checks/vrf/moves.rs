//! What comes into a VRF with an interface, and which table that is.

use std::net::{IpAddr, SocketAddr};

use conformance::chain::Attachment;
use conformance::error::{Error, Result};
use conformance::probe::{PATIENCE, Server, Transport, ask_over};
use serde_json::json;

use super::{call, config, good, has_link, interface, ip, parse, routing, settled, table, works};
use crate::checks::world::{World, equal, holds};

/// Addresses with their lifetimes and routes with all that belongs to them come into the VRF, and back; routes of other
/// interfaces and tables stay where they are.
pub fn belongings() -> Result<()> {
    let world = World::new()?;
    let netns = world.host.container("c1")?;
    let result = interface(&world, &netns, "eth0", 2)?;
    interface(&world, &netns, "eth1", 3)?;
    for command in [
        "route add default via 10.2.0.1 dev eth0 mtu 1400",
        "route add 10.99.0.0/16 via 10.2.0.5 dev eth0 proto static metric 7",
        "route add 10.98.0.0/16 dev eth0 table 500",
        "route add 10.97.0.0/16 via 10.3.0.1 dev eth1",
        "-6 route add default via fd00:2::1 dev eth0 metric 30",
        "-6 route add fd00:99::/64 via fd00:2::5 dev eth0",
        "-6 route add fd00:98::/64 dev eth0 table 500",
        "-6 route add fd00:97::/64 via fd00:3::1 dev eth1",
        "-6 address add fd00:2::77/64 dev eth0 nodad noprefixroute",
    ] {
        ip(&netns, command)?;
    }
    // Nobody helps: the kernel drops the addresses.
    settled(&netns)?;
    let before = routing(&netns)?;
    let link = |text: &str| Ok::<_, Error>(text.matches("scope link").count());
    let link_local = link(&ip(&netns, "-6 address show dev eth0")?)?;
    let to = Attachment::new("c1", netns.path());
    let config = config("blue", &result, &json!({}));
    for _ in 0..2 {
        works(&world, &config, &to, &netns)?;
        let addresses = ip(&netns, "-6 address show dev eth0")?;
        for address in ["fd00:2::2/64", "fd00:2::77/64"] {
            holds("the IPv6 address stays", addresses.contains(address))?;
        }
        equal("link-local addresses", &link(&addresses)?, &link_local)?;
        holds("no address is tentative", !addresses.contains("tentative"))?;
        let expected: Vec<String> = [
            "10.2.0.0/24 dev eth0 table 1",
            "10.99.0.0/16 via 10.2.0.5 dev eth0",
            "default via 10.2.0.1 dev eth0",
        ]
        .map(str::to_owned)
        .into();
        equal(
            "IPv4 routes in the VRF",
            &table(&netns, "-4", 1)?,
            &expected,
        )?;
        let v6 = table(&netns, "-6", 1)?;
        for route in [
            "default via fd00:2::1 dev eth0",
            "fd00:2::/64 dev eth0",
            "fd00:99::/64 via fd00:2::5 dev eth0",
        ] {
            holds(
                &format!("{route} in {v6:?}"),
                v6.iter().any(|line| line.starts_with(route)),
            )?;
        }
        equal("other table", &table(&netns, "-4", 500)?.len(), &1)?;
        equal("other table", &table(&netns, "-6", 500)?.len(), &1)?;
        let main = ip(&netns, "-4 route")? + &ip(&netns, "-6 route")?;
        holds("no route is left", !main.contains("eth0"))?;
        holds(
            "others' routes stay",
            main.contains("10.97.0.0/16") && main.contains("fd00:97::/64"),
        )?;
        good(&world, "DEL", &config, &to)?;
        equal("after DEL", &routing(&netns)?, &before)?;
        holds("the VRF is gone", !has_link(&netns, "blue")?)?;
    }
    Ok(())
}

/// A route whose ways are an object of their own, which goes when the link is down for a moment.
pub fn next_hops() -> Result<()> {
    let world = World::new()?;
    let netns = world.host.container("c1")?;
    let result = interface(&world, &netns, "eth0", 2)?;
    for command in [
        "nexthop add id 7 via 10.2.0.1 dev eth0",
        "route add 10.96.0.0/16 nhid 7",
        "nexthop add id 8 via fd00:2::1 dev eth0",
        "-6 route add fd00:96::/64 nhid 8",
    ] {
        ip(&netns, command)?;
    }
    let to = Attachment::new("c1", netns.path());
    let config = config("blue", &result, &json!({}));
    works(&world, &config, &to, &netns)?;
    let v4 = table(&netns, "-4", 1)?;
    holds(
        &format!("{v4:?}"),
        v4.contains(&"10.96.0.0/16 via 10.2.0.1 dev eth0".to_owned()),
    )?;
    let v6 = table(&netns, "-6", 1)?;
    holds(
        &format!("{v6:?}"),
        v6.contains(&"fd00:96::/64 via fd00:2::1 dev eth0".to_owned()),
    )?;
    good(&world, "DEL", &config, &to)?;
    let main = ip(&netns, "-4 route")? + &ip(&netns, "-6 route")?;
    holds(
        &main,
        main.contains("10.96.0.0/16 via 10.2.0.1") && main.contains("fd00:96::/64 via fd00:2::1"),
    )
}

/// Several interfaces in one VRF share its table, and the last one takes it away; networks of other names may share a VRF.
pub fn several() -> Result<()> {
    let world = World::new()?;
    let netns = world.host.container("c1")?;
    let mut all = Vec::new();
    for (ifname, number) in [("eth0", 2), ("eth1", 3), ("eth2", 4)] {
        let result = interface(&world, &netns, ifname, number)?;
        let config = config("blue", &result, &json!({"name": format!("net{number}")}));
        let to = Attachment::new("c1", netns.path()).ifname(ifname);
        works(&world, &config, &to, &netns)?;
        all.push((config, to));
    }
    let routes = table(&netns, "-4", 1)?;
    equal("networks in one table", &routes.len(), &3)?;
    // A packet from one network to another passes within the VRF.
    for number in [2_u8, 3, 4] {
        let address: IpAddr = parse(&format!("10.{number}.0.1"))?;
        let server = Server::start(
            world.host.netns(),
            Transport::Tcp,
            SocketAddr::new(address, 90),
            "host",
        )?;
        ask_over(
            &netns,
            Transport::Tcp,
            "blue",
            SocketAddr::new(address, 90),
            PATIENCE,
        )?;
        drop(server);
    }
    for (number, (config, to)) in all.iter().enumerate() {
        holds("the VRF is there", has_link(&netns, "blue")?)?;
        good(&world, "DEL", config, to)?;
        equal(
            "networks left",
            &table(&netns, "-4", 1)?.len(),
            &(2 - number),
        )?;
    }
    holds("the VRF is gone", !has_link(&netns, "blue")?)
}

/// Which table a VRF gets.
pub fn tables() -> Result<()> {
    let world = World::new()?;
    let netns = world.host.container("c1")?;
    ip(&netns, "link set lo up")?;
    for command in [
        "route add 10.50.0.0/16 dev lo table 1",
        "-6 route add fd00:50::/64 dev lo table 2",
        "rule add from 10.60.0.1 lookup 3",
        "link add own type vrf table 5",
        "link add not-one type dummy",
    ] {
        ip(&netns, command)?;
    }
    let expected = [
        ("a", json!({}), "4"),
        ("b", json!({"table": 0}), "6"),
        ("c", json!({"table": 77}), "77"),
        ("d", json!({"table": 77}), "77"),
    ];
    for (number, (name, extra, table)) in (10..).zip(expected) {
        let ifname = format!("eth{number}");
        let result = interface(&world, &netns, &ifname, number)?;
        let to = Attachment::new("c1", netns.path()).ifname(&ifname);
        works(&world, &config(name, &result, &extra), &to, &netns)?;
        let shown = ip(&netns, &format!("-d link show dev {name}"))?;
        holds(
            &format!("table {table} in {shown}"),
            shown.contains(&format!("vrf table {table} ")),
        )?;
        holds("it is up", shown.contains(",UP"))?;
    }
    // The same number again is fine, another one is not.
    let result = interface(&world, &netns, "eth20", 20)?;
    let to = Attachment::new("c1", netns.path()).ifname("eth20");
    let before = routing(&netns)?;
    let answer = call(
        &world,
        "ADD",
        &config("c", &result, &json!({"table": 78})),
        &to,
    )?;
    let error = answer
        .error()
        .ok_or_else(|| Error::unexpected("ADD to fail", answer.text()))?;
    holds(&error.msg, error.msg.contains("different routing table 77"))?;
    equal("after the refusal", &routing(&netns)?, &before)?;
    works(
        &world,
        &config("c", &result, &json!({"table": 77})),
        &to,
        &netns,
    )
}

/// Interfaces that come at the same time get VRFs with different tables, or share one.
pub fn parallel() -> Result<()> {
    let world = World::new()?;
    for shared in [false, true] {
        let id = format!("c{}", u8::from(shared));
        let netns = world.host.container(&id)?;
        let mut all = Vec::new();
        for number in 10..14 {
            let ifname = format!("eth{number}{}", u8::from(shared));
            let result = interface(&world, &netns, &ifname, number)?;
            let name = if shared {
                "one".to_owned()
            } else {
                format!("v{number}")
            };
            let to = Attachment::new(&id, netns.path()).ifname(&ifname);
            all.push((config(&name, &result, &json!({})), to));
        }
        for verb in ["ADD", "DEL"] {
            std::thread::scope(|scope| {
                let calls: Vec<_> = all
                    .iter()
                    .map(|(config, to)| {
                        let call = world
                            .runtime
                            .call("vrf", verb, to)?
                            .stdin(config.to_string());
                        Ok(scope.spawn(move || call.run()))
                    })
                    .collect::<Result<_>>()?;
                for call in calls {
                    let answer = call
                        .join()
                        .map_err(|_| Error::unexpected("an answer", "a panic"))??;
                    holds(&answer.text(), answer.ok())?;
                }
                Ok::<_, Error>(())
            })?;
            let vrfs = ip(&netns, "-d link show type vrf")?;
            let count = match (verb, shared) {
                ("DEL", _) => 0,
                (_, true) => 1,
                _ => 4,
            };
            equal("VRFs", &vrfs.matches("vrf table").count(), &count)?;
            for table in 1..=count {
                let wanted = format!("vrf table {table} ");
                equal(&wanted, &vrfs.matches(&wanted).count(), &1)?;
            }
        }
    }
    Ok(())
}
