//! Many at once.

use std::collections::BTreeSet;
use std::thread;

use crate::judge::attach::{Attached, brief, good, refused};
use crate::judge::check::{Check, Versions, reference, spec};
use crate::judge::profile::Role;
use crate::judge::trial::{Ask, Trial};
use crate::judge::verdict::{Verdict, ensure, fault, skip};
use crate::plugin::Answer;

const PARALLEL: &str = "2: a runtime may run plugins in parallel for different containers";

/// How many containers come at once.
const CROWD: usize = 10;

/// The checks.
pub const CHECKS: &[Check] = &[
    Check {
        id: "concurrency.adds",
        title: "ADDs of many containers at once all succeed",
        clause: spec(PARALLEL),
        versions: Versions::Newest,
        run: |trial| crowd(trial).map(drop),
    },
    Check {
        id: "concurrency.dels",
        title: "their DELs at once all succeed, and leave nothing",
        clause: spec(PARALLEL),
        versions: Versions::Newest,
        run: dels,
    },
    Check {
        id: "concurrency.distinct",
        title: "what they get at once is distinct: addresses, and interfaces of the host",
        clause: spec(PARALLEL),
        versions: Versions::Newest,
        run: distinct,
    },
    Check {
        id: "concurrency.coming-and-going",
        title: "ADDs among DELs of others succeed, and so do the DELs",
        clause: spec(PARALLEL),
        versions: Versions::Newest,
        run: mixed,
    },
    Check {
        id: "concurrency.del-of-the-same",
        title: "two DELs of one attachment at once both succeed",
        clause: spec("2 \"DEL\": plugins must accept multiple DEL calls"),
        versions: Versions::Newest,
        run: same,
    },
    Check {
        id: "concurrency.versions",
        title: "VERSION is answered by many at once",
        clause: reference("podman asks for every plugin at every command"),
        versions: Versions::Newest,
        run: versions,
    },
];

/// Makes all calls at once.
fn at_once(asks: &[Ask]) -> Vec<crate::Result<Answer>> {
    thread::scope(|scope| {
        let running: Vec<_> = asks
            .iter()
            .map(|ask| scope.spawn(move || ask.call().run()))
            .collect();
        running
            .into_iter()
            .map(|one| {
                one.join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    })
}

/// All must succeed.
fn all_good(trial: &Trial<'_>, verb: &str, asks: &[Ask]) -> Verdict<Vec<Answer>> {
    let mut answers = Vec::new();
    for (ask, answer) in asks.iter().zip(at_once(asks)) {
        let answer = answer?;
        if !answer.ok() {
            trial.note(ask, &answer.text());
            return fault(format!(
                "{verb} of one among {} failed: {}",
                asks.len(),
                brief(&answer)
            ));
        }
        answers.push(answer);
    }
    if let (Some(ask), Some(answer)) = (asks.last(), answers.last()) {
        trial.note(ask, &answer.text());
    }
    Ok(answers)
}

fn crowd(trial: &Trial<'_>) -> Verdict<Vec<Attached>> {
    let mut all = (0..CROWD)
        .map(|_| trial.attach())
        .collect::<Verdict<Vec<_>>>()?;
    let asks: Vec<Ask> = all.iter().map(|one| trial.ask_for("ADD", one)).collect();
    let answers = all_good(trial, "ADD", &asks)?;
    for (one, answer) in all.iter_mut().zip(answers) {
        one.result = answer.json();
    }
    Ok(all)
}

fn dels(trial: &Trial<'_>) -> Verdict {
    let probe = trial.attach()?;
    let before = trial.snapshot()?;
    drop(probe);
    let all = crowd(trial)?;
    let asks: Vec<Ask> = all.iter().map(|one| trial.ask_for("DEL", one)).collect();
    all_good(trial, "DEL", &asks)?;
    if trial.subject.profile().role == Role::Interface && !trial.subject.profile().takes_device {
        for one in &all {
            super::lifecycle::nothing_left(trial, &before, one)?;
        }
    }
    Ok(())
}

fn distinct(trial: &Trial<'_>) -> Verdict {
    let role = trial.subject.profile().role;
    let gives = role == Role::Interface || trial.subject.name == "host-local";
    if !gives {
        return skip("it gives nothing that must be distinct");
    }
    let all = crowd(trial)?;
    let mut seen = BTreeSet::new();
    let bridge = trial.place.bridge();
    for one in &all {
        let result = one.result.clone().unwrap_or_default();
        let addresses = crate::facts::addresses(&result)
            .into_iter()
            .map(|one| one.address.to_string());
        let links = crate::facts::interfaces(&result).into_iter();
        let links = links
            .filter(|link| link.sandbox.is_empty() && link.name != bridge)
            .map(|link| link.name);
        for thing in addresses.chain(links) {
            ensure(seen.insert(thing.clone()), || {
                format!("two of them got {thing}")
            })?;
        }
    }
    Ok(())
}

fn mixed(trial: &Trial<'_>) -> Verdict {
    let old = crowd(trial)?;
    let new = (0..CROWD)
        .map(|_| trial.attach())
        .collect::<Verdict<Vec<_>>>()?;
    let mut asks: Vec<Ask> = old.iter().map(|one| trial.ask_for("DEL", one)).collect();
    asks.extend(new.iter().map(|one| trial.ask_for("ADD", one)));
    all_good(trial, "ADD or DEL", &asks).map(drop)
}

fn same(trial: &Trial<'_>) -> Verdict {
    let attached = trial.added()?;
    let ask = trial.ask_for("DEL", &attached);
    all_good(trial, "DEL", &[ask.clone(), ask.clone(), ask]).map(drop)
}

fn versions(trial: &Trial<'_>) -> Verdict {
    let asks: Vec<Ask> = (0..CROWD).map(|_| trial.ask("VERSION")).collect();
    for answer in all_good(trial, "VERSION", &asks)? {
        good("VERSION", &answer)?;
        if answer.json().is_none() {
            return refused("VERSION", &answer).map(drop);
        }
    }
    Ok(())
}
