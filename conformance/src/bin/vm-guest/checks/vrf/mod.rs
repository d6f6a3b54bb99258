//! VRFs: what the checks have in common.

pub mod apart;
pub mod life;
pub mod moves;

use std::process::Command;
use std::time::{Duration, Instant};

use conformance::chain::Attachment;
use conformance::error::{Context, Error, Result};
use conformance::net::{Netns, Rtnl};
use conformance::plugin::Answer;
use conformance::probe::PATIENCE;
use serde_json::{Value, json};

use super::world::{World, equal};

fn parse<T: std::str::FromStr>(text: &str) -> Result<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| Error::Malformed {
        what: format!("{text}: {error}"),
    })
}

/// iproute2 in a namespace, and what it printed.
fn ip(netns: &Netns, arguments: &str) -> Result<String> {
    let words: Vec<&str> = arguments.split(' ').collect();
    ip_words(netns, &words)
}

fn ip_words(netns: &Netns, words: &[&str]) -> Result<String> {
    let arguments = words.join(" ");
    let output = netns.run(|| {
        let mut ip = Command::new("ip");
        ip.args(words).output().doing(|| "run ip".to_owned())
    })?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Error::unexpected(format!("ip {arguments} to work"), text))
    }
}

/// Everything that decides where packets go, and the addresses, but for what the kernel keeps for local addresses and
/// the rule that it never takes back.
fn routing(netns: &Netns) -> Result<Vec<String>> {
    let mut lines = Vec::new();
    for family in ["-4", "-6"] {
        for line in ip(netns, &format!("{family} -d route show table all"))?.lines() {
            let kernels = ["local", "broadcast", "multicast", "anycast"];
            let mut words: Vec<&str> = line.split_whitespace().collect();
            if !words.first().is_some_and(|first| kernels.contains(first)) {
                words.sort_unstable();
                lines.push(format!("{family} {}", words.join(" ")));
            }
        }
    }
    for line in ip(netns, "-o address show scope global")?.lines() {
        let words = line
            .split_whitespace()
            .skip(1)
            .filter(|word| *word != "nodad");
        lines.push(words.collect::<Vec<_>>().join(" "));
    }
    lines.sort();
    Ok(lines)
}

/// The unicast routes of one table, without the words that do not matter here.
fn table(netns: &Netns, family: &str, number: u32) -> Result<Vec<String>> {
    // A table that nothing was ever in is an error to iproute2.
    let text = ip(netns, &format!("{family} route show table all"))?;
    let end = format!("table {number}");
    let of_table = text.lines().filter(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.windows(2).any(|two| two.join(" ") == end)
    });
    let unicast = of_table.filter(|line| {
        !["local", "broadcast", "multicast", "anycast"]
            .iter()
            .any(|kind| line.starts_with(kind))
    });
    let mut lines: Vec<String> = unicast
        .map(|line| {
            line.split_whitespace()
                .take(5)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    lines.sort();
    Ok(lines)
}

/// An interface of a container that some other plugin could have made, with addresses 10.N.0.2 and fd00:N::2, and a result
/// that says so. Its other end, on the host, has the first address of both networks.
fn interface(world: &World, netns: &Netns, name: &str, number: u8) -> Result<Value> {
    let host = format!("h{number}-{name}");
    world.host.rtnl().add_veth(&host, netns, name)?;
    let inside = Rtnl::open(netns)?;
    for (rtnl, link, last) in [(world.host.rtnl(), host.as_str(), 1), (&inside, name, 2)] {
        rtnl.set_up(link)?;
        rtnl.add_address(link, parse(&format!("10.{number}.0.{last}/24"))?)?;
        rtnl.add_address(link, parse(&format!("fd00:{number}::{last}/64"))?)?;
    }
    Ok(json!({
        "cniVersion": "1.1.0",
        "interfaces": [{"name": host}, {"name": name, "sandbox": netns.path()}],
        "ips": [
            {"address": format!("10.{number}.0.2/24"), "gateway": format!("10.{number}.0.1"), "interface": 1},
            {"address": format!("fd00:{number}::2/64"), "interface": 1},
        ],
    }))
}

fn config(name: &str, result: &Value, extra: &Value) -> Value {
    let mut config = json!({"cniVersion": "1.1.0", "name": "net", "type": "vrf", "vrfname": name, "prevResult": result});
    if let (Some(into), Some(more)) = (config.as_object_mut(), extra.as_object()) {
        into.extend(more.clone());
    }
    config
}

fn call(world: &World, verb: &str, config: &Value, to: &Attachment) -> Result<Answer> {
    let call = world.runtime.call("vrf", verb, to)?;
    call.stdin(config.to_string()).run()
}

fn good(world: &World, verb: &str, config: &Value, to: &Attachment) -> Result<Answer> {
    let answer = call(world, verb, config, to)?;
    if answer.ok() {
        Ok(answer)
    } else {
        Err(Error::unexpected(format!("{verb} to work"), answer.text()))
    }
}

/// ADD passes the result on; CHECK agrees and changes nothing.
fn works(world: &World, config: &Value, to: &Attachment, netns: &Netns) -> Result<()> {
    let answer = good(world, "ADD", config, to)?;
    equal("result", &answer.json().as_ref(), &config.get("prevResult"))?;
    let now = routing(netns)?;
    good(world, "CHECK", config, to)?;
    equal("routing after CHECK", &routing(netns)?, &now)
}

fn has_link(netns: &Netns, name: &str) -> Result<bool> {
    Ok(Rtnl::open(netns)?
        .links()?
        .iter()
        .any(|link| link.name == name))
}

/// Waits until no address is tentative any more.
fn settled(netns: &Netns) -> Result<()> {
    let end = Instant::now() + 2 * PATIENCE;
    while ip(netns, "-6 address show tentative")?.contains("inet6") {
        if Instant::now() > end {
            return Err(Error::Missing {
                what: "an end of duplicate address detection".into(),
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}
