//! Input that nobody sends on purpose: success, or one error object and an exit code of the plugin's own; never a panic, a
//! signal, or a change where it must not be.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use serde_json::{Value, json};

use crate::judge::attach::{Attached, good, refused};
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::place::merge;
use crate::judge::profile::Role;
use crate::judge::trial::{Ask, Trial};
use crate::judge::verdict::{Verdict, ensure, skip};

const PROPER: &str = "2 and 5 \"Error\": success and a result, or failure and an error object";

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "hostile.bytes",
        title: "bytes that are no text",
        clause: spec(PROPER),
        versions: Versions::Newest,
        run: bytes,
    },
    Check {
        id: "hostile.deep",
        title: "a document that is nested a hundred thousand times",
        clause: spec(PROPER),
        versions: Versions::Newest,
        run: deep,
    },
    Check {
        id: "hostile.large",
        title: "a document of five megabytes",
        clause: spec(PROPER),
        versions: Versions::Newest,
        run: large,
    },
    Check {
        id: "hostile.odd-values",
        title: "every key of the configuration with values of every kind",
        clause: spec(PROPER),
        versions: Versions::Newest,
        run: odd_values,
    },
    Check {
        id: "hostile.odd-results",
        title: "previous results of any shape",
        clause: spec(PROPER),
        versions: Versions::Newest,
        run: odd_results,
    },
    Check {
        id: "hostile.odd-runtime-config",
        title: "capability arguments of any shape",
        clause: spec(PROPER),
        versions: Versions::Newest,
        run: odd_runtime,
    },
    Check {
        id: "hostile.environment",
        title: "variables that are no text",
        clause: spec(PROPER),
        versions: Versions::Newest,
        run: environment,
    },
    Check {
        id: "hostile.paths",
        title: "ids and names that climb out of directories are refused",
        clause: spec("1 \"name\" and 2 \"CNI_CONTAINERID\""),
        versions: Versions::Newest,
        run: paths,
    },
    Check {
        id: "hostile.no-search-path",
        title: "DEL works without PATH",
        clause: reference("a runtime may clear the environment"),
        versions: Versions::Newest,
        run: no_path,
    },
    Check {
        id: "hostile.long-arguments",
        title: "CNI_ARGS of a hundred kilobytes",
        clause: spec(PROPER),
        versions: Versions::Newest,
        run: long_arguments,
    },
    Check {
        id: "hostile.odd-attachments",
        title: "GC with lists of any shape",
        clause: spec(PROPER),
        versions: Versions::NewestFrom("1.1.0"),
        run: odd_attachments,
    },
];

/// Success, or one error object and an exit code.
fn proper(trial: &Trial<'_>, what: &str, ask: &Ask) -> Verdict {
    let answer = trial.send(ask)?;
    if answer.ok() {
        return Ok(());
    }
    refused(what, &answer)?;
    ensure(
        answer.status.code() == Some(1) || !trial.subject.is_known(),
        || format!("{what} ended with {}", answer.text()),
    )
}

fn each_command(trial: &Trial<'_>, what: &str, stdin: &[u8]) -> Verdict {
    for verb in ["ADD", "CHECK", "DEL", "NONSENSE"] {
        let ask = trial.ask(verb).stdin(stdin);
        proper(trial, &format!("{verb} with {what}"), &ask)?;
    }
    Ok(())
}

fn bytes(trial: &Trial<'_>) -> Verdict {
    let documents: [&[u8]; 6] = [
        b"\xff\xfe\x00\x01",
        b"{\"name\":\"n\",\"cniVersion\":\"1.0.0\",\"x\":\"\xff\xfe\"}",
        b"{\"name\":\"n\",\"x\":\"\\ud800\"}",
        b"\x00",
        b"{\"name\":\"n\x00\"}",
        b"{\"\":{\"\":[]}}",
    ];
    documents.iter().try_for_each(|document| {
        each_command(
            trial,
            &format!("{:?}", String::from_utf8_lossy(document)),
            document,
        )
    })
}

fn deep(trial: &Trial<'_>) -> Verdict {
    let text = format!(
        "{{\"name\":\"n\",\"x\":{}{}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    each_command(trial, "a deep document", text.as_bytes())
}

fn large(trial: &Trial<'_>) -> Verdict {
    let mut config = trial.config();
    merge(&mut config, &json!({"x": "x".repeat(5_000_000)}));
    each_command(trial, "a large document", config.to_string().as_bytes())
}

fn values() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("../../etc"),
        json!([]),
        json!([null]),
        json!([[{}]]),
        json!({}),
        json!({"a": null}),
    ]
}

/// An attachment, or a configuration without one where this machine allows none.
fn subject(trial: &Trial<'_>) -> Verdict<Attached> {
    if trial.subject.profile().needs_daemon {
        return skip("an ADD needs a daemon beside the plugin");
    }
    trial.attach()
}

fn both(trial: &Trial<'_>, what: &str, attached: &Attached, config: &Value) -> Verdict {
    for verb in ["ADD", "DEL"] {
        let ask = trial.ask_for(verb, attached).config(config);
        proper(trial, &format!("{verb} with {what}"), &ask)?;
    }
    Ok(())
}

