//! One lock per command: mutual exclusion, deadline, holder.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::collections::HashSet;
use std::fs;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use common::*;
use ipam_store::{Error, Options, Store};

fn waiting(wait: Duration) -> Options {
    Options {
        wait,
        ..Options::default()
    }
}

#[test]
fn a_wait_ends_at_the_deadline_and_names_the_holder() {
    let tmp = tempfile::tempdir().unwrap();
    let held = open(tmp.path());
    let started = Instant::now();
    let e = Store::open(tmp.path(), &waiting(Duration::from_millis(200))).unwrap_err();
    let waited = started.elapsed();
    assert!(
        waited >= Duration::from_millis(200) && waited < Duration::from_secs(5),
        "{waited:?}"
    );
    let Error::Locked { path, holder, .. } = &e else {
        panic!("{e}");
    };
    assert_eq!(*path, tmp.path().join("lock"));
    assert_eq!(holder.as_ref().unwrap().pid, std::process::id() as i32);
    let text = e.to_string();
    assert!(
        text.contains("lock") && text.contains(&format!("process {}", std::process::id())),
        "{text}"
    );
    // The wait that was given up does not take the lock away from anybody.
    drop(held);
    drop(Store::open(tmp.path(), &waiting(Duration::from_secs(20))).unwrap());
    drop(Store::open(tmp.path(), &waiting(Duration::from_secs(20))).unwrap());
}

#[test]
fn a_lock_that_comes_free_is_taken_at_once() {
    let tmp = tempfile::tempdir().unwrap();
    let held = open(tmp.path());
    let barrier = Barrier::new(2);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            barrier.wait();
            Store::open(tmp.path(), &waiting(Duration::from_secs(60))).unwrap();
            Instant::now()
        });
        barrier.wait();
        let released = Instant::now();
        drop(held);
        let got = waiter.join().unwrap();
        assert!(got.duration_since(released) < Duration::from_secs(5));
    });
}

#[test]
fn the_lock_may_be_a_directory() {
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir(tmp.path().join("lock")).unwrap();
    let held = open(tmp.path());
    let e = Store::open(tmp.path(), &waiting(Duration::from_millis(10))).unwrap_err();
    assert!(matches!(e, Error::Locked { .. }));
    drop(held);
    open(tmp.path());
}

#[test]
fn parallel_allocations_give_no_address_twice_and_lose_none() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [set(&["10.1.0.0/22"]), set(&["2001:db8::/112"])];
    let (threads, each) = (16, 25);
    let given: Vec<Vec<String>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|t| {
                let (sets, dir) = (&sets, tmp.path());
                scope.spawn(move || {
                    let mut kept = Vec::new();
                    for n in 0..each {
                        let owner = owner(&format!("t{t}-{n}"));
                        let addresses = allocate(dir, &owner, sets);
                        if n % 3 == 0 {
                            assert_eq!(release(dir, &owner).len(), 2);
                        } else {
                            kept.extend(addresses);
                        }
                    }
                    kept
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let given: Vec<String> = given.into_iter().flatten().collect();
    let unique: HashSet<&String> = given.iter().collect();
    assert_eq!(unique.len(), given.len());
    let on_disk: HashSet<String> = lease_files(tmp.path()).into_iter().collect();
    assert_eq!(on_disk, given.into_iter().collect());
}
