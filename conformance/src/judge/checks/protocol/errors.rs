//! The error object, exit codes, and what goes where.

use serde_json::Value;

use crate::judge::attach::refused;
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::trial::{Ask, Trial};
use crate::judge::verdict::{Verdict, ensure, fault};
use crate::plugin::Answer;

const ERROR: &str = "5 \"Error\": an object with cniVersion, code, msg, details on standard output";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "protocol.error-object",
        title: "an error is one object with a numeric code and a text msg on standard output",
        clause: spec(ERROR),
        versions: Versions::Newest,
        run: |trial| each(trial, object),
    },
    Check {
        id: "protocol.error-details",
        title: "details, if there are any, are a text",
        clause: spec(ERROR),
        versions: Versions::Newest,
        run: |trial| each(trial, details),
    },
    Check {
        id: "protocol.error-version",
        title: "cniVersion in an error, if it is there, is a version",
        clause: spec(ERROR),
        versions: Versions::Newest,
        run: |trial| each(trial, version),
    },
    Check {
        id: "protocol.error-exit-code",
        title: "a failure is told by an exit code other than 0",
        clause: spec("2: exit code 0 on success, non-zero on failure"),
        versions: Versions::Newest,
        run: |trial| each(trial, exit_code),
    },
    Check {
        id: "protocol.error-exit-code-1",
        title: "that code is 1",
        clause: reference("libcni skel: every error ends with exit code 1"),
        versions: Versions::Newest,
        run: |trial| each(trial, exit_code_1),
    },
    Check {
        id: "protocol.error-code-is-not-0",
        title: "the code of an error is not 0",
        clause: spec("5 \"Error\": codes are 1 to 99 for the specification, from 100 for plugins"),
        versions: Versions::Newest,
        run: |trial| each(trial, code),
    },
];

/// Calls that every plugin refuses.
fn refusals(trial: &Trial<'_>) -> Vec<Ask> {
    vec![
        trial.ask("ADD").unset("CNI_CONTAINERID"),
        trial.ask("DEL").set("CNI_IFNAME", "a/b"),
        trial.ask("ADD").stdin("no JSON"),
        trial.ask("ADD").stdin("{}"),
        trial
            .ask("ADD")
            .stdin(r#"{"cniVersion":"9.9.9","name":"judged","type":"x"}"#),
        trial.ask("NONSENSE"),
    ]
}

fn each(trial: &Trial<'_>, judge: fn(&Answer) -> Verdict) -> Verdict {
    refusals(trial)
        .iter()
        .try_for_each(|ask| trial.send(ask).and_then(|answer| judge(&answer)))
}

fn object(answer: &Answer) -> Verdict {
    refused("a bad call", answer)?;
    let msg = answer
        .json()
        .and_then(|object| Some(!object.get("msg")?.as_str()?.is_empty()));
    ensure(msg == Some(true), || format!("no msg: {}", answer.text()))
}

fn details(answer: &Answer) -> Verdict {
    match answer.json() {
        Some(object) => ensure(object.get("details").is_none_or(Value::is_string), || {
            format!("details are no text: {}", answer.text())
        }),
        None => fault(format!("no error object: {}", answer.text())),
    }
}

fn version(answer: &Answer) -> Verdict {
    match answer.json() {
        Some(object) => ensure(
            object.get("cniVersion").is_none_or(Value::is_string),
            || format!("cniVersion is no text: {}", answer.text()),
        ),
        None => fault(format!("no error object: {}", answer.text())),
    }
}

fn exit_code(answer: &Answer) -> Verdict {
    ensure(answer.status.code().is_some_and(|code| code != 0), || {
        format!(
            "a bad call ended as success or by a signal: {}",
            answer.text()
        )
    })
}

fn exit_code_1(answer: &Answer) -> Verdict {
    ensure(answer.status.code() == Some(1), || answer.text())
}

fn code(answer: &Answer) -> Verdict {
    let (code, _) = refused("a bad call", answer)?;
    ensure(code != 0, || format!("code 0: {}", answer.text()))
}
