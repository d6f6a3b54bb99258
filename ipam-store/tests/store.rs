//! Leases on disk: contents, order, release, collection, transactions.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use common::*;
use ipam_store::{Error, Holder, Options, Owner, Store};

#[test]
fn files_are_those_of_the_reference_set() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("networks/net1");
    let sets = [set(&["10.1.2.0/24"]), set(&["2001:db8:1::/64"])];
    assert_eq!(
        allocate(&dir, &owner("dummy"), &sets),
        ["10.1.2.2", "2001:db8:1::2"]
    );
    for name in ["10.1.2.2", "2001:db8:1::2"] {
        assert_eq!(read(&dir, name), "dummy\r\neth0");
    }
    assert_eq!(read(&dir, "last_reserved_ip.0"), "10.1.2.2");
    assert_eq!(read(&dir, "last_reserved_ip.1"), "2001:db8:1::2");
    assert_eq!(read(&dir, "lock"), "");
    for name in ["10.1.2.2", "last_reserved_ip.0"] {
        let mode = fs::metadata(dir.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(!files(&dir).contains(&".ferrule-new".to_owned()));
}

#[test]
fn a_freed_address_waits_for_its_turn() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [set(&["10.1.2.0/29"])];
    for n in 2..=6 {
        assert_eq!(
            allocate(tmp.path(), &owner("a"), &sets),
            [format!("10.1.2.{n}")]
        );
        assert_eq!(release(tmp.path(), &owner("a")).len(), 1);
    }
    assert_eq!(allocate(tmp.path(), &owner("a"), &sets), ["10.1.2.2"]);
}

#[test]
fn a_broken_counter_means_from_the_beginning() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [set(&["10.1.2.0/24"])];
    for content in [
        "",
        "nonsense",
        "10.1.2.77\n",
        "192.168.0.1",
        "\0\0",
        "\u{fffd}",
    ] {
        fs::write(tmp.path().join("last_reserved_ip.0"), content).unwrap();
        assert_eq!(
            allocate(tmp.path(), &owner("a"), &sets),
            ["10.1.2.2"],
            "{content:?}"
        );
        release(tmp.path(), &owner("a"));
    }
    fs::write(tmp.path().join("last_reserved_ip.0"), "10.1.2.77").unwrap();
    assert_eq!(allocate(tmp.path(), &owner("a"), &sets), ["10.1.2.78"]);
}

#[test]
fn interfaces_of_one_container_have_separate_leases() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [set(&["10.1.2.0/24"])];
    let (eth0, eth1) = (Owner::new("dummy", "eth0"), Owner::new("dummy", "eth1"));
    assert_eq!(allocate(tmp.path(), &eth0, &sets), ["10.1.2.2"]);
    assert_eq!(allocate(tmp.path(), &eth1, &sets), ["10.1.2.3"]);
    assert_eq!(release(tmp.path(), &eth0), [ip("10.1.2.2")]);
    assert_eq!(lease_files(tmp.path()), ["10.1.2.3"]);
}

#[test]
fn a_second_allocation_is_refused_and_changes_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [set(&["10.1.2.0/24"])];
    allocate(tmp.path(), &owner("a"), &sets);
    for requested in [&[][..], &[ip("10.1.2.9")]] {
        let e = open(tmp.path())
            .allocate(&owner("a"), &sets, requested)
            .unwrap_err();
        let text = e.to_string();
        assert!(matches!(e, Error::Duplicate { .. }), "{text}");
        assert!(
            text.contains("10.1.2.2")
                && text.contains("container a (eth0)")
                && text.contains("duplicate allocation is not allowed"),
            "{text}"
        );
    }
    assert_eq!(lease_files(tmp.path()), ["10.1.2.2"]);
    // Another set of the same network is another matter.
    assert_eq!(
        allocate(tmp.path(), &owner("a"), &[set(&["10.9.0.0/24"])]),
        ["10.9.0.2"]
    );
}

