//! One list from the first ADD to the last DEL, and what is left then.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::chain::{Attachment, Network, Runtime, Verb};
use crate::facts::{addresses, spellings};
use crate::lists::nomad_ports;
use crate::net::{Host, Netns};
use crate::snapshot::{Leavings, Snapshot};
use crate::{Error, Result};
use serde_json::Value;

use super::report::Report;
use super::scenes::Scene;
use super::traffic::{self, CONTAINER_PORT, Container, HOST_PORT};
use super::{iptables, leavings, result};

/// How long the kernel may take to clear a namespace away.
const CLEARING: Duration = Duration::from_secs(10);

/// A list being played on the host of this sandbox.
struct Play<'a> {
    scene: &'a Scene,
    host: &'a Host,
    runtime: Runtime,
    network: Network,
    report: Report,
    /// Container ids and addresses seen so far: nothing may mention them in the end.
    owners: Vec<String>,
    /// Containers made.
    serial: u32,
    /// Results printed.
    seen: u32,
}

/// Circumstances that are not part of a list.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circumstances {
    /// Nomad's admin chain is there before the first container, as Nomad itself makes it.
    pub admin_chain: bool,
}

/// Plays a list on the host of this sandbox; true when every fact held.
///
/// # Errors
/// When the scene itself cannot be set; what a plugin does wrong is a line of the report.
pub fn play(
    scene: &Scene,
    host: &Host,
    plugins: &Path,
    circumstances: Circumstances,
) -> Result<bool> {
    let mut play = Play {
        scene,
        host,
        runtime: Runtime::new(plugins),
        network: Network::parse(scene.list)?,
        report: Report::new(),
        owners: Vec::new(),
        serial: 0,
        seen: 0,
    };
    play.report
        .title(&format!("{}: {}", scene.key, scene.title));
    play.report.aside(scene.list);
    if scene.iptables && !iptables::is_installed() {
        play.report
            .not_applicable("the whole list", iptables::INSTALL);
        return Ok(true);
    }
    if scene.bridge_exists {
        host.rtnl().add_bridge(scene.bridge)?;
        play.report
            .aside(&format!("(bridge {} made beforehand)", scene.bridge));
    }
    if circumstances.admin_chain && scene.iptables {
        iptables::prepare_admin_chain()?;
        play.report.aside("(chain NOMAD-ADMIN made beforehand)");
    }
    play.all_cycles()?;
    Ok(play.report.all_well())
}

