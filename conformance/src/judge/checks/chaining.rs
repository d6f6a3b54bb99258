//! Plugins one after the other, of other makers and of other versions.

use serde_json::{Value, json};

use crate::judge::attach::{good, refused};
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::place::{merge, push};
use crate::judge::profile::Role;
use crate::judge::standin::PASS;
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, fault, skip};

const CHAIN: &str = "3: the result of each plugin is the prevResult of the next";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "chaining.before-a-foreign-plugin",
        title: "a foreign chained plugin can follow, and DEL and CHECK take the list's final result",
        clause: spec(CHAIN),
        versions: Versions::EachFrom("0.3.0"),
        run: before_foreign,
    },
    Check {
        id: "chaining.foreign-interfaces",
        title: "interfaces that somebody else made, on the host and in the container, are no obstacle",
        clause: spec(CHAIN),
        versions: Versions::EachFrom("0.3.0"),
        run: foreign_interfaces,
    },
    Check {
        id: "chaining.addresses-without-interface",
        title: "an address that names no interface is handed on as it is",
        clause: spec("5 \"ADD Success\": interface is optional"),
        versions: Versions::NewestFrom("0.3.0"),
        run: without_index,
    },
    Check {
        id: "chaining.relative-version",
        title: "a prevResult of another version with the same form is taken, and the result is in the configuration's",
        clause: reference("libcni types: versions of one form are read alike"),
        versions: Versions::EachFrom("0.3.0"),
        run: relative,
    },
    Check {
        id: "chaining.other-form",
        title: "a prevResult of a version with another form is converted or refused, never misread",
        clause: spec("3: the runtime converts results to the version of the configuration"),
        versions: Versions::NewestFrom("0.3.0"),
        run: other_form,
    },
    Check {
        id: "chaining.capabilities-of-others",
        title: "capabilities and runtimeConfig of other plugins do not matter",
        clause: spec("3 \"Deriving runtimeConfig\""),
        versions: Versions::NewestFrom("0.3.0"),
        run: capabilities,
    },
    Check {
        id: "chaining.after-loopback",
        title: "a plugin that makes an interface works behind loopback, as in Nomad's list",
        clause: reference("main plugins do not look at prevResult on ADD"),
        versions: Versions::NewestFrom("0.3.0"),
        run: after_loopback,
    },
    Check {
        id: "chaining.needs-a-predecessor",
        title: "a chained plugin without prevResult says so",
        clause: reference("meta plugins: must be called as chained plugin"),
        versions: Versions::NewestFrom("0.3.0"),
        run: needs_predecessor,
    },
    Check {
        id: "chaining.del-without-a-predecessor",
        title: "DEL of a chained plugin needs no prevResult",
        clause: spec("2 \"DEL\": plugins should complete a DEL even if some resources are missing"),
        versions: Versions::NewestFrom("0.3.0"),
        run: del_without,
    },
];

fn before_foreign(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role == Role::Ipam {
        return skip("an IPAM plugin is in no list");
    }
    let mut attached = trial.added()?;
    let result = attached.result.clone().unwrap_or_default();
    let program = trial.standins()?.directory().join(PASS);
    let config = json!({"cniVersion": trial.version, "name": trial.place.network(), "type": PASS, "prevResult": result});
    let foreign = trial
        .ask_of(program, "ADD")
        .set("CNI_CONTAINERID", &attached.id)
        .set("CNI_NETNS", &attached.path);
    let answer = trial.send(&foreign.set("CNI_IFNAME", &attached.ifname).config(&config))?;
    good("ADD of the foreign plugin", &answer)?;
    let Some(passed) = answer.json() else {
        return fault(format!(
            "the result does not survive a plugin written in sh: {}",
            answer.text()
        ));
    };
    ensure(passed == result, || {
        format!("a plugin written in sh reads {passed} in {result}")
    })?;
    // The foreign plugin has added something of its own.
    let mut last = passed;
    push(
        &mut last,
        "interfaces",
        json!({"name": "foreign0", "mac": "02:00:00:00:00:01"}),
    );
    attached.result = Some(last);
    if trial.at_least("0.4.0") {
        trial.must("CHECK", &attached)?;
    }
    trial.must("DEL", &attached)
}

fn foreign_interfaces(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_chained()?;
    let mut before = attached.previous();
    push(&mut before, "interfaces", json!({"name": "foreign0"}));
    push(
        &mut before,
        "interfaces",
        json!({"name": "foreign1", "mac": "02:00:00:00:00:01", "sandbox": attached.path}),
    );
    merge(&mut attached.config, &json!({"prevResult": before}));
    let result = trial.add(&mut attached)?;
    let names: Vec<String> = crate::facts::interfaces(&result)
        .into_iter()
        .map(|one| one.name)
        .collect();
    ensure(
        names.iter().any(|name| name == "foreign0") && names.iter().any(|name| name == "foreign1"),
        || format!("foreign interfaces are missing: {result}"),
    )?;
    trial.must("DEL", &attached)
}

