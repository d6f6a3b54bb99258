//! A chained plugin hands the earlier result on.

use serde_json::{Value, json};

use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::place::{merge, push};
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure};

const PASS: &str = "2 \"ADD\": a plugin that is given prevResult must handle it, passing it through or modifying it";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "results.passes-addresses-on",
        title: "the addresses of prevResult are in the result",
        clause: spec(PASS),
        versions: Versions::Each,
        run: passes_addresses,
    },
    Check {
        id: "results.passes-interfaces-on",
        title: "the interfaces of prevResult are in the result, in their order",
        clause: spec(PASS),
        versions: Versions::EachFrom("0.3.0"),
        run: passes_interfaces,
    },
    Check {
        id: "results.passes-routes-on",
        title: "the routes of prevResult are in the result",
        clause: spec(PASS),
        versions: Versions::EachFrom("0.3.0"),
        run: |trial| passes(trial, "routes"),
    },
    Check {
        id: "results.passes-dns-on",
        title: "the DNS of prevResult is in the result",
        clause: spec(PASS),
        versions: Versions::EachFrom("0.3.0"),
        run: |trial| passes(trial, "dns"),
    },
    Check {
        id: "results.passes-new-fields-on",
        title: "mtu, socketPath and pciID of interfaces, mtu and advmss of routes survive",
        clause: spec("5 \"ADD Success\" of 1.1.0, and 2 \"ADD\""),
        versions: Versions::NewestFrom("1.1.0"),
        run: new_fields,
    },
    Check {
        id: "results.previous-without-version",
        title: "a prevResult without cniVersion is one of the configuration's version",
        clause: reference("libcni types: the configuration's version stands in"),
        versions: Versions::NewestFrom("0.3.0"),
        run: without_version,
    },
];

fn passes(trial: &Trial<'_>, key: &str) -> Verdict {
    let mut attached = trial.attach_behind()?;
    let before = attached.previous();
    let result = trial.add(&mut attached)?;
    ensure(result.get(key) == before.get(key), || {
        format!(
            "{key} was {:?} and is {:?}",
            before.get(key),
            result.get(key)
        )
    })
}

/// Which interface an address is of may change: a plugin may have put another one in its place.
fn passes_addresses(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_behind()?;
    let before = attached.previous();
    let result = trial.add(&mut attached)?;
    same_addresses(&before, &result)
}

fn same_addresses(before: &Value, result: &Value) -> Verdict {
    let of = |result: &Value| -> Vec<_> {
        let all = crate::facts::addresses(result).into_iter();
        all.map(|one| (one.address, one.gateway)).collect()
    };
    // It may add some: a machine in the container gets the same ones over again.
    let after = of(result);
    ensure(of(before).iter().all(|one| after.contains(one)), || {
        format!("addresses were {:?} and are {:?}", of(before), of(result))
    })
}

fn passes_interfaces(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_behind()?;
    let before = crate::facts::interfaces(&attached.previous());
    let result = trial.add(&mut attached)?;
    let after = crate::facts::interfaces(&result);
    let same = after
        .iter()
        .zip(&before)
        .all(|(after, before)| after.name == before.name && after.sandbox == before.sandbox);
    ensure(same && after.len() >= before.len(), || {
        format!("interfaces were {before:?} and are {after:?}")
    })
}

fn new_fields(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_behind()?;
    let mut before = attached.previous();
    if let Some(interface) = before.pointer_mut("/interfaces/0") {
        merge(
            interface,
            &json!({"mtu": 1500, "socketPath": "/run/x.sock", "pciID": "0000:00:1f.6"}),
        );
    }
    push(
        &mut before,
        "routes",
        json!({"dst": "198.51.100.0/24", "gw": attached.addresses.gateway_v4, "mtu": 1300, "advmss": 1200}),
    );
    merge(&mut attached.config, &json!({"prevResult": before}));
    let result = trial.add(&mut attached)?;
    for pointer in [
        "/interfaces/0/mtu",
        "/interfaces/0/socketPath",
        "/interfaces/0/pciID",
        "/routes/1/mtu",
        "/routes/1/advmss",
    ] {
        ensure(result.pointer(pointer) == before.pointer(pointer), || {
            format!("{pointer} was {:?}: {result}", before.pointer(pointer))
        })?;
    }
    Ok(())
}

fn without_version(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_behind()?;
    let before = crate::judge::place::without(&attached.previous(), "cniVersion");
    merge(&mut attached.config, &json!({"prevResult": before}));
    let result = trial.add(&mut attached)?;
    same_addresses(&before, &result)
}
