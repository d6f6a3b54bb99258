//! The place where a scenario is played, and what its steps are made of.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use ipnetwork::IpNetwork;
use serde_json::{Value, json};

use crate::chain::{Attachment, Runtime, find_tool, standard_path};
use crate::error::{Context, Error, Result};
use crate::net::{Host, Netns, Rtnl};
use crate::plugin::Answer;
use crate::probe::{PATIENCE, ping};
use crate::snapshot::Snapshot;

use super::kind::{Kind, Segment};

/// The name of the network.
pub const NETWORK: &str = "segment";

/// The directory of its leases.
const LEASES: &str = "/var/lib/cni/networks/segment";

/// A host, and the plugin that is judged on it.
#[derive(Debug)]
pub struct Site<'a> {
    /// The host.
    pub host: &'a Host,
    /// The plugins.
    pub runtime: &'a Runtime,
    /// The plugin that is judged.
    pub kind: Kind,
}

/// A container, and its attachment.
#[derive(Debug)]
pub struct Container {
    /// Its namespace.
    pub netns: Netns,
    /// The attachment.
    pub attachment: Attachment,
}

impl Site<'_> {
    /// A container that is not attached to anything yet.
    pub fn container(&self, name: &str) -> Result<Container> {
        let netns = self.host.container(name)?;
        let attachment = Attachment::new(&format!("container-{name}"), netns.path());
        Ok(Container { netns, attachment })
    }

    /// The plugin's configuration with addresses of both families.
    pub fn config(&self, extra: &Value) -> Value {
        let mut config = self.flat(&json!({"ipam": ipam(&self.kind.segment)}));
        merge(&mut config, extra);
        config
    }

    /// The plugin's configuration without addresses.
    pub fn flat(&self, extra: &Value) -> Value {
        let mut config = json!({"cniVersion": "1.1.0", "name": NETWORK, "type": self.kind.plugin});
        merge(&mut config, &self.kind.keys);
        merge(&mut config, extra);
        config
    }

    /// Executes the plugin.
    pub fn call(&self, verb: &str, config: &Value, attachment: &Attachment) -> Result<Answer> {
        let call = self.runtime.call(self.kind.plugin, verb, attachment)?;
        call.stdin(config.to_string()).run()
    }

    /// Executes the plugin, which must succeed.
    pub fn good(&self, verb: &str, config: &Value, attachment: &Attachment) -> Result<Answer> {
        let answer = self.call(verb, config, attachment)?;
        if answer.ok() {
            return Ok(answer);
        }
        Err(Error::unexpected(
            format!("{verb} of {config} to work"),
            answer.text(),
        ))
    }

    /// ADD, which must succeed; gives the configuration with the result in it.
    pub fn add(&self, config: &Value, attachment: &Attachment) -> Result<Value> {
        let answer = self.good("ADD", config, attachment)?;
        with_previous(config, &answer)
    }

    /// Executes the plugin, which must fail as the protocol wants; gives message and details.
    pub fn bad(&self, verb: &str, config: &Value, attachment: &Attachment) -> Result<String> {
        let answer = self.call(verb, config, attachment)?;
        match answer.error() {
            Some(error) => Ok(format!("{}; {}", error.msg, error.details)),
            None => Err(Error::unexpected(
                format!("{verb} of {config} to fail"),
                answer.text(),
            )),
        }
    }

    /// The container reaches whoever there is, with both families; the first packets arrive.
    pub fn reaches(&self, container: &Netns) -> Result<()> {
        let to = match self.kind.segment.gateway {
            Some(gateway) => [gateway.v4.to_owned(), gateway.v6.to_owned()],
            None => {
                // A packet to oneself goes over it.
                Rtnl::open(container)?.set_up("lo")?;
                own_addresses(container)?
            }
        };
        for address in to {
            ping(container, parse(&address)?, PATIENCE)?;
        }
        Ok(())
    }

    /// The host is as it was, but for the directory of the leases, and nobody has a lease.
    pub fn is_as_before(&self, before: &Snapshot) -> Result<()> {
        let diff = before.diff(&Snapshot::take(self.host)?);
        let changed: Vec<String> = diff
            .added
            .iter()
            .chain(&diff.removed)
            .map(ToString::to_string)
            .filter(|item| !item.contains("/var/lib/cni/networks"))
            .collect();
        equal("changes on the host", &changed, &Vec::new())?;
        equal("leases", &leases()?, &Vec::new())
    }
}

