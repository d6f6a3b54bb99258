//! What stays behind.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::judge::attach::{Attached, refused};
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::place::{Addresses, merge};
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, fault, skip};
use crate::probe::PATIENCE;
use crate::snapshot::{Leavings, Snapshot};

const CLEAN: &str = "2 \"DEL\": undo any modifications applied in the plugin's ADD";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "lifecycle.del-leaves-nothing",
        title: "after DEL nothing of the container is left on the host",
        clause: spec(CLEAN),
        versions: Versions::Newest,
        run: |trial| {
            let mut attached = trial.attach()?;
            let before = trial.snapshot()?;
            trial.add(&mut attached)?;
            trial.must("DEL", &attached)?;
            nothing_left(trial, &before, &attached)
        },
    },
    Check {
        id: "lifecycle.late-del-leaves-nothing",
        title: "after a DEL that comes when the namespace is gone, neither",
        clause: spec(CLEAN),
        versions: Versions::Newest,
        run: late,
    },
    Check {
        id: "lifecycle.failed-add-leaves-nothing",
        title: "an ADD that fails because IPAM does leaves nothing in the container or on the host",
        clause: reference("a runtime may try again without a DEL, as Nomad does"),
        versions: Versions::Newest,
        run: failed_add,
    },
    Check {
        id: "lifecycle.refused-add-leaves-nothing",
        title: "an ADD that is refused for its configuration leaves nothing",
        clause: reference("a runtime may try again without a DEL, as Nomad does"),
        versions: Versions::Newest,
        run: refused_add,
    },
];

/// The host is as it was, but for what the next container will use, too.
pub fn nothing_left(trial: &Trial<'_>, before: &Snapshot, attached: &Attached) -> Verdict {
    none(left(trial, before, &attached.id, &attached.addresses)?)
}

fn none(left: Vec<String>) -> Verdict {
    ensure(left.is_empty(), || {
        format!("left behind: {}", left.join("; "))
    })
}

fn left(
    trial: &Trial<'_>,
    before: &Snapshot,
    id: &str,
    addresses: &Addresses,
) -> Verdict<Vec<String>> {
    let bridge = trial.place.bridge();
    let address = addresses.v4.split('/').next().unwrap_or_default();
    let mut owners = vec![id.to_owned()];
    if let Ok(ip) = address.parse() {
        owners.extend(crate::facts::spellings(ip));
    }
    let after = trial.snapshot()?;
    let mut left = before.diff(&after).beyond(&Leavings {
        bridge: &bridge,
        owners: &owners,
    });
    // Settings of an interface that the plugin did not make go with it, when its maker takes it away.
    left.retain(|item| !item.contains(&format!("sysctl net/ipv4/conf/jv{}x", trial.place.number)));
    Ok(left)
}

fn late(trial: &Trial<'_>) -> Verdict {
    let profile = trial.subject.profile();
    if profile.takes_device || profile.role == Role::Chained {
        return skip("what it worked on goes with the namespace");
    }
    let mut attached = trial.attach()?;
    let before = trial.snapshot()?;
    trial.add(&mut attached)?;
    let ask = trial.ask_for("DEL", &attached);
    let lost = Lost::of(attached);
    let answer = trial.send(&ask)?;
    crate::judge::attach::good("DEL", &answer)?;
    soon_nothing_left(trial, &before, &lost)
}

/// What is known of a container whose namespace is gone.
#[derive(Debug)]
pub struct Lost {
    id: String,
    addresses: Addresses,
}

impl Lost {
    /// Lets go of the namespace.
    pub fn of(attached: Attached) -> Self {
        Self {
            id: attached.id,
            addresses: attached.addresses,
        }
    }
}

/// The kernel takes a namespace apart on its own time, and what stood in it; until then this looks again.
pub fn soon_nothing_left(trial: &Trial<'_>, before: &Snapshot, lost: &Lost) -> Verdict {
    let end = Instant::now() + PATIENCE;
    loop {
        let mut left = left(trial, before, &lost.id, &lost.addresses)?;
        // The pair that the judge made before the snapshot goes with the namespace, sooner or later.
        let own = format!("jv{}x", trial.place.number);
        left.retain(|item| !(item.starts_with("- ") && item.contains(&own)));
        if left.is_empty() || Instant::now() > end {
            return none(left);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn failed_add(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role != Role::Interface {
        return skip("it asks no IPAM plugin");
    }
    let attached = trial.attach()?;
    let error = r#"{"code":11,"msg":"no address","details":"try later"}"#;
    trial
        .standins()?
        .tell(&attached.id, &attached.ifname, "ADD", error, 1)?;
    let before = trial.snapshot()?;
    refused(
        "ADD with an IPAM plugin that fails",
        &trial.try_to("ADD", &attached)?,
    )?;
    ensure(!trial.interface_is_there(&attached)?, || {
        format!("{} stayed in the container", attached.ifname)
    })?;
    nothing_left(trial, &before, &attached)
}

fn refused_add(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach()?;
    if trial.subject.profile().role == Role::Unknown {
        return skip("the suite does not know what it refuses");
    }
    // A prevResult and a name of the wrong kind are refused by everybody.
    merge(&mut attached.config, &json!({"prevResult": [], "ipam": 5}));
    let before = trial.snapshot()?;
    let answer = trial.try_to("ADD", &attached)?;
    if answer.ok() {
        return fault(format!(
            "a prevResult that is a list was taken: {}",
            answer.text()
        ));
    }
    nothing_left(trial, &before, &attached)
}
