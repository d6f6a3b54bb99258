//! STATUS.

use serde_json::json;

use crate::judge::attach::{Attached, good, refused, silent};
use crate::judge::check::{Check, Versions, spec};
use crate::judge::place::merge;
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, skip};

const STATUS: &str = "2 \"STATUS\": the plugin must exit with 0 if it is ready to service ADD requests, and with an error if it is not";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "lifecycle.status",
        title: "STATUS of a plugin that is ready succeeds and prints nothing",
        clause: spec(STATUS),
        versions: Versions::EachFrom("1.1.0"),
        run: ready,
    },
    Check {
        id: "lifecycle.status-changes-nothing",
        title: "STATUS changes nothing",
        clause: spec("2 \"STATUS\": to determine the readiness"),
        versions: Versions::EachFrom("1.1.0"),
        run: changes_nothing,
    },
    Check {
        id: "lifecycle.status-without-ipam",
        title: "STATUS fails when the IPAM plugin is not there",
        clause: spec(STATUS),
        versions: Versions::EachFrom("1.1.0"),
        run: without_ipam,
    },
    Check {
        id: "lifecycle.status-asks-ipam",
        title: "STATUS fails with the code of an IPAM plugin that is not ready",
        clause: spec(
            "4 \"Delegated plugin execution\": for STATUS the plugin must call STATUS of the delegated plugin",
        ),
        versions: Versions::EachFrom("1.1.0"),
        run: asks_ipam,
    },
];

fn can_be_ready(trial: &Trial<'_>) -> Verdict<Attached> {
    let profile = trial.subject.profile();
    if profile.needs_daemon {
        return skip("it needs a daemon beside it");
    }
    if profile.takes_device {
        return skip("ready only beside a device");
    }
    // The stand-ins have to be on the path, the kernel has to have the kind of link.
    trial.attach()
}

fn ready(trial: &Trial<'_>) -> Verdict {
    let _attached = can_be_ready(trial)?;
    let answer = trial.send(&trial.ask_alone("STATUS"))?;
    good("STATUS", &answer)?;
    silent("STATUS", &answer)
}

fn changes_nothing(trial: &Trial<'_>) -> Verdict {
    let _attached = can_be_ready(trial)?;
    let before = trial.snapshot()?;
    trial.send(&trial.ask_alone("STATUS"))?;
    let diff = before.diff(&trial.snapshot()?);
    ensure(diff.is_empty(), || {
        format!("STATUS changed the host: {diff}")
    })
}

fn without_ipam(trial: &Trial<'_>) -> Verdict {
    let _attached = can_be_ready(trial)?;
    if trial.subject.profile().role != Role::Interface {
        return skip("it asks no IPAM plugin");
    }
    let mut config = trial.config();
    merge(&mut config, &json!({"ipam": {"type": "judge-nowhere"}}));
    let answer = trial.send(&trial.ask_alone("STATUS").config(&config))?;
    refused("STATUS with an IPAM plugin that is missing", &answer).map(drop)
}

fn asks_ipam(trial: &Trial<'_>) -> Verdict {
    let _attached = can_be_ready(trial)?;
    if trial.subject.profile().role != Role::Interface {
        return skip("it asks no IPAM plugin");
    }
    trial
        .standins()?
        .tell("", "", "STATUS", r#"{"code":51,"msg":"limited"}"#, 1)?;
    let answer = trial.send(&trial.ask_alone("STATUS"))?;
    let (code, _) = refused("STATUS with an IPAM plugin that is not ready", &answer)?;
    ensure(code == 51, || {
        format!("expected its code 51: {}", answer.text())
    })
}