/// The addresses that are leased.
pub fn leases() -> Result<Vec<String>> {
    let Ok(files) = std::fs::read_dir(LEASES) else {
        return Ok(Vec::new());
    };
    let mut names = Vec::new();
    for file in files {
        let name = file.doing(|| format!("list {LEASES}"))?.file_name();
        let name = name.to_string_lossy().into_owned();
        if name.parse::<IpAddr>().is_ok() {
            names.push(name);
        }
    }
    Ok(names)
}

/// host-local with a range of each family; default routes where there is somebody to go to.
pub fn ipam(segment: &Segment) -> Value {
    let range = |subnet: &str, first: &str, gateway: Option<&str>| {
        let mut range = json!({"subnet": subnet, "rangeStart": first});
        if let Some(gateway) = gateway {
            merge(&mut range, &json!({"gateway": gateway}));
        }
        json!([range])
    };
    let gateway = segment.gateway;
    let mut ipam = json!({"type": "host-local", "ranges": [
        range(segment.v4, segment.first_v4, gateway.map(|g| g.v4)),
        range(segment.v6, segment.first_v6, gateway.map(|g| g.v6)),
    ]});
    if gateway.is_some() {
        merge(
            &mut ipam,
            &json!({"routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}),
        );
    }
    ipam
}

/// The addresses of `eth0`, without link-local ones.
fn own_addresses(container: &Netns) -> Result<[String; 2]> {
    let all = Rtnl::open(container)?.addresses_of("eth0")?;
    let of = |v4: bool| {
        let found = all.iter().map(IpNetwork::ip).find(|ip| match ip {
            IpAddr::V4(_) => v4,
            IpAddr::V6(v6) => !v4 && !v6.is_unicast_link_local(),
        });
        found
            .map(|ip| ip.to_string())
            .ok_or_else(|| Error::Missing {
                what: "an address of each family on eth0".into(),
            })
    };
    Ok([of(true)?, of(false)?])
}

/// A configuration with a result in it.
pub fn with_previous(config: &Value, answer: &Answer) -> Result<Value> {
    let mut config = config.clone();
    merge(&mut config, &json!({"prevResult": result(answer)?}));
    Ok(config)
}

/// The result in an answer.
pub fn result(answer: &Answer) -> Result<Value> {
    answer.json().ok_or_else(|| Error::Missing {
        what: format!("a result in {}", answer.text()),
    })
}

/// Puts keys in, over those that are there.
pub fn merge(into: &mut Value, more: &Value) {
    if let (Some(into), Some(more)) = (into.as_object_mut(), more.as_object()) {
        into.extend(more.clone());
    }
}

/// Reads an address or a network.
pub fn parse<T: std::str::FromStr>(text: &str) -> Result<T>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error| Error::Malformed {
        what: format!("{text}: {error}"),
    })
}

/// Runs `ip` in a namespace, which must work; gives what it printed.
pub fn ip(netns: &Netns, arguments: &str) -> Result<String> {
    let program = find_tool("ip", &standard_path()).ok_or_else(|| Error::Missing {
        what: "ip, of the package iproute2".into(),
    })?;
    let run = || execute(&program, arguments);
    netns.run(run)
}

fn execute(program: &Path, arguments: &str) -> Result<String> {
    let output = Command::new(program)
        .args(arguments.split_whitespace())
        .output()
        .doing(|| format!("run {}", program.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::unexpected(
        format!("ip {arguments} to work"),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

/// A setting of a namespace, by its path below `/proc/sys/net`.
pub fn setting(netns: &Netns, key: &str) -> Result<String> {
    let path = format!("/proc/sys/net/{key}");
    let text = netns.run(|| std::fs::read_to_string(&path).doing(|| format!("read {path}")))?;
    Ok(text.trim().to_owned())
}

/// The names of the links of a namespace besides `lo`.
pub fn links(netns: &Netns) -> Result<Vec<String>> {
    let links = Rtnl::open(netns)?.links()?.into_iter();
    Ok(links
        .map(|link| link.name)
        .filter(|name| name != "lo")
        .collect())
}

/// Fails unless both are equal.
pub fn equal<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::unexpected(
        format!("{what} {expected:?}"),
        format!("{found:?}"),
    ))
}

/// Fails unless it holds.
pub fn holds(what: &str, it: bool) -> Result<()> {
    if it {
        Ok(())
    } else {
        Err(Error::unexpected(what, "the contrary"))
    }
}

/// Fails unless the text has the words in it.
pub fn contains(text: &str, words: &str) -> Result<()> {
    if text.contains(words) {
        Ok(())
    } else {
        Err(Error::unexpected(format!("{words:?} in the text"), text))
    }
}
