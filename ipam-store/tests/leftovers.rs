//! What crashes, reboots, full disks and other people's files leave behind.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::fs::{self, File, FileTimes};
use std::path::Path;
use std::time::{Duration, SystemTime};

use common::*;
use ipam_store::{Boot, Error, Options, Store, check_writable};

fn boot(id: &str) -> Options {
    Options {
        reclaim: Some(Boot {
            id: id.to_owned(),
            since: SystemTime::now() - Duration::from_secs(3600),
        }),
        ..Options::default()
    }
}

fn age(dir: &Path, name: &str) {
    let old = SystemTime::now() - Duration::from_secs(7200);
    let file = File::open(dir.join(name)).unwrap();
    file.set_times(FileTimes::new().set_modified(old)).unwrap();
}

fn add_in(options: &Options, dir: &Path, id: &str) -> String {
    let mut store = Store::open(dir, options).unwrap();
    store.reclaim().unwrap();
    let given = store
        .allocate(&owner(id), &[set(&["10.1.2.0/29"])], &[])
        .unwrap();
    given[0].address.ip().to_string()
}

#[test]
fn leases_of_an_earlier_boot_belong_to_nobody() {
    let tmp = tempfile::tempdir().unwrap();
    let (first, second) = (boot("first"), boot("second"));
    for id in ["a", "b", "c", "d", "e"] {
        add_in(&first, tmp.path(), id);
    }
    assert_eq!(read(tmp.path(), ".ferrule-boot"), "boot first\n");
    for name in lease_files(tmp.path()) {
        age(tmp.path(), &name);
    }
    // The range is full, and the same container comes again.
    assert!(
        Store::open(tmp.path(), &second)
            .unwrap()
            .is_stale(ip("10.1.2.2"))
            .unwrap()
    );
    assert!(
        Store::open(tmp.path(), &second)
            .unwrap()
            .usage(&[set(&["10.1.2.0/29"])])
            .unwrap()[0]
            .free
    );
    assert_eq!(add_in(&second, tmp.path(), "a"), "10.1.2.2");
    assert_eq!(lease_files(tmp.path()), ["10.1.2.2"]);
    assert_eq!(read(tmp.path(), ".ferrule-boot"), "boot second\n");
    assert!(
        !Store::open(tmp.path(), &second)
            .unwrap()
            .is_stale(ip("10.1.2.2"))
            .unwrap()
    );
}

#[test]
fn a_clock_that_is_wrong_after_a_reboot_does_not_matter() {
    let tmp = tempfile::tempdir().unwrap();
    let mut second = boot("second");
    // As the clock says, this boot began long before the leases of the one before it were written.
    second.reclaim.as_mut().unwrap().since = SystemTime::UNIX_EPOCH;
    add_in(&boot("first"), tmp.path(), "a");
    add_in(&boot("first"), tmp.path(), "b");
    // What does not write leases leaves it so.
    Store::open(tmp.path(), &second)
        .unwrap()
        .release(&owner("b"))
        .unwrap();
    Store::open(tmp.path(), &second)
        .unwrap()
        .collect(&[owner("a")])
        .unwrap();
    assert!(
        Store::open(tmp.path(), &second)
            .unwrap()
            .is_stale(ip("10.1.2.2"))
            .unwrap()
    );
    assert_eq!(add_in(&second, tmp.path(), "a"), "10.1.2.4");
    assert_eq!(lease_files(tmp.path()), ["10.1.2.4"]);
    assert!(
        !Store::open(tmp.path(), &second)
            .unwrap()
            .is_stale(ip("10.1.2.4"))
            .unwrap()
    );
    assert_eq!(add_in(&second, tmp.path(), "b"), "10.1.2.5");
}

#[test]
fn leases_written_since_the_boot_stay_whoever_wrote_them() {
    let tmp = tempfile::tempdir().unwrap();
    add_in(&boot("first"), tmp.path(), "old");
    age(tmp.path(), "10.1.2.2");
    // Another program, in the new boot, before our first command.
    fs::write(tmp.path().join("10.1.2.3"), "young\r\neth0").unwrap();
    assert_eq!(
        Store::open(tmp.path(), &boot("second"))
            .unwrap()
            .reclaim()
            .unwrap(),
        [ip("10.1.2.2")]
    );
    assert_eq!(lease_files(tmp.path()), ["10.1.2.3"]);
}

