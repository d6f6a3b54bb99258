//! Plugins that call an IPAM plugin. A stand-in takes its place, records how it is called and answers what a check wants.

use serde_json::{Value, json};

use crate::error::Context;
use crate::judge::attach::{Attached, good, refused};
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::place::{Families, lease, merge, push, without};
use crate::judge::profile::Role;
use crate::judge::standin::{Called, IPAM};
use crate::judge::trial::Trial;
use crate::judge::verdict::{Verdict, ensure, fault, skip};
use crate::snapshot::Snapshot;

const DELEGATE: &str = "4 \"Delegated plugin execution\"";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "delegation.add",
        title: "ADD calls the IPAM plugin once, with the same variables and CNI_COMMAND=ADD",
        clause: spec("4: a delegated plugin is executed with the same environment"),
        versions: Versions::Each,
        run: |trial| called(trial, "ADD"),
    },
    Check {
        id: "delegation.check",
        title: "CHECK calls it",
        clause: spec("4: for CHECK the plugin must execute the delegated plugin"),
        versions: Versions::EachFrom("0.4.0"),
        run: |trial| called(trial, "CHECK"),
    },
    Check {
        id: "delegation.del",
        title: "DEL calls it",
        clause: spec("4: for DEL the plugin must execute the delegated plugin"),
        versions: Versions::Each,
        run: |trial| called(trial, "DEL"),
    },
    Check {
        id: "delegation.gc",
        title: "GC calls it, with the list of valid attachments",
        clause: spec("4: for GC the plugin must execute the delegated plugin"),
        versions: Versions::EachFrom("1.1.0"),
        run: gc,
    },
    Check {
        id: "delegation.status",
        title: "STATUS calls it",
        clause: spec("4: for STATUS the plugin must execute the delegated plugin"),
        versions: Versions::EachFrom("1.1.0"),
        run: status,
    },
    Check {
        id: "delegation.whole-request",
        title: "the IPAM plugin gets the whole configuration, unknown keys included",
        clause: spec("4: a delegated plugin receives the same configuration on standard input"),
        versions: Versions::Newest,
        run: whole_request,
    },
    Check {
        id: "delegation.arguments",
        title: "CNI_ARGS and other variables reach the IPAM plugin",
        clause: spec("4: a delegated plugin is executed with the same environment"),
        versions: Versions::Newest,
        run: arguments,
    },
    Check {
        id: "delegation.on-the-host",
        title: "the IPAM plugin runs in the host's network namespace",
        clause: reference("delegates run where the plugin was started"),
        versions: Versions::Newest,
        run: on_the_host,
    },
    Check {
        id: "delegation.error-passes",
        title: "the IPAM plugin's error is the plugin's: code, msg and details",
        clause: spec("4: if the delegated plugin returns an error, so does the delegating one"),
        versions: Versions::Newest,
        run: error_passes,
    },
    Check {
        id: "delegation.missing-plugin",
        title: "an IPAM plugin that is not there is an error",
        clause: spec(DELEGATE),
        versions: Versions::Newest,
        run: |trial| type_refused(trial, "judge-nowhere"),
    },
    Check {
        id: "delegation.plugin-with-a-path",
        title: "an IPAM type with a path in it is refused",
        clause: spec("1: type matches the name of the plugin's binary, without special characters"),
        versions: Versions::Newest,
        run: |trial| type_refused(trial, "../standin/bin/judge-ipam"),
    },
    Check {
        id: "delegation.silent-death",
        title: "an IPAM plugin that dies without a word is an error with a code that is not 0",
        clause: spec("5 \"Error\": codes are 1 to 99 for the specification, from 100 for plugins"),
        versions: Versions::Newest,
        run: |trial| broken(trial, "", 3, false),
    },
    Check {
        id: "delegation.garbage",
        title: "an IPAM plugin that succeeds with garbage is an error",
        clause: spec("4: the result of the delegated plugin is a success object"),
        versions: Versions::Newest,
        run: |trial| broken(trial, "garbage", 0, false),
    },
    Check {
        id: "delegation.no-addresses",
        title: "an IPAM result without addresses is an error",
        clause: reference("IPAM plugins return at least one address"),
        versions: Versions::Newest,
        run: |trial| broken(trial, r#"{"cniVersion":"1.0.0"}"#, 0, false),
    },
    Check {
        id: "delegation.no-addresses-leave-nothing",
        title: "that error leaves no interface in the container, and releases what IPAM may hold",
        clause: reference("a runtime may try again without a DEL, as Nomad does"),
        versions: Versions::Newest,
        run: |trial| broken(trial, r#"{"cniVersion":"1.0.0"}"#, 0, true),
    },
    Check {
        id: "delegation.failed-add-releases",
        title: "an ADD that fails after IPAM gives the address back",
        clause: reference("a runtime may try again without a DEL, as Nomad does"),
        versions: Versions::NewestFrom("0.3.0"),
        run: releases,
    },
    Check {
        id: "delegation.del-after-the-namespace",
        title: "DEL calls the IPAM plugin when the namespace is gone",
        clause: spec(
            "2 \"DEL\": an IPAM plugin should release its allocation even if the container network namespace no longer exists",
        ),
        versions: Versions::Newest,
        run: |trial| late_del(trial, false),
    },
    Check {
        id: "delegation.del-without-netns",
        title: "DEL calls the IPAM plugin when CNI_NETNS is not set",
        clause: spec("2 \"DEL\": CNI_NETNS is optional"),
        versions: Versions::Newest,
        run: |trial| late_del(trial, true),
    },
    Check {
        id: "delegation.other-version",
        title: "an IPAM result of another version is taken, and the result is in the configuration's",
        clause: spec("5: the plugin's result is in the version of its configuration"),
        versions: Versions::Newest,
        run: other_version,
    },
    Check {
        id: "delegation.dns",
        title: "the configuration's dns is in the result, in place of IPAM's",
        clause: reference("main plugins: dns of the configuration if it says something"),
        versions: Versions::Newest,
        run: dns,
    },
];

fn delegating(trial: &Trial<'_>) -> Verdict<Attached> {
    if trial.subject.profile().role != Role::Interface {
        return skip("it calls no IPAM plugin");
    }
    trial.attach()
}

/// The one call with this command.
fn one_call(trial: &Trial<'_>, attached: &Attached, verb: &str) -> Verdict<Called> {
    let mut calls = trial
        .standins()?
        .calls(&attached.id, &attached.ifname, verb)?;
    match (calls.pop(), calls.is_empty()) {
        (Some(call), true) => Ok(call),
        (None, _) => fault(format!("{verb} did not call the IPAM plugin")),
        _ => fault(format!("{verb} called the IPAM plugin more than once")),
    }
}

fn called(trial: &Trial<'_>, verb: &str) -> Verdict {
    let mut attached = delegating(trial)?;
    trial.add(&mut attached)?;
    if verb != "ADD" {
        trial.standins()?.forget()?;
        trial.must(verb, &attached)?;
    }
    let call = one_call(trial, &attached, verb)?;
    let path = attached.path.to_string_lossy().into_owned();
    for (key, wanted) in [
        ("CNI_NETNS", path.as_str()),
        ("CNI_IFNAME", &attached.ifname),
        ("CNI_CONTAINERID", &attached.id),
    ] {
        ensure(call.var(key) == wanted, || {
            format!("{key} was {:?}, not {wanted:?}", call.var(key))
        })?;
    }
    ensure(!call.var("CNI_PATH").is_empty(), || {
        "CNI_PATH was empty".to_owned()
    })
}

fn gc(trial: &Trial<'_>) -> Verdict {
    let mut attached = delegating(trial)?;
    trial.add(&mut attached)?;
    let valid = json!([{"containerID": attached.id, "ifname": attached.ifname}]);
    let mut config = trial.config();
    merge(
        &mut config,
        &json!({"ipam": {"type": IPAM}, "cni.dev/valid-attachments": valid, "cni.dev/attachments": valid}),
    );
    good("GC", &trial.send(&trial.ask_alone("GC").config(&config))?)?;
    let calls = trial.standins()?.calls("", "", "GC")?;
    let Some(call) = calls.first() else {
        return fault("GC did not call the IPAM plugin");
    };
    let seen: Option<Value> = serde_json::from_slice(&call.stdin).ok();
    let list = seen
        .as_ref()
        .and_then(|seen| seen.get("cni.dev/valid-attachments"));
    ensure(list == Some(&valid), || {
        format!("the IPAM plugin was told {list:?}")
    })
}

fn status(trial: &Trial<'_>) -> Verdict {
    let attached = delegating(trial)?;
    let mut config = without(&attached.config, "prevResult");
    merge(&mut config, &json!({"ipam": {"type": IPAM}}));
    good(
        "STATUS",
        &trial.send(&trial.ask_alone("STATUS").config(&config))?,
    )?;
    ensure(
        !trial.standins()?.calls("", "", "STATUS")?.is_empty(),
        || "STATUS did not call the IPAM plugin".to_owned(),
    )
}

fn whole_request(trial: &Trial<'_>) -> Verdict {
    let mut attached = delegating(trial)?;
    merge(
        &mut attached.config,
        &json!({"x-unknown": {"a": [1, null, "é"]}, "runtimeConfig": {"ips": []},
        "ipam": {"type": IPAM, "number": 12_345_678_901_234_567_890_u64}}),
    );
    trial.add(&mut attached)?;
    let call = one_call(trial, &attached, "ADD")?;
    let seen: Option<Value> = serde_json::from_slice(&call.stdin).ok();
    ensure(seen.as_ref() == Some(&attached.config), || {
        format!(
            "the IPAM plugin read {}",
            String::from_utf8_lossy(&call.stdin)
        )
    })
}

fn arguments(trial: &Trial<'_>) -> Verdict {
    let attached = delegating(trial)?;
    let args = "IgnoreUnknown=1;COLOUR=blue";
    let ask = trial
        .ask_for("ADD", &attached)
        .set("CNI_ARGS", args)
        .set("COLOUR_OF_OTHERS", "red");
    good("ADD", &trial.send(&ask)?)?;
    let call = one_call(trial, &attached, "ADD")?;
    ensure(call.var("CNI_ARGS") == args, || {
        format!("CNI_ARGS was {:?}", call.var("CNI_ARGS"))
    })?;
    ensure(call.var("COLOUR_OF_OTHERS") == "red", || {
        "a variable of the runtime's did not arrive".to_owned()
    })
}

fn on_the_host(trial: &Trial<'_>) -> Verdict {
    let mut attached = delegating(trial)?;
    trial.add(&mut attached)?;
    let own = std::fs::read_link("/proc/self/ns/net").doing(|| "read /proc/self/ns/net")?;
    let call = one_call(trial, &attached, "ADD")?;
    ensure(call.var("OWN_NETNS") == own.to_string_lossy(), || {
        format!(
            "the IPAM plugin stood in {}, the host is {}",
            call.var("OWN_NETNS"),
            own.display()
        )
    })
}

fn error_passes(trial: &Trial<'_>) -> Verdict {
    let attached = delegating(trial)?;
    let error = json!({"code": 111, "msg": "no more apples", "details": "ask the gardener"});
    trial
        .standins()?
        .tell(&attached.id, &attached.ifname, "ADD", &error.to_string(), 1)?;
    let answer = trial.try_to("ADD", &attached)?;
    let (code, text) = refused("ADD with an IPAM plugin that fails", &answer)?;
    ensure(
        code == 111 && text.contains("no more apples") && text.contains("ask the gardener"),
        || format!("expected {error}, got {}", answer.text()),
    )
}

fn type_refused(trial: &Trial<'_>, name: &str) -> Verdict {
    let mut attached = delegating(trial)?;
    merge(&mut attached.config, &json!({"ipam": {"type": name}}));
    refused(
        &format!("ADD with the IPAM type {name:?}"),
        &trial.try_to("ADD", &attached)?,
    )?;
    ensure(
        trial
            .standins()?
            .calls(&attached.id, &attached.ifname, "ADD")?
            .is_empty(),
        || "a plugin outside of CNI_PATH was executed".to_owned(),
    )
}

fn broken(trial: &Trial<'_>, printed: &str, code: u8, leavings: bool) -> Verdict {
    let attached = delegating(trial)?;
    trial
        .standins()?
        .tell(&attached.id, &attached.ifname, "ADD", printed, code)?;
    let before = trial.snapshot()?;
    let answer = trial.try_to("ADD", &attached)?;
    let (found, _) = refused(
        &format!("ADD with an IPAM plugin that prints {printed:?} and ends with {code}"),
        &answer,
    )?;
    ensure(found != 0, || {
        format!("an error of code 0: {}", answer.text())
    })?;
    if !leavings {
        return Ok(());
    }
    undone(trial, &before, &attached)
}

/// What has to be so after an ADD that failed when IPAM had answered.
fn undone(trial: &Trial<'_>, before: &Snapshot, attached: &Attached) -> Verdict {
    ensure(!trial.interface_is_there(attached)?, || {
        format!("{} stayed in the container", attached.ifname)
    })?;
    ensure(
        !trial
            .standins()?
            .calls(&attached.id, &attached.ifname, "DEL")?
            .is_empty(),
        || "the IPAM plugin was not called with DEL".to_owned(),
    )?;
    super::lifecycle::nothing_left(trial, before, attached)
}

fn releases(trial: &Trial<'_>) -> Verdict {
    let attached = delegating(trial)?;
    // A multicast address, which no kernel puts on an interface: the ADD fails when nearly everything is done.
    let mut result = lease(&trial.version, &attached.addresses, Families::V4);
    let mut ip = json!({"address": "ff02::77/64"});
    if !trial.at_least("1.0.0") {
        merge(&mut ip, &json!({"version": "6"}));
    }
    push(&mut result, "ips", ip);
    trial
        .standins()?
        .lease(&attached.id, &attached.ifname, &result)?;
    let before = trial.snapshot()?;
    refused(
        "ADD with an address that the kernel refuses",
        &trial.try_to("ADD", &attached)?,
    )?;
    undone(trial, &before, &attached)
}

fn late_del(trial: &Trial<'_>, unset: bool) -> Verdict {
    let mut attached = delegating(trial)?;
    trial.add(&mut attached)?;
    trial.standins()?.forget()?;
    let mut ask = trial.ask_for("DEL", &attached);
    if unset {
        ask = ask.unset("CNI_NETNS");
    } else {
        ask = ask.set("CNI_NETNS", "/run/netns/gone");
    }
    trial.send(&ask)?;
    one_call(trial, &attached, "DEL").map(drop)
}

fn other_version(trial: &Trial<'_>) -> Verdict {
    for version in ["0.2.0", "0.3.1", "0.4.0", "1.0.0"] {
        let mut attached = delegating(trial)?;
        let result = lease(version, &attached.addresses, Families::V4);
        trial
            .standins()?
            .lease(&attached.id, &attached.ifname, &result)?;
        let result = trial.add(&mut attached)?;
        let version = result.get("cniVersion").and_then(Value::as_str);
        ensure(version == Some(trial.version.as_str()), || {
            format!("cniVersion is {version:?}: {result}")
        })?;
        let found = crate::facts::addresses(&result);
        ensure(
            found
                .iter()
                .any(|one| one.address.to_string() == attached.addresses.v4),
            || format!("{} is missing: {result}", attached.addresses.v4),
        )?;
        trial.must("DEL", &attached)?;
    }
    Ok(())
}

fn dns(trial: &Trial<'_>) -> Verdict {
    let mut attached = delegating(trial)?;
    let mut result = lease(&trial.version, &attached.addresses, Families::V4);
    merge(
        &mut result,
        &json!({"dns": {"nameservers": ["192.0.2.99"]}}),
    );
    trial
        .standins()?
        .lease(&attached.id, &attached.ifname, &result)?;
    let wanted = json!({"nameservers": ["192.0.2.53"], "domain": "example.test"});
    merge(&mut attached.config, &json!({"dns": wanted}));
    let result = trial.add(&mut attached)?;
    ensure(result.get("dns") == Some(&wanted), || {
        format!("dns is {:?}", result.get("dns"))
    })
}
