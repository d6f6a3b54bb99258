//! Container ids and interface names.

use super::{must_not_refuse, must_refuse};
use crate::judge::attach::refused;
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::trial::{Ask, Trial};
use crate::judge::verdict::{Verdict, ensure};

const ID: &str = "2 \"Parameters\": CNI_CONTAINERID starts with an alphanumeric character, followed by any of those, underscore, dot and hyphen";
const IFNAME: &str =
    "2 \"Parameters\": if the plugin is unable to use CNI_IFNAME it must return an error";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "protocol.bad-container-ids",
        title: "container ids with other characters are refused with code 4",
        clause: spec(ID),
        versions: Versions::Newest,
        run: |trial| bad_ids(trial, "ADD"),
    },
    Check {
        id: "protocol.good-container-ids",
        title: "every container id that the specification allows is taken",
        clause: spec(ID),
        versions: Versions::Newest,
        run: good_ids,
    },
    Check {
        id: "protocol.bad-container-ids-on-del",
        title: "DEL refuses them, too",
        clause: reference("libcni skel: the id is validated for ADD, DEL and CHECK"),
        versions: Versions::Newest,
        run: |trial| bad_ids(trial, "DEL"),
    },
    Check {
        id: "protocol.bad-interface-names",
        title: "names that no interface can have are refused",
        clause: spec(IFNAME),
        versions: Versions::Newest,
        run: |trial| bad_ifnames(trial, None),
    },
    Check {
        id: "protocol.bad-interface-names-code",
        title: "they are refused with code 4",
        clause: reference("libcni skel: interface names are validated like Linux does"),
        versions: Versions::Newest,
        run: |trial| bad_ifnames(trial, Some(4)),
    },
    Check {
        id: "protocol.long-interface-name",
        title: "an interface name of fifteen bytes is taken",
        clause: reference("libcni skel: 1 to 15 bytes"),
        versions: Versions::Newest,
        run: long_ifname,
    },
];

const BAD_IDS: [&str; 10] = [
    "bad/id", "_a", "-a", ".a", "é", "a:b", "a b", "a\n", "a\tb", "../a",
];

const BAD_IFNAMES: [&str; 9] = [
    ".",
    "..",
    "a/b",
    "a:b",
    "a b",
    "a\tb",
    "sixteen-bytes-xx",
    "éééééééé",
    "../../x",
];

fn bad_ids(trial: &Trial<'_>, verb: &str) -> Verdict {
    BAD_IDS.iter().try_for_each(|id| {
        let what = format!("{verb} with the container id {id:?}");
        let ask = trial.ask(verb).set("CNI_CONTAINERID", id);
        must_refuse(trial, &what, &ask, &[4]).map(drop)
    })
}

/// An ADD that does nothing, as nobody supports its version; that error comes after those of the variables.
fn ask_in_vain(trial: &Trial<'_>, variable: &str, value: &str) -> Ask {
    let config =
        serde_json::json!({"cniVersion": "9.9.9", "name": "judged", "type": trial.subject.name});
    trial.ask("ADD").set(variable, value).config(&config)
}

fn good_ids(trial: &Trial<'_>) -> Verdict {
    let long = "x".repeat(300);
    for id in [
        "0",
        "a",
        "a.b_c-d",
        "A.B",
        "5d3c0ff3-0000-0000-0000-000000000000",
        &long,
    ] {
        let what = format!("ADD with the container id {id:?}");
        let ask = ask_in_vain(trial, "CNI_CONTAINERID", id);
        must_not_refuse(trial, &what, &ask, &[4])?;
    }
    Ok(())
}

fn bad_ifnames(trial: &Trial<'_>, wanted: Option<u64>) -> Verdict {
    for name in BAD_IFNAMES {
        let what = format!("ADD with the interface name {name:?}");
        let answer = trial.send(&trial.ask("ADD").set("CNI_IFNAME", name))?;
        let (code, _) = refused(&what, &answer)?;
        ensure(wanted.is_none_or(|wanted| wanted == code), || {
            format!("{what}: expected code 4, got {}", answer.text())
        })?;
    }
    Ok(())
}

fn long_ifname(trial: &Trial<'_>) -> Verdict {
    for name in ["fifteen-bytes-x", "a", "...", "ééééééé"] {
        let what = format!("ADD with the interface name {name:?}");
        let ask = ask_in_vain(trial, "CNI_IFNAME", name);
        must_not_refuse(trial, &what, &ask, &[4])?;
    }
    Ok(())
}
