//! Parallel use and cost.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::*;
use netfilter::{ApplyOptions, Backend, Hints, Intent, Kinds, Netfilter, Protocol};

fn intents(number: u32) -> Vec<Intent> {
    let v4 = format!(
        "10.{}.{}.{}/16",
        80 + number / 60_000,
        number / 250 % 250,
        2 + number % 250
    );
    let port = u16::try_from(1024 + number % 60_000).unwrap();
    vec![
        masquerade(&v4),
        publish(Protocol::Tcp, port, &v4, 80),
        publish(Protocol::Udp, port, &v4, 80),
        Intent::Admit {
            address: v4.split('/').next().unwrap().parse().unwrap(),
            admin_chain: String::new(),
            zone: None,
        },
        Intent::Confine {
            bridge: "br0".into(),
            port: None,
            policy: netfilter::Policy::SameBridge,
        },
    ]
}

fn apply(number: u32) {
    let mut netfilter = Netfilter::open().unwrap();
    let owner = owner(&format!("id{number}"));
    netfilter
        .apply(
            Backend::Nftables,
            &owner,
            &intents(number),
            &ApplyOptions::default(),
        )
        .unwrap();
}

fn verify(number: u32) {
    let mut netfilter = Netfilter::open().unwrap();
    netfilter
        .verify(
            Backend::Nftables,
            &owner(&format!("id{number}")),
            &intents(number),
        )
        .unwrap();
}

fn remove(number: u32) {
    let mut netfilter = Netfilter::open().unwrap();
    netfilter
        .remove(
            &owner(&format!("id{number}")),
            Kinds::ALL,
            &Hints::default(),
        )
        .unwrap();
}

#[test]
fn sixteen_at_once_lose_nothing() {
    isolated("sixteen_at_once_lose_nothing", || {
        std::thread::scope(|scope| {
            for thread in 0..16 {
                scope.spawn(move || {
                    for round in 0..8 {
                        let number = thread * 100 + round;
                        apply(number);
                        verify(number);
                        if round % 2 == 1 {
                            remove(number);
                        }
                    }
                });
            }
        });
        for thread in 0..16 {
            for round in [0, 2, 4, 6] {
                verify(thread * 100 + round);
            }
        }
        assert_eq!(ruleset().matches("goto masq-").count(), 16 * 4);
        for thread in 0..16 {
            for round in [0, 2, 4, 6] {
                remove(thread * 100 + round);
            }
        }
        let left = ruleset();
        assert!(
            !left.contains("elements") && !left.contains("chain masq-"),
            "{left}"
        );
    });
}

/// The last container of a subnet goes while the next one comes, over and over, in processes of their own.
#[test]
fn coming_and_going_of_processes() {
    const NUMBER: &str = "NETFILTER_TEST_NUMBER";
    if let Ok(number) = std::env::var(NUMBER) {
        let number = number.parse().unwrap();
        for _ in 0..20 {
            apply(number);
            remove(number);
        }
        return;
    }
    isolated("coming_and_going_of_processes", || {
        let spawn = |number: u32| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "coming_and_going_of_processes"])
                .env(NUMBER, number.to_string());
            command
                .stdout(Stdio::null())
                .stderr(Stdio::inherit())
                .spawn()
                .unwrap()
        };
        let children: Vec<_> = (0..8).map(spawn).collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let left = ruleset();
        assert!(
            !left.contains("elements") && !left.contains("chain masq-"),
            "{left}"
        );
    });
}

#[test]
fn other_writers_disturb_nothing() {
    isolated("other_writers_disturb_nothing", || {
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    nft("table ip other { chain c { accept; }; set s { type ipv4_addr; elements = { 10.0.0.1 }; }; }");
                    nft("delete table ip other");
                }
            });
            for number in 0..60 {
                apply(number);
                verify(number);
                if number % 2 == 0 {
                    remove(number);
                }
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        for number in (1..60).step_by(2) {
            verify(number);
        }
    });
}

#[test]
fn missing_permission_is_said_to_be_that() {
    const BARE: &str = "NETFILTER_TEST_BARE";
    if std::env::var(BARE).is_ok() {
        let mut netfilter = Netfilter::open().unwrap();
        let unavailable = |result: Result<(), netfilter::Error>| {
            let error = result.unwrap_err();
            assert!(
                matches!(error, netfilter::Error::Unavailable { .. }),
                "{error:?}"
            );
            assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
        };
        unavailable(netfilter.apply(
            Backend::Nftables,
            &owner("one"),
            &intents(1)[..1],
            &ApplyOptions::default(),
        ));
        unavailable(netfilter.status(Backend::Nftables, Kinds::MASQUERADE));
        return;
    }
    isolated("missing_permission_is_said_to_be_that", || {
        // Root of a user namespace below has no say in the network namespace above it.
        let mut command = Command::new("unshare");
        command.arg("--user");
        command
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "missing_permission_is_said_to_be_that"]);
        let output = command.env(BARE, "1").output().expect("install util-linux");
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
    });
}

#[test]
fn cost_does_not_grow_with_what_is_there() {
    isolated("cost_does_not_grow_with_what_is_there", || {
        let median = |mut times: Vec<Duration>| {
            times.sort();
            times[times.len() / 2]
        };
        let round = |base: u32| {
            let numbers = base..base + 31;
            let time = |step: fn(u32), number| {
                let start = Instant::now();
                step(number);
                start.elapsed()
            };
            let applied = median(numbers.clone().map(|number| time(apply, number)).collect());
            let removed = median(numbers.map(|number| time(remove, number)).collect());
            (applied, removed)
        };
        apply(0);
        let few = round(10_000);
        for number in 1..1000 {
            apply(number);
        }
        let many = round(20_000);
        println!("apply, remove beside 1 owner: {few:?}, beside 1000: {many:?}");
        let slack = Duration::from_micros(300);
        assert!(many.0 < few.0 * 3 + slack, "apply: {few:?} became {many:?}");
        assert!(
            many.1 < few.1 * 3 + slack,
            "remove: {few:?} became {many:?}"
        );
    });
}
