//! The host on which plugins are tortured, and chains that run on it step by step.

use std::path::{Path, PathBuf};

use conformance::chain::{Attachment, Network, Runtime, Verb, request};
use conformance::lists::nomad_ports;
use conformance::net::{Host, Netns, Rtnl, card_id, card_name, provide_card};
use conformance::plugin::Answer;
use conformance::snapshot::{Item, Leavings, Snapshot};
use conformance::{Error, Result};
use netlink_packet_route::route::RouteProtocol;
use netlink_packet_route::rule::RuleAttribute;
use serde_json::{Value, json};

use crate::lan::Lan;
use crate::lists::{List, type_of};
use crate::reset::reset;
use crate::trace::{Plan, Report};

/// Id of the container that lives all the time.
const NEIGHBOUR: &str = "5d3c0ff3-9a5e-4b1c-8b0a-ffffffffffff";

/// Where the tracer leaves its report.
const REPORT: &str = "/run/sandbox/tmp/report";

/// The card that the container takes which is tortured, and its neighbour's.
const CARD: u8 = 0;
const OTHER_CARD: u8 = 1;

/// What is done to one plugin of a chain.
#[derive(Clone, Debug)]
pub struct Tamper {
    /// The plugin.
    pub plugin: String,
    /// What the tracer does to it.
    pub plan: Plan,
    /// Where its standard output goes instead.
    pub stdout: Option<PathBuf>,
}

impl Tamper {
    /// A plan for a plugin.
    pub fn new(plugin: &str, plan: Plan) -> Self {
        Self {
            plugin: plugin.to_owned(),
            plan,
            stdout: None,
        }
    }
}

/// How a chain went.
#[derive(Debug, Default)]
pub struct Went {
    /// The result of the last plugin of an ADD.
    pub result: Option<Value>,
    /// The plugin that failed, and its answer.
    pub failed: Option<(String, Answer)>,
    /// What the tracer said.
    pub report: Option<Report>,
}

impl Went {
    /// An error unless every plugin succeeded.
    pub fn well(self, what: &str) -> Result<Self> {
        match &self.failed {
            None => Ok(self),
            Some((plugin, answer)) => Err(Error::unexpected(
                format!("{what} to succeed"),
                format!("{plugin} failed: {}", answer.text()),
            )),
        }
    }
}

/// A host, the network on it, and the container that is tortured.
pub struct World {
    /// The network's list.
    pub list: List,
    /// The network.
    pub network: Network,
    /// The host.
    pub host: Host,
    /// The host before anything was done to it.
    fresh: Snapshot,
    /// What a first container that came and went leaves for the next.
    leavings: Vec<Item>,
    /// The container.
    container: Netns,
    inside: Rtnl,
    /// The namespace of another container.
    other: Netns,
    runtime: Runtime,
    tracer: PathBuf,
    serial: u32,
    /// The server and the daemon of a network that needs them; they end with the world.
    _lan: Option<Lan>,
}

impl World {
    /// Furnishes the sandbox.
    pub fn new(list: List, plugins: &Path, tracer: &Path) -> Result<Self> {
        let host = Host::new()?;
        let lan = match list.has_dhcp() {
            true => Some(Lan::start(&host, plugins)?),
            false => None,
        };
        let container = host.container("c1")?;
        let world = Self {
            list,
            network: list.network()?,
            leavings: Vec::new(),
            fresh: Snapshot::take(&host)?,
            inside: Rtnl::open(&container)?,
            other: host.container("neighbour")?,
            host,
            container,
            runtime: Runtime::new(plugins),
            tracer: tracer.to_owned(),
            serial: 0,
            _lan: lan,
        };
        world.provide_cards(&[CARD, OTHER_CARD])?;
        Ok(world)
    }

    fn provide_cards(&self, numbers: &[u8]) -> Result<()> {
        if !self.list.takes_cards() {
            return Ok(());
        }
        let links = self.host.rtnl().links()?;
        for number in numbers {
            if links.iter().all(|link| link.name != card_name(*number)) {
                provide_card(&self.host, *number)?;
            }
        }
        Ok(())
    }

    /// The container that is tortured, in every round with another id and the same port.
    pub fn victim(&mut self) -> Attachment {
        self.serial += 1;
        let id = format!("5d3c0ff3-9a5e-4b1c-8b0a-{:012}", self.serial);
        attachment(&id, self.container.path(), 8080).capability("deviceID", card_id(CARD).into())
    }

    /// The container that lives all the time.
    pub fn neighbour(&self) -> Attachment {
        attachment(NEIGHBOUR, self.other.path(), 9090)
            .capability("deviceID", card_id(OTHER_CARD).into())
    }

