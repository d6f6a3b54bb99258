//! Which of several faults is reported.

use super::{must_not_refuse, must_refuse};
use crate::judge::check::{Check, Versions, reference};
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure};

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "protocol.invalid-before-missing",
        title: "an invalid container id is reported before other variables that are missing",
        clause: reference("libcni skel: variables are validated in their order"),
        versions: Versions::Newest,
        run: invalid_first,
    },
    Check {
        id: "protocol.environment-before-stdin",
        title: "missing variables are reported before a request that is no JSON",
        clause: reference("libcni skel: standard input is read when the environment is good"),
        versions: Versions::Newest,
        run: environment_first,
    },
    Check {
        id: "protocol.name-before-version",
        title: "a missing network name is reported before a version that is not supported",
        clause: reference("libcni skel: the name is validated before the command is dispatched"),
        versions: Versions::Newest,
        run: name_first,
    },
    Check {
        id: "protocol.request-before-command",
        title: "a bad request is reported before an unknown command",
        clause: reference("libcni skel: the request is validated for every command but VERSION"),
        versions: Versions::Newest,
        run: request_first,
    },
    Check {
        id: "protocol.version-before-work",
        title: "a version that is not supported is reported before a namespace that is missing",
        clause: reference("libcni skel: the version is compared before the plugin is asked"),
        versions: Versions::Newest,
        run: version_first,
    },
];

fn invalid_first(trial: &Trial<'_>) -> Verdict {
    let ask = trial.ask("ADD").set("CNI_CONTAINERID", "bad/id");
    let ask = ask.unset("CNI_NETNS").unset("CNI_IFNAME").unset("CNI_PATH");
    let text = must_refuse(trial, "ADD with a bad id and nothing else", &ask, &[4])?;
    ensure(text.contains("bad/id"), || {
        format!("the error does not name the id: {text}")
    })
}

fn environment_first(trial: &Trial<'_>) -> Verdict {
    for verb in ["ADD", "DEL"] {
        let ask = trial.ask(verb).unset("CNI_CONTAINERID").stdin("no JSON");
        must_refuse(
            trial,
            &format!("{verb} without an id and with bad input"),
            &ask,
            &[4],
        )?;
    }
    Ok(())
}

fn name_first(trial: &Trial<'_>) -> Verdict {
    let ask = trial.ask("ADD").stdin(r#"{"cniVersion":"9.9.9"}"#);
    must_refuse(trial, "ADD without a name and in version 9.9.9", &ask, &[7]).map(drop)
}

fn request_first(trial: &Trial<'_>) -> Verdict {
    for (stdin, code) in [("", 6), ("{}", 7)] {
        let ask = trial.ask("NONSENSE").stdin(stdin);
        must_refuse(
            trial,
            &format!("an unknown command with {stdin:?}"),
            &ask,
            &[code],
        )?;
    }
    Ok(())
}

fn version_first(trial: &Trial<'_>) -> Verdict {
    let ask = trial.ask("ADD").config(&serde_json::json!({
        "cniVersion": "9.9.9", "name": "judged", "type": trial.subject.name}));
    must_refuse(
        trial,
        "ADD in version 9.9.9 with a missing namespace",
        &ask,
        &[1],
    )?;
    must_not_refuse(
        trial,
        "ADD in a version that it supports",
        &trial.ask("ADD"),
        &[1],
    )
}
