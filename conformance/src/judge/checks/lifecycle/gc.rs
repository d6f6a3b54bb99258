//! GC.

use serde_json::{Value, json};

use super::leavings::{Lost, soon_nothing_left};
use crate::judge::attach::{Attached, good, silent};
use crate::judge::check::{Check, Versions, spec};
use crate::judge::place::merge;
use crate::judge::profile::Role;
use crate::judge::trial::{Ask, Trial};
use crate::judge::verdict::{Verdict, ensure, skip};

const GC: &str =
    "2 \"GC\": free resources of attachments that are not in cni.dev/valid-attachments";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "lifecycle.gc",
        title: "GC with an empty list on an empty host succeeds and prints nothing",
        clause: spec("2 \"GC\""),
        versions: Versions::EachFrom("1.1.0"),
        run: |trial| collect(trial, &[], None),
    },
    Check {
        id: "lifecycle.gc-keeps-the-valid",
        title: "GC leaves the attachments of the list alone",
        clause: spec(GC),
        versions: Versions::EachFrom("1.1.0"),
        run: keeps,
    },
    Check {
        id: "lifecycle.gc-frees-the-lost",
        title: "GC frees what is not in the list",
        clause: spec(GC),
        versions: Versions::EachFrom("1.1.0"),
        run: frees,
    },
    Check {
        id: "lifecycle.gc-of-another-network",
        title: "GC of one network leaves another alone",
        clause: spec("2 \"GC\": of the network configuration"),
        versions: Versions::EachFrom("1.1.0"),
        run: another_network,
    },
];

fn ask(trial: &Trial<'_>, valid: &[&Attached], config: Option<&Value>) -> Ask {
    let list: Vec<Value> = valid
        .iter()
        .map(|one| json!({"containerID": one.id, "ifname": one.ifname}))
        .collect();
    let mut config = config.cloned().unwrap_or_else(|| trial.config());
    if trial.subject.profile().role == Role::Interface {
        merge(
            &mut config,
            &json!({"ipam": {"type": crate::judge::standin::IPAM}}),
        );
    }
    let config = crate::judge::place::without(&config, "prevResult");
    let mut config = crate::judge::place::without(&config, "runtimeConfig");
    merge(
        &mut config,
        &json!({"cni.dev/valid-attachments": list, "cni.dev/attachments": list}),
    );
    trial.ask_alone("GC").config(&config)
}

fn collect(trial: &Trial<'_>, valid: &[&Attached], config: Option<&Value>) -> Verdict {
    // The stand-ins have to be on the path.
    trial.standins()?;
    let answer = trial.send(&ask(trial, valid, config))?;
    good("GC", &answer)?;
    silent("GC", &answer)
}

fn keeps(trial: &Trial<'_>) -> Verdict {
    let attached = trial.added()?;
    let before = trial.snapshot()?;
    collect(trial, &[&attached], None)?;
    let diff = before.diff(&trial.snapshot()?);
    ensure(diff.is_empty(), || format!("GC changed the host: {diff}"))?;
    trial.must("CHECK", &attached)
}

fn frees(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role == Role::Unknown {
        return skip("the suite does not know what it makes");
    }
    if trial.subject.profile().takes_device {
        return skip("its device goes with the namespace");
    }
    let chained = trial.subject.profile().role == Role::Chained;
    let mut attached = trial.attach()?;
    let before = trial.snapshot()?;
    trial.add(&mut attached)?;
    if chained {
        // With the namespace would go what stood there before.
        collect(trial, &[], None)?;
        return super::leavings::nothing_left(trial, &before, &attached);
    }
    let lost = Lost::of(attached);
    collect(trial, &[], None)?;
    soon_nothing_left(trial, &before, &lost)
}

fn another_network(trial: &Trial<'_>) -> Verdict {
    let attached = trial.added()?;
    let mut config = trial.config();
    merge(&mut config, &json!({"name": "another"}));
    let before = trial.snapshot()?;
    collect(trial, &[], Some(&config))?;
    let removed = before.diff(&trial.snapshot()?).removed;
    ensure(removed.is_empty(), || {
        format!("GC of another network took {removed:?}")
    })?;
    trial.must("CHECK", &attached)
}