    /// Attaches another container, which must not notice anything, and lets the victim come and go
    /// once, so that whatever a first container leaves for the next is there.
    pub fn settle(&mut self) -> Result<Attachment> {
        let mut neighbour = self.neighbour();
        neighbour.result = self
            .add(&neighbour, None)?
            .well("ADD of the neighbour")?
            .result;
        let victim = self.victim();
        self.add(&victim, None)?.well("the first ADD")?;
        self.del(&victim, None)?.well("the first DEL")?;
        Ok(neighbour)
    }

    /// The host as it is.
    pub fn snapshot(&self) -> Result<Snapshot> {
        Snapshot::take(&self.host)
    }

    /// Makes the host fresh again.
    pub fn reset(&mut self) -> Result<()> {
        self.inside.set_down("lo")?;
        self.inside.delete_rules()?;
        self.empty_container()?;
        if self.list.contained {
            empty(&Rtnl::open(&self.other)?)?;
        }
        reset(&self.host, &self.fresh)?;
        self.provide_cards(&[CARD, OTHER_CARD])
    }

    /// Removes what would go with the container's namespace and is out of reach for everybody else. A card that goes is
    /// there again: a real one would not have gone.
    pub fn empty_container(&self) -> Result<()> {
        if self.list.contained {
            empty(&self.inside)?;
        }
        self.provide_cards(&[CARD])
    }

    /// The same attachment as a runtime knows it that has lost everything but its name, and the way to the namespace where
    /// nothing can be found without it.
    pub fn forgotten(&self, victim: &Attachment) -> Attachment {
        let mut left = forgotten(victim);
        if self.list.contained {
            left.netns.clone_from(&victim.netns);
        }
        left
    }

    /// What of the victim is still in its namespace; empty when nothing is. With `lo`, that it is
    /// up counts too, and so do routing rules, which do not go with the interface: without the namespace nobody can
    /// reach them.
    pub fn inside(&self, lo: bool) -> Result<Vec<String>> {
        let links = self.inside.links()?;
        let rules = if lo { self.inside.rules()? } else { Vec::new() };
        let by_kernel = RuleAttribute::Protocol(RouteProtocol::Kernel);
        let rules = rules
            .iter()
            .filter(|rule| !rule.attributes.contains(&by_kernel));
        let left = links
            .into_iter()
            .filter(|link| link.name != "lo" || (lo && link.facts.up));
        Ok(left
            .map(|link| {
                format!(
                    "in the container: link {}, up: {}",
                    link.name, link.facts.up
                )
            })
            .chain(rules.map(|rule| format!("in the container: rule {:?}", rule.attributes)))
            .collect())
    }

    /// What has changed on the host, one line for each thing.
    pub fn changes(&self, since: &Snapshot) -> Result<Vec<String>> {
        let diff = since.diff(&self.snapshot()?);
        Ok(diff.to_string().lines().map(str::to_owned).collect())
    }

    /// What has changed on the host beyond what an attachment may leave for the next.
    pub fn beyond(&self, since: &Snapshot, owners: &[String]) -> Result<Vec<String>> {
        let diff = since.diff(&self.snapshot()?);
        Ok(diff.beyond(&Leavings {
            bridge: self.list.bridge,
            owners,
        }))
    }

    /// Finds out what a first container on a fresh host leaves, when nothing goes wrong.
    pub fn learn_leavings(&mut self) -> Result<()> {
        self.reset()?;
        let victim = self.victim();
        self.add(&victim, None)?.well("the first ADD")?;
        self.del(&victim, None)?.well("the first DEL")?;
        self.leavings = self.fresh.diff(&self.snapshot()?).added;
        self.reset()
    }

    /// What has changed on a host beyond what a first container leaves. The bridge may stay only
    /// with `bridge`, and has another MAC address each time.
    pub fn beyond_leavings(&self, since: &Snapshot, bridge: bool) -> Result<Vec<String>> {
        let diff = since.diff(&self.snapshot()?);
        let may_stay = |item: &Item| match item {
            Item::Link { name, .. } => bridge && name == self.list.bridge,
            other => self.leavings.contains(other) || is_store(other),
        };
        let is_setting = |item: &&Item| matches!(item, Item::Sysctl { .. });
        let gone = diff.removed.iter().filter(|item| !is_setting(item));
        let come = diff.added.iter().filter(|item| !may_stay(item));
        Ok(gone
            .map(|item| format!("- {item}"))
            .chain(come.map(|item| format!("+ {item}")))
            .collect())
    }