fn without_index(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_chained()?;
    let mut before = attached.previous();
    if let Some(Value::Object(ip)) = before.pointer_mut("/ips/0") {
        ip.shift_remove("interface");
    }
    merge(&mut attached.config, &json!({"prevResult": before}));
    let answer = trial.try_to("ADD", &attached)?;
    if !answer.ok() {
        // Some need to know where the address is.
        return refused("ADD", &answer).map(drop);
    }
    let ips = answer.json().and_then(|result| result.get("ips").cloned());
    ensure(ips.as_ref() == before.get("ips"), || {
        format!("ips were {:?} and are {ips:?}", before.get("ips"))
    })
}

fn relative(trial: &Trial<'_>) -> Verdict {
    let other = match trial.version.as_str() {
        "1.0.0" => "1.1.0",
        "1.1.0" => "1.0.0",
        "0.4.0" => "0.3.1",
        _ => "0.4.0",
    };
    // A plugin cannot know a version that came after it.
    if !trial.subject.versions()?.iter().any(|one| one == other) {
        return skip(format!("it does not support {other}"));
    }
    let mut attached = trial.attach_chained()?;
    let mut before = attached.previous();
    merge(&mut before, &json!({"cniVersion": other}));
    merge(&mut attached.config, &json!({"prevResult": before}));
    let result = trial.add(&mut attached)?;
    ensure(
        result.get("cniVersion") == Some(&json!(trial.version)),
        || format!("cniVersion of {result}"),
    )?;
    let of = |result: &Value| -> Vec<_> {
        let all = crate::facts::addresses(result).into_iter();
        all.map(|one| one.address).collect()
    };
    let after = of(&result);
    ensure(of(&before).iter().all(|one| after.contains(one)), || {
        format!("addresses were {:?}: {result}", of(&before))
    })
}

fn other_form(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_chained()?;
    let early = json!({"cniVersion": "0.2.0", "ip4": {"ip": attached.addresses.v4, "gateway": attached.addresses.gateway_v4}, "dns": {}});
    merge(&mut attached.config, &json!({"prevResult": early}));
    let answer = trial.try_to("ADD", &attached)?;
    if !answer.ok() {
        return refused("ADD with a prevResult of 0.2.0", &answer).map(drop);
    }
    let result = answer.json().unwrap_or_default();
    let found = crate::facts::addresses(&result);
    ensure(
        found
            .iter()
            .any(|one| one.address.to_string() == attached.addresses.v4),
        || format!("the address was lost: {result}"),
    )
}

fn capabilities(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_chained()?;
    merge(
        &mut attached.config,
        &json!({"capabilities": {"com.example": true, "aliases": true}}),
    );
    let mut runtime = attached
        .config
        .get("runtimeConfig")
        .cloned()
        .unwrap_or_else(|| json!({}));
    merge(
        &mut runtime,
        &json!({"aliases": ["a", "b"], "com.example": {"deep": [1]}}),
    );
    merge(&mut attached.config, &json!({"runtimeConfig": runtime}));
    trial.add(&mut attached)?;
    trial.must("DEL", &attached)
}

fn after_loopback(trial: &Trial<'_>) -> Verdict {
    if trial.subject.profile().role != Role::Interface {
        return skip("it makes no interface");
    }
    let mut attached = trial.attach()?;
    let mut before = json!({"cniVersion": trial.version, "interfaces": [{"name": "lo", "mac": "00:00:00:00:00:00", "sandbox": attached.path}]});
    for (family, address) in [("4", "127.0.0.1/8"), ("6", "::1/128")] {
        let mut ip = json!({"interface": 0, "address": address});
        if !trial.at_least("1.0.0") {
            merge(&mut ip, &json!({"version": family}));
        }
        push(&mut before, "ips", ip);
    }
    merge(&mut attached.config, &json!({"prevResult": before}));
    if trial.subject.name == "ipvlan" {
        return skip("it takes the addresses of prevResult in place of IPAM's");
    }
    let result = trial.add(&mut attached)?;
    let found = crate::facts::addresses(&result);
    ensure(
        found
            .iter()
            .any(|one| one.address.to_string() == attached.addresses.v4),
        || format!("no address of its own: {result}"),
    )?;
    trial.must("DEL", &attached)
}

fn needs_predecessor(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_chained()?;
    attached.config = crate::judge::place::without(&attached.config, "prevResult");
    refused("ADD without prevResult", &trial.try_to("ADD", &attached)?).map(drop)
}

fn del_without(trial: &Trial<'_>) -> Verdict {
    let mut attached = trial.attach_chained()?;
    attached.config = crate::judge::place::without(&attached.config, "prevResult");
    trial.must("DEL", &attached)
}
