//! The command VERSION.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::Context;
use crate::judge::attach::good;
use crate::judge::check::{Check, VERSIONS, Versions, reference, spec};
use crate::judge::trial::{Ask, Trial};
use crate::judge::verdict::{Verdict, ensure, fault};

const COMMAND: &str = "2 \"VERSION\"";

/// How long a plugin may take that has nothing to wait for.
const SOON: Duration = Duration::from_secs(10);

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "protocol.version-answer",
        title: "VERSION prints one object with cniVersion and supportedVersions",
        clause: spec(COMMAND),
        versions: Versions::Newest,
        run: |trial| answer(trial, &trial.ask("VERSION")).map(drop),
    },
    Check {
        id: "protocol.version-list",
        title: "the supported versions are versions that exist, without repetition",
        clause: spec(COMMAND),
        versions: Versions::Newest,
        run: list,
    },
    Check {
        id: "protocol.version-needs-nothing",
        title: "VERSION needs no variable but CNI_COMMAND",
        clause: spec(COMMAND),
        versions: Versions::Newest,
        run: needs_nothing,
    },
    Check {
        id: "protocol.version-ignores-rubbish",
        title: "VERSION ignores rubbish in other variables and on standard input",
        clause: reference("podman and libcni send dummies around it"),
        versions: Versions::Newest,
        run: rubbish,
    },
    Check {
        id: "protocol.version-does-not-wait",
        title: "VERSION does not wait for standard input to end",
        clause: reference("libcni skel: VERSION does not read standard input"),
        versions: Versions::Newest,
        run: silent_stdin,
    },
    Check {
        id: "protocol.version-is-steady",
        title: "VERSION answers the same, whatever version it is asked in",
        clause: spec(COMMAND),
        versions: Versions::Newest,
        run: steady,
    },
    Check {
        id: "protocol.full-stdout",
        title: "an answer that cannot be written is a failure",
        clause: spec("2: exit code 0 means success, and the result was printed"),
        versions: Versions::Newest,
        run: full,
    },
];

fn answer(trial: &Trial<'_>, ask: &Ask) -> Verdict<Vec<String>> {
    let answer = trial.send(ask)?;
    good("VERSION", &answer)?;
    let Some(object) = answer.json().filter(Value::is_object) else {
        return fault(format!("VERSION printed no object: {}", answer.text()));
    };
    ensure(
        object.get("cniVersion").is_some_and(Value::is_string),
        || format!("VERSION printed no cniVersion: {object}"),
    )?;
    let list = object.get("supportedVersions").and_then(Value::as_array);
    let list: Option<Vec<String>> = list.and_then(|list| {
        list.iter()
            .map(|one| one.as_str().map(str::to_owned))
            .collect()
    });
    match list {
        Some(list) if !list.is_empty() => Ok(list),
        _ => fault(format!(
            "VERSION printed no list supportedVersions: {object}"
        )),
    }
}

fn list(trial: &Trial<'_>) -> Verdict {
    let list = answer(trial, &trial.ask("VERSION"))?;
    for (at, version) in list.iter().enumerate() {
        let again = list.iter().skip(at + 1).any(|other| other == version);
        ensure(!again, || format!("version {version} is listed twice"))?;
        // Versions to come are none of our business.
        let future = version
            .split('.')
            .next()
            .and_then(|major| major.parse::<u32>().ok())
            .is_some_and(|major| major > 1);
        ensure(future || VERSIONS.contains(&version.as_str()), || {
            format!("there is no version {version:?}")
        })?;
    }
    Ok(())
}

fn needs_nothing(trial: &Trial<'_>) -> Verdict {
    let ask = trial
        .ask("VERSION")
        .unset("CNI_CONTAINERID")
        .unset("CNI_NETNS");
    let ask = ask.unset("CNI_IFNAME").unset("CNI_PATH");
    answer(trial, &ask.stdin(r#"{"cniVersion":"1.0.0"}"#)).map(drop)
}

fn rubbish(trial: &Trial<'_>) -> Verdict {
    let ask = trial
        .ask("VERSION")
        .set("CNI_CONTAINERID", "bad/id")
        .set("CNI_IFNAME", "a/b");
    for stdin in ["", "rubbish", r#"{"cniVersion":"9.9.9"}"#] {
        answer(trial, &ask.clone().set("CNI_PATH", "dummy").stdin(stdin))?;
    }
    Ok(())
}

fn steady(trial: &Trial<'_>) -> Verdict {
    let ask = |version: &str| {
        trial
            .ask("VERSION")
            .stdin(format!("{{\"cniVersion\":\"{version}\"}}"))
    };
    let first = answer(trial, &ask("0.4.0"))?;
    let second = answer(trial, &ask("1.0.0"))?;
    ensure(first == second, || {
        format!("once {first:?}, then {second:?}")
    })
}

fn start(ask: &Ask, stdin: Stdio, stdout: Stdio) -> Verdict<Child> {
    let child = Command::new(ask.program())
        .env_clear()
        .envs(ask.environment().iter().map(|(key, value)| (key, value)))
        .stdin(stdin)
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
        .doing(|| format!("start {}", ask.program().display()))?;
    Ok(child)
}

/// How a child ends by itself; killed and `None` if it does not.
fn ending(child: &mut Child) -> Verdict<Option<Option<i32>>> {
    let end = Instant::now() + SOON;
    loop {
        if let Some(status) = child.try_wait().doing(|| "wait for a plugin")? {
            return Ok(Some(status.code()));
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn told(code: Option<Option<i32>>) -> String {
    match code {
        None => format!("it had not ended after {} s", SOON.as_secs()),
        Some(None) => "it was killed by a signal".to_owned(),
        Some(Some(code)) => format!("exit status: {code}"),
    }
}

fn silent_stdin(trial: &Trial<'_>) -> Verdict {
    let ask = trial.ask("VERSION");
    let mut child = start(&ask, Stdio::piped(), Stdio::null())?;
    let silent = child.stdin.take();
    let code = ending(&mut child)?;
    drop(silent);
    trial.note(&ask.stdin("(open and silent)"), &told(code));
    ensure(code == Some(Some(0)), || {
        "VERSION waits for standard input that stays open".to_owned()
    })
}

fn full(trial: &Trial<'_>) -> Verdict {
    let ask = trial.ask("VERSION");
    let device = File::options()
        .write(true)
        .open("/dev/full")
        .doing(|| "open /dev/full")?;
    let mut child = start(&ask, Stdio::null(), device.into())?;
    let code = ending(&mut child)?;
    trial.note(
        &ask.stdin("(none; standard output is /dev/full)"),
        &told(code),
    );
    ensure(code.is_some_and(|code| code != Some(0)), || {
        "VERSION ended with exit code 0 although its answer could not be written".to_owned()
    })
}