fn odd_values(trial: &Trial<'_>) -> Verdict {
    let attached = subject(trial)?;
    let mut keys: Vec<String> = attached
        .config
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.clone())
        .collect();
    keys.extend(
        [
            "ipam",
            "dns",
            "args",
            "capabilities",
            "runtimeConfig",
            "prevResult",
            "mtu",
            "mac",
        ]
        .map(str::to_owned),
    );
    keys.sort();
    keys.dedup();
    for key in keys {
        for value in values() {
            let mut config = attached.config.clone();
            merge(&mut config, &json!({key.as_str(): value}));
            both(trial, &format!("{key} = {value}"), &attached, &config)?;
        }
    }
    Ok(())
}

fn odd_results(trial: &Trial<'_>) -> Verdict {
    let attached = subject(trial)?;
    let version = &trial.version;
    let results = [
        json!({}),
        json!({"cniVersion": ""}),
        json!({"cniVersion": "9.9.9"}),
        json!({"cniVersion": version, "ips": [null]}),
        json!({"cniVersion": version, "ips": [{}]}),
        json!({"cniVersion": version, "ips": [{"address": "nonsense"}]}),
        json!({"cniVersion": version, "ips": [{"address": "10.1.0.2/24", "interface": 99}]}),
        json!({"cniVersion": version, "ips": [{"address": "10.1.0.2/24", "interface": -1}]}),
        json!({"cniVersion": version, "interfaces": [null]}),
        json!({"cniVersion": version, "interfaces": [{"name": "../../x", "sandbox": "/"}]}),
        json!({"cniVersion": version, "routes": [{}]}),
        json!({"cniVersion": "0.2.0", "ip4": {}}),
        json!({"cniVersion": "0.2.0", "ip6": {"ip": "10.1.0.2/24"}}),
    ];
    for result in results {
        let mut config = attached.config.clone();
        merge(&mut config, &json!({"prevResult": result}));
        both(trial, &format!("prevResult = {result}"), &attached, &config)?;
        if trial.at_least("0.4.0") {
            let ask = trial.ask_for("CHECK", &attached).config(&config);
            proper(trial, &format!("CHECK with prevResult = {result}"), &ask)?;
        }
    }
    Ok(())
}

fn odd_runtime(trial: &Trial<'_>) -> Verdict {
    let attached = subject(trial)?;
    for key in [
        "portMappings",
        "ips",
        "mac",
        "bandwidth",
        "ipRanges",
        "deviceID",
    ] {
        for value in values() {
            let mut config = attached.config.clone();
            merge(
                &mut config,
                &json!({"capabilities": {key: true}, "runtimeConfig": {key: value}}),
            );
            both(
                trial,
                &format!("runtimeConfig.{key} = {value}"),
                &attached,
                &config,
            )?;
        }
    }
    Ok(())
}

fn environment(trial: &Trial<'_>) -> Verdict {
    let bytes = OsStr::from_bytes(b"\xff\xfe\x01");
    for key in [
        "CNI_COMMAND",
        "CNI_CONTAINERID",
        "CNI_NETNS",
        "CNI_IFNAME",
        "CNI_ARGS",
        "CNI_PATH",
    ] {
        for verb in ["ADD", "DEL"] {
            let ask = trial.ask(verb).set(key, bytes);
            proper(trial, &format!("{verb} with bytes in {key}"), &ask)?;
        }
    }
    Ok(())
}

fn paths(trial: &Trial<'_>) -> Verdict {
    for id in ["../../x", "/etc", "a/../../b", "."] {
        for verb in ["ADD", "DEL"] {
            let ask = trial.ask(verb).set("CNI_CONTAINERID", id);
            refused(
                &format!("{verb} with the container id {id:?}"),
                &trial.send(&ask)?,
            )?;
            let mut config = trial.config();
            merge(&mut config, &json!({"name": id}));
            let ask = trial.ask(verb).config(&config);
            refused(
                &format!("{verb} with the network name {id:?}"),
                &trial.send(&ask)?,
            )?;
        }
    }
    Ok(())
}

fn no_path(trial: &Trial<'_>) -> Verdict {
    let attached = subject(trial)?;
    if trial.subject.profile().role == Role::Interface {
        return skip("the stand-in for IPAM is a script and needs PATH itself");
    }
    let ask = trial.ask_for("DEL", &attached).unset("PATH");
    good("DEL without PATH", &trial.send(&ask)?)
}

fn long_arguments(trial: &Trial<'_>) -> Verdict {
    let attached = subject(trial)?;
    let args = format!("IgnoreUnknown=1;A={}", "x".repeat(100_000));
    for verb in ["ADD", "DEL"] {
        proper(
            trial,
            &format!("{verb} with long CNI_ARGS"),
            &trial.ask_for(verb, &attached).set("CNI_ARGS", &args),
        )?;
    }
    Ok(())
}

fn odd_attachments(trial: &Trial<'_>) -> Verdict {
    let _attached = subject(trial)?;
    let mut lists = values();
    lists.extend([
        json!([{"containerID": 5}]),
        json!([{"containerID": "../../x", "ifname": "a/b"}]),
        json!([{}]),
    ]);
    for list in lists {
        let mut config = trial.config();
        merge(
            &mut config,
            &json!({"cni.dev/valid-attachments": list, "ipam": {"type": crate::judge::standin::IPAM}}),
        );
        if trial.subject.profile().role == Role::Ipam {
            merge(&mut config, &json!({"ipam": trial.config().get("ipam")}));
        }
        proper(
            trial,
            &format!("GC with {list}"),
            &trial.ask_alone("GC").config(&config),
        )?;
    }
    Ok(())
}
