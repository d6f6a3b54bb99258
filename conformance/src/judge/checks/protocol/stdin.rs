//! The request on standard input.

use std::fs::File;
use std::process::{Command, Stdio};

use serde_json::json;

use super::{must_not_refuse, must_refuse};
use crate::error::Context;
use crate::judge::attach::refused;
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure};
use crate::plugin::Answer;

const DECODE: &str = "5 \"Error\": code 6, failed to decode content";
const INVALID: &str = "5 \"Error\": code 7, invalid network config; 1: name is required and starts with an alphanumeric character";

macro_rules! refused {
    ($($id:literal $title:literal $clause:expr, $stdin:expr, $codes:expr;)+) => {
        &[$(Check {
            id: concat!("protocol.", $id),
            title: concat!($title, " is refused"),
            clause: $clause,
            versions: Versions::Newest,
            run: |trial| must_refuse(trial, concat!("ADD with ", $title), &trial.ask("ADD").stdin($stdin), $codes).map(drop),
        }),+]
    };
}

/// Requests that are refused.
pub const REFUSED: &[Check] = refused! {
    "empty-request" "an empty request" spec(DECODE), "", &[6];
    "blank-request" "a blank request" spec(DECODE), " \n", &[6];
    "broken-request" "a request that breaks off" spec(DECODE), r#"{"cniVersion":"1.0.0","name":"#, &[6];
    "list-request" "a list instead of an object" spec(DECODE), "[]", &[6];
    "text-request" "a text instead of an object" spec(DECODE), "\"text\"", &[6];
    "two-requests" "a second document" spec(DECODE), r#"{"name":"n"}{"name":"n"}"#, &[6];
    "request-with-a-tail" "text after the document" spec(DECODE), r#"{"name":"n"} x"#, &[6];
    "request-with-bom" "a byte order mark" reference("libcni skel: it is no JSON, and is not ignored, as RFC 8259 (8.1) would allow"), "\u{feff}{\"cniVersion\":\"1.0.0\",\"name\":\"n\"}", &[6];
    "no-name" "a request without a name" spec(INVALID), r#"{"cniVersion":"1.0.0"}"#, &[7];
    "empty-name" "an empty name" spec(INVALID), r#"{"cniVersion":"1.0.0","name":""}"#, &[7];
    "null-request" "null" reference("libcni skel: null is an empty request, which has no name"), "null", &[7];
    "null-name" "a name that is null" reference("libcni skel: null leaves a key unset"), r#"{"cniVersion":"1.0.0","name":null}"#, &[7];
    "name-of-a-wrong-kind" "a name that is a number" spec(DECODE), r#"{"cniVersion":"1.0.0","name":1}"#, &[6, 7];
};

/// The other checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "protocol.bad-names",
        title: "a network name with other characters is refused with code 7",
        clause: spec(INVALID),
        versions: Versions::Newest,
        run: bad_names,
    },
    Check {
        id: "protocol.white-space",
        title: "white space around the document does not matter",
        clause: spec("1: the configuration is JSON"),
        versions: Versions::Newest,
        run: white_space,
    },
    Check {
        id: "protocol.unknown-keys",
        title: "keys that the plugin does not know are ignored",
        clause: spec(
            "1 \"Plugin configuration objects\": plugins may get keys of the runtime's and the operator's own",
        ),
        versions: Versions::Newest,
        run: unknown_keys,
    },
    Check {
        id: "protocol.keys-in-any-case",
        title: "keys are matched without regard to case",
        clause: reference("libcni decodes so, and containerd's keys are capitalised"),
        versions: Versions::Newest,
        run: any_case,
    },
    Check {
        id: "protocol.unreadable-stdin",
        title: "standard input that cannot be read is an error of code 5",
        clause: spec(
            "5 \"Error\": code 5, I/O failure, for instance failed to read network config bytes from stdin",
        ),
        versions: Versions::Newest,
        run: unreadable,
    },
    Check {
        id: "protocol.bad-requests-on-del",
        title: "DEL decodes its request like ADD does",
        clause: spec(DECODE),
        versions: Versions::Newest,
        run: on_del,
    },
];

fn bad_names(trial: &Trial<'_>) -> Verdict {
    for name in ["a b", "_a", "-a", ".a", "a/b", "../a", "é", "a:b"] {
        let config = json!({"cniVersion": trial.version, "name": name, "type": trial.subject.name});
        let ask = trial.ask("ADD").config(&config);
        must_refuse(
            trial,
            &format!("ADD with the network name {name:?}"),
            &ask,
            &[7],
        )?;
    }
    Ok(())
}

fn white_space(trial: &Trial<'_>) -> Verdict {
    let text = format!("\n\t {} \r\n ", trial.config());
    must_not_refuse(
        trial,
        "ADD with white space around",
        &trial.ask("ADD").stdin(text),
        &[6],
    )
}

fn unknown_keys(trial: &Trial<'_>) -> Verdict {
    let mut config = trial.config();
    crate::judge::place::merge(
        &mut config,
        &json!({"x-unknown": {"a": [1, null]}, "com.example": true, "args": {"com.example": {}}}),
    );
    must_not_refuse(
        trial,
        "DEL with unknown keys",
        &trial.ask("DEL").config(&config),
        &[2, 6, 7],
    )
}

fn any_case(trial: &Trial<'_>) -> Verdict {
    let ask = trial
        .ask("ADD")
        .stdin(r#"{"CNIVERSION":"9.9.9","Name":"judged","TYPE":"x"}"#);
    must_refuse(
        trial,
        "ADD with keys in other cases and version 9.9.9",
        &ask,
        &[1],
    )
    .map(drop)
}

fn unreadable(trial: &Trial<'_>) -> Verdict {
    let ask = trial.ask("ADD");
    let directory = File::open("/").doing(|| "open /")?;
    let started = std::time::Instant::now();
    let output = Command::new(ask.program())
        .env_clear()
        .envs(ask.environment().iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::from(directory))
        .output()
        .doing(|| format!("start {}", ask.program().display()))?;
    let answer = Answer {
        status: output.status,
        stdout: output.stdout,
        stderr: output.stderr,
        took: started.elapsed(),
    };
    trial.note(&ask.stdin("(a directory)"), &answer.text());
    let (code, _) = refused("ADD with a directory as standard input", &answer)?;
    ensure(code == 5, || {
        format!("expected code 5, got {}", answer.text())
    })
}

fn on_del(trial: &Trial<'_>) -> Verdict {
    for (stdin, code) in [("", 6), ("[]", 6), ("{}", 7)] {
        let ask = trial.ask("DEL").stdin(stdin);
        must_refuse(trial, &format!("DEL with {stdin:?}"), &ask, &[code])?;
    }
    Ok(())
}