impl Play<'_> {
    fn all_cycles(&mut self) -> Result<()> {
        let fresh = Snapshot::take(self.host)?;
        self.cycle("first containers on a fresh host")?;
        let settled = Snapshot::take(self.host)?;
        self.judge_first(&fresh, &settled);

        let before = if self.scene.iptables {
            iptables::forward_policy_drop()?;
            Snapshot::take(self.host)?
        } else {
            settled
        };
        self.cycle(if self.scene.iptables {
            "the same again with FORWARD policy DROP"
        } else {
            "the same again"
        })?;
        let again = Snapshot::take(self.host)?;
        self.judge_later("nothing at all has changed on the host", &before, &again);

        self.crash()?;
        let after = Snapshot::take(self.host)?;
        self.judge_later("nothing of the lost container is left", &again, &after);
        Ok(())
    }

    /// ADD of two containers, traffic, CHECK, DEL.
    fn cycle(&mut self, title: &str) -> Result<()> {
        self.report.section(title);
        let (one_netns, mut one) = self.container(self.scene.publishes)?;
        let (two_netns, mut two) = self.container(false)?;
        let added = self.add(&mut one, "ADD of c1") & self.add(&mut two, "ADD of c2");
        if added {
            self.look_at_result(&one, &one_netns);
            let container = |name, netns, attachment: &Attachment| Container {
                name,
                netns,
                addresses: attachment
                    .result
                    .as_ref()
                    .map(addresses)
                    .unwrap_or_default(),
            };
            let (c1, c2) = (
                container("c1", &one_netns, &one),
                container("c2", &two_netns, &two),
            );
            traffic::show(&mut self.report, self.scene, self.host, &c1, &c2);
            self.check(&one);
        }
        self.del("DEL of c1", &one);
        self.del("DEL of c2", &two);
        self.del("DEL of c1 again, with nothing left to find", &one);
        Ok(())
    }

    /// A container that is lost: its namespace and the runtime's memory of it are gone.
    fn crash(&mut self) -> Result<()> {
        self.report.section("a container that is lost in a crash");
        let (netns, mut one) = self.container(self.scene.publishes)?;
        self.add(&mut one, "ADD of c1");
        drop(netns);
        self.host
            .rtnl()
            .wait_without_ports(self.scene.bridge, CLEARING)?;
        one.netns = PathBuf::new();
        one.result = None;
        self.del("DEL without namespace and without result", &one);
        Ok(())
    }

    /// A new container, not attached yet.
    fn container(&mut self, publishes: bool) -> Result<(Netns, Attachment)> {
        self.serial += 1;
        let netns = self.host.container(&format!("c{}", self.serial))?;
        let id = format!("5d3c0ff3-9a5e-4b1c-8b0a-{:012}", self.serial);
        let mut attachment = Attachment::new(&id, netns.path());
        if publishes {
            let ports = nomad_ports(HOST_PORT, CONTAINER_PORT);
            attachment = attachment.capability("portMappings", ports);
        }
        self.owners.push(id);
        Ok((netns, attachment))
    }

    fn add(&mut self, attachment: &mut Attachment, name: &str) -> bool {
        let started = Instant::now();
        let result = self.runtime.add(&self.network, attachment);
        let took = started.elapsed();
        let text = result.as_ref().map(|result| self.result_text(result)).ok();
        let first = result.as_ref().map(|result| summary(result, took)).ok();
        let ok = self
            .report
            .fact(name, result.map(|_| first.unwrap_or_default()));
        self.report.aside(&text.unwrap_or_default());
        ok
    }

    /// The first result in full, the others in one line; and their addresses are remembered.
    fn result_text(&mut self, result: &Value) -> String {
        let full = self.serial <= 2 && self.seen == 0;
        self.seen += 1;
        let seen = addresses(result).into_iter().map(|one| one.address.ip());
        self.owners.extend(seen.flat_map(spellings));
        if full {
            format!("{result:#}")
        } else {
            result.to_string()
        }
    }

    /// The result against the kernel: a task driver builds on it without asking.
    fn look_at_result(&mut self, attachment: &Attachment, netns: &Netns) {
        let Some(result) = &attachment.result else {
            return;
        };
        if self.network.version.starts_with("0.2") {
            let outcome = result::early_shape(result);
            self.report
                .fact("the result has the true shape of version 0.2.0", outcome);
        } else {
            let outcome = result::complete(result, attachment, netns);
            self.report
                .fact("the result says all a task driver needs", outcome);
        }
    }

    fn check(&mut self, attachment: &Attachment) {
        if self.network.has(Verb::Check) {
            let outcome = self.runtime.check(&self.network, attachment);
            self.report
                .fact("CHECK", outcome.map(|()| "as promised".into()));
        } else {
            let reason = format!("version {} has no CHECK", self.network.version);
            self.report.not_applicable("CHECK", &reason);
        }
    }

    fn del(&mut self, name: &str, attachment: &Attachment) {
        let started = Instant::now();
        let outcome = self.runtime.del(&self.network, attachment);
        let took = started.elapsed();
        self.report.fact(name, outcome.map(|()| milliseconds(took)));
    }

    fn judge_first(&mut self, fresh: &Snapshot, settled: &Snapshot) {
        let diff = fresh.diff(settled);
        let leavings = Leavings {
            bridge: self.scene.bridge,
            owners: &self.owners,
        };
        let beyond = diff.beyond(&leavings);
        let outcome = if beyond.is_empty() {
            Ok(format!("{} things, none of a container", diff.added.len()))
        } else {
            Err(Error::unexpected(
                "nothing of a container",
                format!("\n{}", beyond.join("\n")),
            ))
        };
        self.report
            .fact("only what the next container uses has stayed", outcome);
        self.report.aside(&leavings::describe(&diff));
    }

    fn judge_later(&mut self, name: &str, before: &Snapshot, after: &Snapshot) {
        let diff = before.diff(after);
        let outcome = if diff.is_empty() {
            Ok("links, addresses, routes, rules, leases, files".into())
        } else {
            Err(Error::unexpected(
                "the same host as before",
                format!("\n{diff}"),
            ))
        };
        self.report.fact(name, outcome);
    }
}

fn summary(result: &Value, took: Duration) -> String {
    let seen: Vec<String> = addresses(result)
        .iter()
        .map(|one| one.address.to_string())
        .collect();
    format!("{} in {}", seen.join(" "), milliseconds(took))
}

fn milliseconds(took: Duration) -> String {
    format!("{:.1} ms", took.as_secs_f64() * 1000.0)
}