#[test]
fn roll_back_takes_only_what_the_call_took() {
    let tmp = tempfile::tempdir().unwrap();
    let (a, b) = (set(&["10.1.0.0/30"]), set(&["10.2.0.0/30"]));
    allocate(tmp.path(), &owner("a"), std::slice::from_ref(&b));
    // The new set 0 would give one, set 1 is full with the lease of somebody else.
    let e = open(tmp.path())
        .allocate(&owner("b"), &[a.clone(), b.clone()], &[])
        .unwrap_err();
    assert!(matches!(e, Error::Exhausted { index: 1, .. }), "{e}");
    assert!(
        e.to_string()
            .contains("no IP addresses available in range set 1 (10.2.0.1-10.2.0.2)"),
        "{e}"
    );
    assert_eq!(lease_files(tmp.path()), ["10.2.0.2"]);
    // The running container keeps its address when its own repetition fails.
    let e = open(tmp.path())
        .allocate(&owner("a"), &[a, b], &[ip("10.1.0.2")])
        .unwrap_err();
    assert!(matches!(e, Error::Duplicate { .. }), "{e}");
    assert_eq!(lease_files(tmp.path()), ["10.2.0.2"]);
}

#[test]
fn requested_addresses() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [
        set(&["10.1.2.0/24", "10.1.3.0/24"]),
        set(&["2001:db8::/64"]),
    ];
    let ask = |id: &str, wanted: &[&str]| {
        let wanted: Vec<_> = wanted.iter().map(|w| ip(w)).collect();
        open(tmp.path()).allocate(&owner(id), &sets, &wanted)
    };
    let got = ask("a", &["2001:db8::99", "10.1.3.7"]).unwrap();
    assert_eq!(got[0].address.to_string(), "10.1.3.7/24");
    assert_eq!(got[1].address.to_string(), "2001:db8::99/64");
    // The counter has moved with it.
    let got = ask("b", &[]).unwrap();
    assert_eq!(got[0].address.to_string(), "10.1.3.8/24");
    let before = files(tmp.path());
    let e = ask("c", &["10.1.3.7"]).unwrap_err().to_string();
    assert!(
        e.contains("10.1.3.7 is in use by container a (eth0), lease file"),
        "{e}"
    );
    for (wanted, gist) in [
        (&["10.1.2.1"][..], "is the gateway of subnet 10.1.2.0/24"),
        (
            &["10.1.2.0"],
            "cannot allocate all requested addresses: 10.1.2.0",
        ),
        (&["10.1.2.255"], "cannot allocate all requested addresses"),
        (
            &["10.1.2.9", "10.1.2.10"],
            "cannot allocate all requested addresses: 10.1.2.10",
        ),
        (&["192.0.2.1", "192.0.2.2"], "192.0.2.1 192.0.2.2"),
    ] {
        let e = ask("c", wanted).unwrap_err().to_string();
        assert!(e.contains(gist), "{e}");
    }
    assert_eq!(files(tmp.path()), before);
    assert_eq!(
        ask("d", &["::ffff:10.1.2.50"]).unwrap()[0]
            .address
            .to_string(),
        "10.1.2.50/24"
    );
}

#[test]
fn early_format_is_found_and_freed() {
    let tmp = tempfile::tempdir().unwrap();
    fs::write(tmp.path().join("10.1.2.5"), "a").unwrap();
    fs::write(tmp.path().join("10.1.2.6"), " b \n").unwrap();
    assert_eq!(
        open(tmp.path()).find(&owner("a")).unwrap(),
        [ip("10.1.2.5")]
    );
    let e = open(tmp.path())
        .allocate(&owner("a"), &[set(&["10.1.2.0/24"])], &[])
        .unwrap_err();
    assert!(matches!(e, Error::Duplicate { .. }));
    assert_eq!(release(tmp.path(), &owner("a")), [ip("10.1.2.5")]);
    assert_eq!(release(tmp.path(), &owner("b")), [ip("10.1.2.6")]);
    // A lease that names the interface comes first; the id-only one may be another interface's.
    fs::write(tmp.path().join("10.1.2.5"), "a").unwrap();
    fs::write(tmp.path().join("10.1.2.6"), "\ta\r\neth0\n").unwrap();
    assert_eq!(release(tmp.path(), &owner("a")), [ip("10.1.2.6")]);
    assert_eq!(release(tmp.path(), &owner("a")), [ip("10.1.2.5")]);
    // A bare line feed is no separator.
    fs::write(tmp.path().join("10.1.2.5"), "a\neth0").unwrap();
    assert!(release(tmp.path(), &owner("a")).is_empty());
}

