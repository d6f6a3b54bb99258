//! Namespaces that are none, or the host's.

use std::path::PathBuf;

use crate::judge::attach::refused;
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::profile::Role;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, skip};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "lifecycle.missing-namespace",
        title: "ADD into a namespace that is missing is an error, and leaves nothing",
        clause: spec(
            "2 \"ADD\": create the interface in the isolation domain at CNI_NETNS, or return an error",
        ),
        versions: Versions::Newest,
        run: |trial| no_namespace(trial, "/run/netns/missing"),
    },
    Check {
        id: "lifecycle.no-namespace",
        title: "ADD into a path that is no namespace is an error, and leaves nothing",
        clause: spec(
            "2 \"ADD\": create the interface in the isolation domain at CNI_NETNS, or return an error",
        ),
        versions: Versions::Newest,
        run: |trial| no_namespace(trial, "/tmp"),
    },
    Check {
        id: "lifecycle.own-namespace",
        title: "ADD into the plugin's own namespace is refused, with one error object",
        clause: reference(
            "libcni skel: the plugin's namespace and CNI_NETNS must not be the same; one JSON document on standard output",
        ),
        versions: Versions::Newest,
        run: own_namespace,
    },
];

/// The code of a namespace that cannot be worked in.
const INVALID_NAMESPACE: u64 = 8;

fn no_namespace(trial: &Trial<'_>, path: &str) -> Verdict {
    if !matches!(
        trial.subject.profile().role,
        Role::Interface | Role::Loopback
    ) {
        return skip("it makes no interface");
    }
    let mut attached = trial.attach()?;
    attached.path = PathBuf::from(path);
    let before = trial.snapshot()?;
    refused(
        &format!("ADD into {path}"),
        &trial.try_to("ADD", &attached)?,
    )?;
    super::leavings::nothing_left(trial, &before, &attached)
}

fn own_namespace(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach()?;
    attached.path = "/proc/self/ns/net".into();
    let answer = trial.try_to("ADD", &attached)?;
    let (code, _) = refused("ADD into the plugin's own namespace", &answer)?;
    // Some fail for another reason: they find no interface of that name there.
    ensure(code == INVALID_NAMESPACE, || {
        format!(
            "expected code {INVALID_NAMESPACE}, which says why: {}",
            answer.text()
        )
    })
}
