//! The commands of the protocol, and putting rules back.

use cni_types::version::LaterCommand;
use cni_types::{NetworkList, SpecVersion, json};
use conformance::libcni::{Cni, Reapplied, RuntimeConf};
use serde_json::{Value, json};

use crate::Error;
use crate::cli::{Cli, Target};
use crate::output::{self, Hinted, Verdict, say};
use crate::settings::{attachment, configuration, recall, runtime};

pub fn add(cli: &Cli, target: &Target) -> Result<Verdict, Error> {
    let list = configuration(&target.network)?;
    let rt = attachment(cli, target)?;
    warn_of_unused(&list, &rt);
    let result = runtime(cli).add(&list, &rt)?.unwrap_or_default();
    output::text(&(json::to_pretty(&result) + "\n"))?;
    Ok(Verdict::Fine)
}

pub fn check(cli: &Cli, target: &Target) -> Result<Verdict, Error> {
    let cni = runtime(cli);
    let list = configuration(&target.network)?;
    let mut rt = attachment(cli, target)?;
    recall(&cni, &list.name, &mut rt)?;
    cni.check(&list, &rt).map_err(|error| -> Error {
        if error.cni().is_none() {
            return error.into();
        }
        let hint = format!(
            "cnitool reapply {} puts back what a reload of the packet filter took",
            list.name
        );
        Hinted {
            source: error,
            hint,
        }
        .into()
    })?;
    output::done(cli)
}

pub fn del(cli: &Cli, target: &Target) -> Result<Verdict, Error> {
    let cni = runtime(cli);
    let loaded = configuration(&target.network);
    let mut rt = attachment(cli, target)?;
    let remembered = recall(&cni, &target.network, &mut rt)?;
    // A configuration that has gone or broken since must not keep an attachment alive.
    let list = loaded.or_else(|error| remembered.ok_or(error))?;
    cni.del(&list, &rt)?;
    output::done(cli)
}

pub fn gc(cli: &Cli, network: &str, all: bool) -> Result<Verdict, Error> {
    let cni = runtime(cli);
    let list = match configuration(network) {
        Ok(list) => list,
        Err(error) => remembered(&cni, network, &error.to_string())?,
    };
    let valid = if all {
        Vec::new()
    } else {
        cni.live_attachments(&list)?
    };
    cni.gc(&list, &valid)?;
    output::done(cli)
}

/// What is left of a network whose configuration has gone is freed with the one that an attachment was made with.
fn remembered(cni: &Cni, network: &str, why: &str) -> Result<NetworkList, Error> {
    let attachments = cni.cache().attachments()?;
    let mut of_network = attachments
        .iter()
        .filter(|cached| cached.network == network);
    match of_network.find_map(|cached| cached.list()) {
        Some(list) => {
            say(&format!(
                "{why}; going on with the configuration of an attachment in the cache"
            ));
            Ok(list)
        }
        None => Err(format!(
            "{why}; no attachment in the cache remembers its configuration either: put the file back for the time of the gc"
        )
        .into()),
    }
}

pub fn reapply(cli: &Cli, network: Option<&str>) -> Result<Verdict, Error> {
    let reapplied = runtime(cli).reapply(network)?;
    if cli.json {
        let passed: Vec<Value> = reapplied
            .skipped
            .iter()
            .map(|one| {
                json!({"network": one.network, "containerID": one.container_id, "ifname": one.ifname, "why": one.why})
            })
            .collect();
        output::json(&json!({"ok": true, "putBack": reapplied.done, "passedOver": passed}))?;
    } else {
        output::text(&counts(&reapplied))?;
    }
    Ok(Verdict::Fine)
}

fn counts(reapplied: &Reapplied) -> String {
    let plural = if reapplied.done == 1 { "" } else { "s" };
    let mut text = format!(
        "{} attachment{plural} put back, {} passed over\n",
        reapplied.done,
        reapplied.skipped.len()
    );
    for one in &reapplied.skipped {
        text += &format!(
            "passed over: {} {} of network {}: {}\n",
            one.container_id, one.ifname, one.network, one.why
        );
    }
    text
}

pub fn status(cli: &Cli, network: &str) -> Result<Verdict, Error> {
    let list = configuration(network)?;
    let since = LaterCommand::Status.since();
    let knows = SpecVersion::of_config(&list.cni_version).is_ok_and(|version| version >= since);
    if !knows {
        say(&format!(
            "no plugin was asked: network {:?} has cniVersion {:?}, and STATUS came with {since}; raise it, or ask cnitool doctor",
            list.name, list.cni_version
        ));
    }
    runtime(cli).status(&list)?;
    output::done(cli)
}

/// Capability arguments go to the plugins that name them among their `capabilities`; those that nobody names would be
/// lost without a word.
fn warn_of_unused(list: &NetworkList, rt: &RuntimeConf) {
    for name in rt.capability_args.keys() {
        let mut takers = list.plugins.iter().flat_map(|plugin| plugin.capabilities());
        if !takers.any(|taken| taken == name) {
            say(&format!(
                "no plugin of network {:?} takes {name:?} of CAP_ARGS: none has it in \"capabilities\"",
                list.name
            ));
        }
    }
}