    /// ADD along the chain up to a plugin that fails.
    pub fn add(&self, attachment: &Attachment, tamper: Option<&Tamper>) -> Result<Went> {
        let mut went = Went::default();
        for plugin in &self.network.plugins {
            let stdin = request(&self.network, plugin, attachment, went.result.as_ref());
            let answer = self.call(
                Verb::Add,
                plugin,
                attachment,
                &stdin,
                tamper,
                &mut went.report,
            )?;
            if !answer.ok() {
                went.failed = Some((type_of(plugin).to_owned(), answer));
                return Ok(went);
            }
            let result = answer.json().filter(Value::is_object);
            went.result = Some(result.ok_or_else(|| {
                Error::unexpected(
                    "a result of the ADD",
                    format!("{}: {}", type_of(plugin), answer.text()),
                )
            })?);
        }
        Ok(went)
    }

    /// CHECK along the chain.
    pub fn check(&self, attachment: &Attachment) -> Result<Went> {
        self.along(Verb::Check, self.network.plugins.iter(), attachment, None)
    }

    /// DEL along the chain, last plugin first, up to one that fails.
    pub fn del(&self, attachment: &Attachment, tamper: Option<&Tamper>) -> Result<Went> {
        self.along(
            Verb::Del,
            self.network.plugins.iter().rev(),
            attachment,
            tamper,
        )
    }

    fn along<'p>(
        &self,
        verb: Verb,
        plugins: impl Iterator<Item = &'p Value>,
        attachment: &Attachment,
        tamper: Option<&Tamper>,
    ) -> Result<Went> {
        let mut went = Went::default();
        for plugin in plugins {
            let stdin = request(
                &self.network,
                plugin,
                attachment,
                attachment.result.as_ref(),
            );
            let answer = self.call(verb, plugin, attachment, &stdin, tamper, &mut went.report)?;
            if !answer.ok() {
                went.failed = Some((type_of(plugin).to_owned(), answer));
                break;
            }
        }
        Ok(went)
    }

    /// GC along the chain with a list of the attachments that live.
    pub fn gc(&self, valid: &[&Attachment]) -> Result<Went> {
        let mut went = Went::default();
        let list: Vec<Value> = valid
            .iter()
            .map(|one| json!({"containerID": one.container_id, "ifname": one.ifname}))
            .collect();
        for plugin in &self.network.plugins {
            let name = type_of(plugin);
            let mut stdin = plugin.clone();
            if let Some(object) = stdin.as_object_mut() {
                object.insert("name".into(), self.network.name.clone().into());
                object.insert("cniVersion".into(), "1.1.0".into());
                object.insert("cni.dev/valid-attachments".into(), list.clone().into());
            }
            let answer = self
                .runtime
                .bare(name, "GC")?
                .stdin(stdin.to_string())
                .run()?;
            if !answer.ok() {
                went.failed = Some((name.to_owned(), answer));
                break;
            }
        }
        Ok(went)
    }

    /// One plugin of the chain, tampered with if it is the one.
    pub fn call(
        &self,
        verb: Verb,
        plugin: &Value,
        attachment: &Attachment,
        stdin: &Value,
        tamper: Option<&Tamper>,
        report: &mut Option<Report>,
    ) -> Result<Answer> {
        let name = type_of(plugin);
        let call = self
            .runtime
            .call(name, verb.as_str(), attachment)?
            .stdin(stdin.to_string());
        let Some(tamper) = tamper.filter(|tamper| tamper.plugin == name) else {
            return call.run();
        };
        let mut wrapper = vec![
            self.tracer.clone().into(),
            "trace".into(),
            "--report".into(),
            REPORT.into(),
            "--plan".into(),
            tamper.plan.to_string().into(),
        ];
        if let Some(stdout) = &tamper.stdout {
            wrapper.extend(["--stdout".into(), stdout.into()]);
        }
        wrapper.push("--".into());
        let answer = call.under(&wrapper).run()?;
        *report = Some(Report::read(Path::new(REPORT)).map_err(|error| {
            Error::unexpected(
                "a report of the tracer",
                format!("{error}; {}", answer.text()),
            )
        })?);
        Ok(answer)
    }
}

/// Removes every link of a container.
fn empty(inside: &Rtnl) -> Result<()> {
    for link in inside.links()? {
        if link.name != "lo" {
            inside.delete_link(&link.name)?;
        }
    }
    Ok(())
}

/// An attachment that publishes a port.
pub fn attachment(id: &str, netns: &Path, port: u16) -> Attachment {
    Attachment::new(id, netns).capability("portMappings", nomad_ports(port, 80))
}

/// The same attachment as a runtime knows it that has lost everything but its name.
pub fn forgotten(attachment: &Attachment) -> Attachment {
    Attachment {
        netns: PathBuf::new(),
        capabilities: serde_json::Map::new(),
        result: None,
        ..attachment.clone()
    }
}

/// The IPAM plugin's own books: its directory, lock, counter and index.
fn is_store(item: &Item) -> bool {
    match item {
        Item::File { content, .. } => ["counter", "cache"]
            .iter()
            .any(|kind| content.ends_with(kind)),
        _ => false,
    }
}
