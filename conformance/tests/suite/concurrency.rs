//! Many commands at once, as on a node that starts or drains: nothing fails, nothing is given twice, nothing
//! stays.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use conformance::bench::scale::{Crowd, Rush};
use conformance::chain::{Network, Runtime};
use conformance::lists;
use conformance::snapshot::Leavings;

use super::support::{Lab, sandboxed};

const COUNT: usize = 32;
const AT_A_TIME: usize = 16;

/// No command may wait longer for others, however loaded the machine is that runs the tests.
const STALL: Duration = Duration::from_secs(20);

fn dual() -> Network {
    Network::parse(lists::NOMAD_DUAL).unwrap()
}

/// Dual stack with every rule in the reference set's layout.
fn by_iptables() -> Network {
    let text = lists::NOMAD_DUAL
        .replace(
            "\"ipMasq\":true",
            "\"ipMasq\":true,\"ipMasqBackend\":\"iptables\"",
        )
        .replace("\"snat\":true", "\"snat\":true,\"backend\":\"iptables\"");
    Network::parse(&text).unwrap()
}

fn by_nftables() -> Network {
    let text = lists::NOMAD_DUAL.replace("\"backend\":\"iptables\"", "\"backend\":\"nftables\"");
    Network::parse(&text).unwrap()
}

#[track_caller]
fn went_well(what: &str, rush: &Rush) {
    assert!(rush.failures.is_empty(), "{what}: {:#?}", rush.failures);
    assert!(rush.longest < STALL, "{what}: one took {:?}", rush.longest);
}

#[track_caller]
fn in_order(crowd: &Crowd<'_>) {
    let faults = crowd.judge().unwrap();
    assert!(faults.is_empty(), "{faults:#?}");
}

/// All at once on a fresh host, half of them again on a used one, then nobody.
#[track_caller]
fn come_and_go(lab: &Lab, network: Network) {
    let fresh = lab.snapshot();
    let mut crowd = Crowd::new(&lab.host, lab.ours.clone(), network);
    went_well(
        "ADD on a fresh host",
        &crowd.grow(COUNT, AT_A_TIME).unwrap(),
    );
    in_order(&crowd);
    went_well("DEL", &crowd.shrink(COUNT / 2, AT_A_TIME));
    in_order(&crowd);
    went_well("ADD on a used host", &crowd.grow(COUNT, AT_A_TIME).unwrap());
    in_order(&crowd);
    went_well("CHECK", &crowd.check(AT_A_TIME));
    went_well("DEL of all", &crowd.shrink(0, AT_A_TIME));
    nobody_left(lab, &fresh);
}

#[track_caller]
fn nobody_left(lab: &Lab, fresh: &conformance::snapshot::Snapshot) {
    let beyond = fresh.diff(&lab.snapshot()).beyond(&Leavings {
        bridge: "nomad",
        owners: &["5d3c0ff3".to_owned(), "fd00:a110:c8::1:".to_owned()],
    });
    assert!(beyond.is_empty(), "{beyond:#?}");
}

/// While containers come and go, others are checked and the network is collected with all that stay as valid.
#[track_caller]
fn everything_at_once(lab: &Lab, network: Network) {
    let fresh = lab.snapshot();
    let collected = Network {
        version: "1.1.0".into(),
        ..network.clone()
    };
    let mut staying = Crowd::new(&lab.host, lab.ours.clone(), network.clone()).named("staying");
    went_well("ADD", &staying.grow(COUNT / 4, AT_A_TIME).unwrap());
    let over = AtomicBool::new(false);
    let runtime: &Runtime = &lab.ours;
    let all: Vec<_> = staying
        .members()
        .iter()
        .map(|member| &member.attachment)
        .collect();
    std::thread::scope(|scope| {
        let comers: Vec<_> = ["red", "green", "blue"]
            .into_iter()
            .map(|name| {
                let mut crowd = Crowd::new(&lab.host, runtime.clone(), network.clone()).named(name);
                scope.spawn(move || {
                    for _ in 0..3 {
                        went_well("ADD among others", &crowd.grow(4, 4).unwrap());
                        went_well("CHECK among others", &crowd.check(4));
                        went_well("DEL among others", &crowd.shrink(0, 4));
                    }
                })
            })
            .collect();
        // The network that is being collected is another one: those who come and go must not notice.
        let (all, over, collected) = (&all, &over, &collected);
        let collector = scope.spawn(move || {
            let mut rounds = 0;
            while !over.load(Ordering::Relaxed) || rounds == 0 {
                let other = Network {
                    name: "elsewhere".into(),
                    ..collected.clone()
                };
                runtime.gc(&other, Some(all)).unwrap();
                runtime.status(&other).unwrap();
                rounds += 1;
            }
        });
        let ended: Vec<_> = comers.into_iter().map(|comer| comer.join()).collect();
        over.store(true, Ordering::Relaxed);
        collector.join().unwrap();
        assert!(
            ended.iter().all(Result::is_ok),
            "somebody failed, see above"
        );
    });
    in_order(&staying);
    went_well("CHECK of those who stayed", &staying.check(AT_A_TIME));
    // Now that nobody else is on the network, nothing but the valid ones may stay, and all of them must.
    let all: Vec<_> = staying
        .members()
        .iter()
        .map(|member| &member.attachment)
        .collect();
    runtime.gc(&collected, Some(&all)).unwrap();
    went_well("CHECK after GC", &staying.check(AT_A_TIME));
    went_well("DEL of all", &staying.shrink(0, AT_A_TIME));
    nobody_left(lab, &fresh);
}

sandboxed! {
    fn all_at_once_with_the_firewall_by_iptables(lab) {
        come_and_go(lab, dual());
    }

    fn all_at_once_by_nftables(lab) {
        come_and_go(lab, by_nftables());
    }

    fn all_at_once_by_iptables(lab) {
        come_and_go(lab, by_iptables());
    }

    fn coming_going_checking_and_collecting_by_nftables(lab) {
        everything_at_once(lab, by_nftables());
    }

    fn coming_going_checking_and_collecting_by_iptables(lab) {
        everything_at_once(lab, by_iptables());
    }
}
