//! The version of the configuration.

use serde_json::json;

use super::{must_not_refuse, must_refuse};
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::trial::{Ask, Trial};
use crate::judge::verdict::Verdict;

const VERSION: &str = "5 \"Error\": code 1, incompatible CNI version";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "protocol.unsupported-version",
        title: "ADD and DEL in a version that is not supported are refused with code 1",
        clause: spec(VERSION),
        versions: Versions::Newest,
        run: unsupported,
    },
    Check {
        id: "protocol.supported-version",
        title: "a version that the plugin lists is one that it takes",
        clause: spec("2 \"VERSION\": supportedVersions is the list of supported versions"),
        versions: Versions::Each,
        run: |trial| must_not_refuse(trial, "ADD", &trial.ask("ADD"), &[1]),
    },
    Check {
        id: "protocol.no-version",
        title: "a configuration without a version is one of 0.1.0",
        clause: reference("libcni: a missing or empty cniVersion means 0.1.0"),
        versions: Versions::Newest,
        run: no_version,
    },
    Check {
        id: "protocol.version-spelling",
        title: "a version is compared as it is written",
        clause: reference("libcni skel: \"1.0\" is not 1.0.0"),
        versions: Versions::Newest,
        run: spelling,
    },
    Check {
        id: "protocol.version-of-a-wrong-kind",
        title: "a version that is no text is an error of code 6",
        clause: spec("5 \"Error\": code 6, for instance failed to decode version info from string"),
        versions: Versions::Newest,
        run: |trial| {
            must_refuse(
                trial,
                "ADD with cniVersion 1",
                &with(trial, "ADD", &json!(1)),
                &[6],
            )
            .map(drop)
        },
    },
    Check {
        id: "protocol.check-needs-0.4.0",
        title: "CHECK in a version that does not have it is refused with code 1",
        clause: spec("CHECK came with 0.4.0; code 1"),
        versions: Versions::NewestFrom("0.4.0"),
        run: |trial| too_old(trial, "CHECK", &["0.3.1", "0.2.0", ""]),
    },
    Check {
        id: "protocol.gc-needs-1.1.0",
        title: "GC in a version that does not have it is refused with code 1",
        clause: spec("GC came with 1.1.0; code 1"),
        versions: Versions::NewestFrom("1.1.0"),
        run: |trial| too_old(trial, "GC", &["1.0.0", "0.4.0", ""]),
    },
    Check {
        id: "protocol.status-needs-1.1.0",
        title: "STATUS in a version that does not have it is refused with code 1",
        clause: spec("STATUS came with 1.1.0; code 1"),
        versions: Versions::NewestFrom("1.1.0"),
        run: |trial| too_old(trial, "STATUS", &["1.0.0", "0.4.0", ""]),
    },
    Check {
        id: "protocol.later-commands-in-later-versions",
        title: "CHECK, GC and STATUS in a version above the supported are refused with code 1",
        clause: spec(VERSION),
        versions: Versions::NewestFrom("0.4.0"),
        run: too_new,
    },
    Check {
        id: "protocol.no-gc-without-1.1.0",
        title: "a plugin that does not support 1.1.0 refuses GC and STATUS",
        clause: spec("GC and STATUS came with 1.1.0"),
        versions: Versions::Newest,
        run: no_gc,
    },
    Check {
        id: "protocol.malformed-version",
        title: "a version that is none is refused",
        clause: spec(VERSION),
        versions: Versions::Newest,
        run: malformed,
    },
];

fn with(trial: &Trial<'_>, verb: &str, version: &serde_json::Value) -> Ask {
    let mut config = trial.config();
    crate::judge::place::merge(&mut config, &json!({"cniVersion": version}));
    trial.ask(verb).config(&config)
}

fn unsupported(trial: &Trial<'_>) -> Verdict {
    for verb in ["ADD", "DEL"] {
        for version in ["9.9.9", "0.5.0"] {
            let what = format!("{verb} in version {version}");
            must_refuse(trial, &what, &with(trial, verb, &json!(version)), &[1])?;
        }
    }
    Ok(())
}

fn no_version(trial: &Trial<'_>) -> Verdict {
    let supported = trial.subject.versions()?.iter().any(|one| one == "0.1.0");
    let config = crate::judge::place::without(&trial.config(), "cniVersion");
    for ask in [
        trial.ask("ADD").config(&config),
        with(trial, "ADD", &json!("")),
    ] {
        if supported {
            must_not_refuse(trial, "ADD without a version", &ask, &[1, 6])?;
        } else {
            must_refuse(trial, "ADD without a version", &ask, &[1])?;
        }
    }
    Ok(())
}

fn spelling(trial: &Trial<'_>) -> Verdict {
    for version in ["1.0", "1", "v1.0.0", "1.0.0 "] {
        must_refuse(
            trial,
            &format!("ADD in version {version:?}"),
            &with(trial, "ADD", &json!(version)),
            &[1],
        )?;
    }
    Ok(())
}

fn too_old(trial: &Trial<'_>, verb: &str, versions: &[&str]) -> Verdict {
    for version in versions {
        let what = format!("{verb} in version {version:?}");
        must_refuse(trial, &what, &with(trial, verb, &json!(version)), &[1])?;
    }
    Ok(())
}

fn too_new(trial: &Trial<'_>) -> Verdict {
    let verbs: &[&str] = if trial.at_least("1.1.0") {
        &["CHECK", "GC", "STATUS"]
    } else {
        &["CHECK"]
    };
    for verb in verbs {
        must_refuse(
            trial,
            &format!("{verb} in version 2.0.0"),
            &with(trial, verb, &json!("2.0.0")),
            &[1],
        )?;
    }
    Ok(())
}

fn no_gc(trial: &Trial<'_>) -> Verdict {
    if trial.subject.versions()?.iter().any(|one| one == "1.1.0") {
        return crate::judge::verdict::skip("it supports 1.1.0");
    }
    for verb in ["GC", "STATUS"] {
        must_refuse(trial, verb, &trial.ask(verb), &[1, 4])?;
    }
    Ok(())
}

fn malformed(trial: &Trial<'_>) -> Verdict {
    for version in ["x.y", "1.2.3.4", "0.", "1..0", "latest"] {
        must_refuse(
            trial,
            &format!("ADD in version {version:?}"),
            &with(trial, "ADD", &json!(version)),
            &[1, 6],
        )?;
        if trial.at_least("0.4.0") {
            must_refuse(
                trial,
                &format!("CHECK in version {version:?}"),
                &with(trial, "CHECK", &json!(version)),
                &[1, 6],
            )?;
        }
    }
    Ok(())
}