#[test]
fn white_space_around_names_is_dropped() {
    let tmp = tempfile::tempdir().unwrap();
    allocate(
        tmp.path(),
        &Owner::new("   dummy\n ", "eth0"),
        &[set(&["10.1.2.0/24"])],
    );
    assert_eq!(read(tmp.path(), "10.1.2.2"), "dummy\r\neth0");
    assert_eq!(
        release(tmp.path(), &Owner::new("\tdummy", " eth0")).len(),
        1
    );
}

#[test]
fn a_container_named_like_an_address_frees_no_counter() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [set(&["10.1.2.0/24"])];
    allocate(tmp.path(), &owner("x"), &sets);
    fs::create_dir(tmp.path().join("sub")).unwrap();
    fs::write(tmp.path().join("sub/10.1.2.9"), "10.1.2.2").unwrap();
    assert!(release(tmp.path(), &owner("10.1.2.2")).is_empty());
    assert_eq!(read(tmp.path(), "last_reserved_ip.0"), "10.1.2.2");
    assert_eq!(read(tmp.path(), "sub/10.1.2.9"), "10.1.2.2");
}

#[test]
fn collect_frees_exactly_what_is_not_listed() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [set(&["10.1.2.0/24"])];
    for id in ["a", "b", "c"] {
        allocate(tmp.path(), &owner(id), &sets);
    }
    allocate(tmp.path(), &Owner::new("a", "eth1"), &sets);
    fs::write(tmp.path().join("10.1.2.100"), "a").unwrap();
    fs::write(tmp.path().join("10.1.2.101"), "gone").unwrap();
    fs::write(tmp.path().join("10.1.2.102"), "kept by hand").unwrap();
    fs::write(tmp.path().join("10.1.2.103"), "").unwrap();
    let mut freed = open(tmp.path()).collect(&[owner("a"), owner("c")]).unwrap();
    freed.sort();
    assert_eq!(
        freed,
        ["10.1.2.3", "10.1.2.5", "10.1.2.101", "10.1.2.103"].map(ip)
    );
    assert_eq!(
        lease_files(tmp.path()),
        ["10.1.2.100", "10.1.2.102", "10.1.2.2", "10.1.2.4"]
    );
    open(tmp.path()).collect(&[]).unwrap();
    assert_eq!(lease_files(tmp.path()), ["10.1.2.102"]);
    assert_eq!(read(tmp.path(), "last_reserved_ip.0"), "10.1.2.5");
}

#[test]
fn withdraw_leaves_others_alone() {
    let tmp = tempfile::tempdir().unwrap();
    let given = open(tmp.path())
        .allocate(
            &owner("a"),
            &[set(&["10.1.2.0/24"]), set(&["10.3.0.0/24"])],
            &[],
        )
        .unwrap();
    fs::write(tmp.path().join("10.3.0.2"), "other\r\neth0").unwrap();
    open(tmp.path()).withdraw(&owner("a"), &given).unwrap();
    assert_eq!(lease_files(tmp.path()), ["10.3.0.2"]);
    open(tmp.path()).withdraw(&owner("a"), &given).unwrap();
}

#[test]
fn usage_and_oldest() {
    let tmp = tempfile::tempdir().unwrap();
    let sets = [set(&["10.1.2.0/30"]), set(&["10.3.0.0/24"])];
    allocate(tmp.path(), &owner("a"), &sets);
    let usage = open(tmp.path()).usage(&sets).unwrap();
    assert_eq!((usage[0].leases, usage[0].free), (1, false));
    assert_eq!((usage[1].leases, usage[1].free), (1, true));
    let oldest = open(tmp.path()).oldest(1).unwrap();
    assert_eq!(oldest, [(ip("10.1.2.2"), Holder::Owner(owner("a")))]);
}

#[test]
fn a_missing_directory_is_not_made_by_a_look() {
    let tmp = tempfile::tempdir().unwrap();
    let dir = tmp.path().join("net");
    assert!(
        Store::open_existing(&dir, &Options::default())
            .unwrap()
            .is_none()
    );
    assert!(!dir.exists());
}