#[test]
fn nothing_is_reclaimed_without_knowing_the_boot() {
    let tmp = tempfile::tempdir().unwrap();
    for marker in [
        None,
        Some(""),
        Some("boot \n"),
        Some("nonsense"),
        Some("boot second"),
        Some("\0\0"),
    ] {
        fs::write(tmp.path().join("10.1.2.2"), "upstream\r\neth0").unwrap();
        age(tmp.path(), "10.1.2.2");
        let _ = fs::remove_file(tmp.path().join(".ferrule-boot"));
        if let Some(marker) = marker {
            fs::write(tmp.path().join(".ferrule-boot"), marker).unwrap();
        }
        assert!(
            Store::open(tmp.path(), &boot("second"))
                .unwrap()
                .reclaim()
                .unwrap()
                .is_empty(),
            "{marker:?}"
        );
        assert_eq!(read(tmp.path(), ".ferrule-boot"), "boot second\n");
        fs::remove_file(tmp.path().join("10.1.2.2")).unwrap();
    }
}

#[test]
fn reclaiming_can_be_switched_off() {
    let tmp = tempfile::tempdir().unwrap();
    add_in(&boot("first"), tmp.path(), "a");
    age(tmp.path(), "10.1.2.2");
    let keep = Options::default();
    assert_eq!(add_in(&keep, tmp.path(), "b"), "10.1.2.3");
    assert_eq!(lease_files(tmp.path()), ["10.1.2.2", "10.1.2.3"]);
    let e = Store::open(tmp.path(), &keep)
        .unwrap()
        .allocate(&owner("a"), &[set(&["10.1.2.0/29"])], &[])
        .unwrap_err();
    assert!(matches!(e, Error::Duplicate { .. }));
}

#[test]
fn a_present_boot_is_known() {
    let boot = Boot::current().unwrap();
    assert_eq!(boot.id.len(), 36);
    assert!(boot.since < SystemTime::now());
}

#[test]
fn torn_files_are_repaired() {
    for content in ["", " \n", "\0\0\0\0", "abc\0\0"] {
        let tmp = tempfile::tempdir().unwrap();
        for n in 2..=6 {
            fs::write(tmp.path().join(format!("10.1.2.{n}")), content).unwrap();
        }
        fs::write(tmp.path().join("last_reserved_ip.0"), content).unwrap();
        fs::write(tmp.path().join(".ferrule-new"), content).unwrap();
        fs::write(tmp.path().join(".ferrule-index"), content).unwrap();
        fs::write(tmp.path().join(".ferrule-boot"), content).unwrap();
        // A look repairs nothing, and does not hide the damage from the next change.
        assert!(open(tmp.path()).find(&owner("x")).unwrap().is_empty());
        assert_eq!(lease_files(tmp.path()).len(), 5);
        assert_eq!(
            add_in(&boot("b"), tmp.path(), "x"),
            "10.1.2.2",
            "{content:?}"
        );
        assert_eq!(lease_files(tmp.path()), ["10.1.2.2"]);
        assert_eq!(read(tmp.path(), "last_reserved_ip.0"), "10.1.2.2");
        assert!(!files(tmp.path()).contains(&".ferrule-new".to_owned()));
    }
}

#[test]
fn things_that_are_no_lease_files_keep_their_address() {
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir(tmp.path().join("10.1.2.2")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", tmp.path().join("10.1.2.3")).unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(tmp.path().join("10.1.2.4"))
        .status();
    assert!(fifo.unwrap().success());
    fs::write(tmp.path().join("10.1.2.5"), "x".repeat(200_000)).unwrap();
    assert_eq!(add_in(&boot("b"), tmp.path(), "x"), "10.1.2.6");
    let e = open(tmp.path())
        .allocate(&owner("y"), &[set(&["10.1.2.0/29"])], &[ip("10.1.2.3")])
        .unwrap_err();
    assert!(e.to_string().contains("in use by an unknown owner"), "{e}");
    open(tmp.path()).collect(&[]).unwrap();
    assert_eq!(
        lease_files(tmp.path()),
        ["10.1.2.2", "10.1.2.3", "10.1.2.4", "10.1.2.5"]
    );
}

#[test]
fn a_counter_that_cannot_be_written_takes_nothing() {
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir(tmp.path().join("last_reserved_ip.1")).unwrap();
    let sets = [set(&["10.1.2.0/29"]), set(&["10.3.0.0/29"])];
    let e = open(tmp.path())
        .allocate(&owner("a"), &sets, &[])
        .unwrap_err();
    assert!(e.to_string().contains("last_reserved_ip.1"), "{e}");
    assert!(lease_files(tmp.path()).is_empty());
    assert!(!files(tmp.path()).contains(&".ferrule-new".to_owned()));
}

#[test]
fn writable_places() {
    let tmp = tempfile::tempdir().unwrap();
    check_writable(tmp.path()).unwrap();
    check_writable(&tmp.path().join("not/yet/there")).unwrap();
    fs::write(tmp.path().join("file"), "").unwrap();
    assert!(
        check_writable(&tmp.path().join("file/net"))
            .unwrap_err()
            .to_string()
            .contains("file")
    );
    assert!(check_writable(Path::new("/proc/sys/net")).is_err());
}
