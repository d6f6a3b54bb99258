//! The variables: which are required, and what is said when they are missing.

use super::{must_not_refuse, must_refuse};
use crate::judge::attach::{good, silent};
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure};

const PARAMETERS: &str = "2 \"Parameters\" and 5 \"Error\": code 4 for invalid necessary environment variables, whose names the message contains";

macro_rules! missing {
    ($($id:literal $verb:literal $variable:literal $from:literal;)+) => {
        &[$(Check {
            id: concat!("protocol.", $id),
            title: concat!($verb, " without ", $variable, " is refused with code 4, and the message names the variable"),
            clause: spec(PARAMETERS),
            versions: Versions::NewestFrom($from),
            run: |trial| without(trial, $verb, $variable),
        }),+]
    };
}

/// A variable is missing.
pub const MISSING: &[Check] = missing! {
    "add-without-container-id" "ADD" "CNI_CONTAINERID" "0.1.0";
    "add-without-netns" "ADD" "CNI_NETNS" "0.1.0";
    "add-without-ifname" "ADD" "CNI_IFNAME" "0.1.0";
    "del-without-container-id" "DEL" "CNI_CONTAINERID" "0.1.0";
    "del-without-ifname" "DEL" "CNI_IFNAME" "0.1.0";
    "check-without-container-id" "CHECK" "CNI_CONTAINERID" "0.4.0";
    "check-without-netns" "CHECK" "CNI_NETNS" "0.4.0";
    "check-without-ifname" "CHECK" "CNI_IFNAME" "0.4.0";
};

/// The other checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "protocol.an-empty-variable-is-missing",
        title: "a required variable that is set to nothing counts as missing",
        clause: spec(PARAMETERS),
        versions: Versions::Newest,
        run: empty_variable,
    },
    Check {
        id: "protocol.all-missing-in-one-error",
        title: "all missing variables are named in one error",
        clause: reference("libcni skel: missing variables are collected"),
        versions: Versions::Newest,
        run: all_missing,
    },
    Check {
        id: "protocol.path-is-required",
        title: "ADD, DEL and CHECK without CNI_PATH are refused with code 4",
        clause: reference(
            "libcni skel: CNI_PATH is required, though the specification calls it optional",
        ),
        versions: Versions::Newest,
        run: path_required,
    },
    Check {
        id: "protocol.unknown-command",
        title: "a command that does not exist is refused with code 4 and named",
        clause: spec("5 \"Error\": code 4, for instance CNI_COMMAND"),
        versions: Versions::Newest,
        run: unknown_command,
    },
    Check {
        id: "protocol.commands-are-upper-case",
        title: "\"add\" is not ADD",
        clause: spec("2 \"Parameters\": CNI_COMMAND is ADD, DEL, CHECK, GC, STATUS or VERSION"),
        versions: Versions::Newest,
        run: lower_case,
    },
    Check {
        id: "protocol.about",
        title: "without a command the plugin says on standard error what it is and which versions it supports",
        clause: reference(
            "libcni skel: two lines on standard error, exit code 0; Nomad and nerdctl read them",
        ),
        versions: Versions::Newest,
        run: about,
    },
    Check {
        id: "protocol.gc-and-status-name-no-attachment",
        title: "GC and STATUS do not look at the variables of an attachment",
        clause: spec("2 \"GC\" and \"STATUS\": only CNI_COMMAND and CNI_PATH"),
        versions: Versions::NewestFrom("1.1.0"),
        run: no_attachment,
    },
];

fn without(trial: &Trial<'_>, verb: &str, variable: &str) -> Verdict {
    let what = format!("{verb} without {variable}");
    let text = must_refuse(trial, &what, &trial.ask(verb).unset(variable), &[4])?;
    ensure(text.contains(variable), || {
        format!("{what}: the error does not name it: {text}")
    })
}

fn empty_variable(trial: &Trial<'_>) -> Verdict {
    for variable in ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME"] {
        let ask = trial.ask("ADD").set(variable, "");
        must_refuse(trial, &format!("ADD with an empty {variable}"), &ask, &[4])?;
    }
    Ok(())
}

fn all_missing(trial: &Trial<'_>) -> Verdict {
    for (verb, list) in [
        ("ADD", "[CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH]"),
        ("DEL", "[CNI_CONTAINERID,CNI_IFNAME,CNI_PATH]"),
    ] {
        let ask = trial.ask(verb).unset("CNI_CONTAINERID").unset("CNI_NETNS");
        let ask = ask.unset("CNI_IFNAME").unset("CNI_PATH");
        let what = format!("{verb} without any variable");
        let text = must_refuse(trial, &what, &ask, &[4])?;
        ensure(text.contains(list), || {
            format!("{what}: expected {list} in {text}")
        })?;
    }
    Ok(())
}

fn path_required(trial: &Trial<'_>) -> Verdict {
    for verb in ["ADD", "DEL", "CHECK"] {
        if verb != "CHECK" || trial.at_least("0.4.0") {
            without(trial, verb, "CNI_PATH")?;
        }
    }
    Ok(())
}

fn unknown_command(trial: &Trial<'_>) -> Verdict {
    let text = must_refuse(trial, "the command NONSENSE", &trial.ask("NONSENSE"), &[4])?;
    ensure(
        text.contains("NONSENSE") || text.contains("CNI_COMMAND"),
        || format!("the error names neither the command nor its variable: {text}"),
    )
}

fn lower_case(trial: &Trial<'_>) -> Verdict {
    must_refuse(trial, "the command add", &trial.ask("add"), &[4]).map(drop)
}

fn about(trial: &Trial<'_>) -> Verdict {
    let answer = trial.send(&trial.ask("").unset("CNI_COMMAND").stdin("never read"))?;
    good("no command", &answer)?;
    silent("no command", &answer)?;
    let said = String::from_utf8_lossy(&answer.stderr).into_owned();
    let mut lines = said.lines();
    let first = lines.next().unwrap_or_default();
    let second = lines.next().unwrap_or_default();
    let name = format!("CNI {} plugin ", trial.subject.name);
    ensure(first.starts_with(&name), || {
        format!("expected {name:?} on standard error, got {said:?}")
    })?;
    let listed = second.strip_prefix("CNI protocol versions supported: ");
    ensure(
        listed.is_some_and(|list| list.contains(&trial.version)),
        || format!("expected a second line with the versions, got {said:?}"),
    )
}

fn no_attachment(trial: &Trial<'_>) -> Verdict {
    for verb in ["GC", "STATUS"] {
        let ask = trial.ask_alone(verb).set("CNI_CONTAINERID", "bad/id");
        must_not_refuse(
            trial,
            &format!("{verb} with a bad container id"),
            &ask,
            &[4],
        )?;
        let ask = trial.ask_alone(verb);
        must_not_refuse(trial, &format!("{verb} without an attachment"), &ask, &[4])?;
    }
    Ok(())
}
