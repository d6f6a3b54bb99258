//! When the index is used, and when it must not be.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{RangeSet, RangeSpec};

const INDEX: &str = ".ferrule-index";

fn set(subnet: &str) -> RangeSet {
    RangeSet::new(vec![RangeSpec::subnet(subnet.parse().unwrap())]).unwrap()
}

fn owner(id: &str) -> Owner {
    Owner::new(id, "eth0")
}

fn open(dir: &Path) -> Store {
    Store::open(dir, &Options::default()).unwrap()
}

fn add(dir: &Path, id: &str) -> String {
    let mut store = open(dir);
    store.reclaim().unwrap();
    let given = store
        .allocate(&owner(id), &[set("10.0.0.0/20")], &[])
        .unwrap();
    given[0].address.ip().to_string()
}

/// Whether a question is answered out of the index.
fn uses_index(dir: &Path) -> bool {
    let mut store = open(dir);
    store.find(&owner("nobody")).unwrap();
    !store.leases.as_ref().unwrap().is_scan()
}

fn filled(count: usize) -> tempfile::TempDir {
    let tmp = tempfile::tempdir().unwrap();
    for n in 0..count {
        add(tmp.path(), &format!("c{n}"));
    }
    tmp
}

#[test]
fn our_own_changes_keep_the_index() {
    let tmp = filled(3);
    assert!(uses_index(tmp.path()));
    open(tmp.path()).release(&owner("c1")).unwrap();
    assert!(uses_index(tmp.path()));
    assert!(open(tmp.path()).find(&owner("c1")).unwrap().is_empty());
    assert_eq!(open(tmp.path()).find(&owner("c2")).unwrap().len(), 1);
    open(tmp.path()).collect(&[owner("c2")]).unwrap();
    assert!(uses_index(tmp.path()));
    let refused = open(tmp.path()).allocate(
        &owner("x"),
        &[set("10.0.0.0/20")],
        &["10.0.0.4".parse().unwrap()],
    );
    assert!(matches!(refused, Err(Error::InUse { .. })));
    assert!(uses_index(tmp.path()));
}

#[test]
fn a_foreign_writer_is_noticed() {
    let tmp = filled(3);
    fs::write(tmp.path().join("10.0.0.50"), "f\r\neth0").unwrap();
    assert!(!uses_index(tmp.path()));
    assert_eq!(open(tmp.path()).find(&owner("f")).unwrap().len(), 1);
    assert!(uses_index(tmp.path()));
    fs::remove_file(tmp.path().join("10.0.0.50")).unwrap();
    assert!(!uses_index(tmp.path()));
    // In the tick of our own change, and back to the same number of files.
    for n in 0..50 {
        let given = add(tmp.path(), &format!("r{n}"));
        fs::write(tmp.path().join(&given), "thief\r\neth0").unwrap();
        fs::rename(tmp.path().join(&given), tmp.path().join("10.0.9.9")).unwrap();
        assert!(
            open(tmp.path())
                .find(&owner(&format!("r{n}")))
                .unwrap()
                .is_empty()
        );
        assert_eq!(open(tmp.path()).release(&owner("thief")).unwrap().len(), 1);
    }
}

#[test]
fn a_copied_directory_has_no_index() {
    let tmp = filled(2);
    let copy = tempfile::tempdir().unwrap();
    let status = std::process::Command::new("cp")
        .arg("-a")
        .arg(tmp.path().join("."))
        .arg(copy.path())
        .status()
        .unwrap();
    assert!(status.success());
    assert_eq!(
        fs::metadata(copy.path()).unwrap().mtime(),
        fs::metadata(tmp.path()).unwrap().mtime()
    );
    assert!(!uses_index(copy.path()));
}

#[test]
fn any_damage_is_survived() {
    let tmp = filled(40);
    let index = tmp.path().join(INDEX);
    let good = fs::read(&index).unwrap();
    let stamp = fs::metadata(tmp.path()).unwrap().modified().unwrap();
    for at in (0..good.len()).step_by(97) {
        let mut bad = good.clone();
        bad[at] ^= 0x5a;
        fs::write(&index, &bad).unwrap();
        assert_eq!(
            open(tmp.path()).find(&owner("c7")).unwrap().len(),
            1,
            "{at}"
        );
        // The directory as the damaged index knew it.
        fs::write(&index, &bad).unwrap();
        let dir = File::open(tmp.path()).unwrap();
        dir.set_times(std::fs::FileTimes::new().set_modified(stamp))
            .unwrap();
        assert_eq!(add(tmp.path(), "new"), "10.0.0.42", "{at}");
        assert_eq!(open(tmp.path()).release(&owner("new")).unwrap().len(), 1);
        fs::write(tmp.path().join("last_reserved_ip.0"), "10.0.0.41").unwrap();
    }
    for length in [0, 1, 1023, 1024, 1500, good.len() - 1] {
        fs::write(&index, &good[..length]).unwrap();
        let dir = File::open(tmp.path()).unwrap();
        dir.set_times(std::fs::FileTimes::new().set_modified(stamp))
            .unwrap();
        assert_eq!(
            open(tmp.path()).find(&owner("c7")).unwrap().len(),
            1,
            "{length}"
        );
    }
}

#[test]
fn an_index_that_lies_is_not_believed() {
    let tmp = filled(3);
    // Rewritten in place: the directory's time stays.
    fs::write(tmp.path().join("10.0.0.3"), "other\r\neth0").unwrap();
    assert!(uses_index(tmp.path()));
    assert!(open(tmp.path()).find(&owner("c1")).unwrap().is_empty());
    assert_eq!(open(tmp.path()).release(&owner("other")).unwrap().len(), 1);
}

#[test]
fn a_full_range_is_looked_at_twice() {
    let tmp = tempfile::tempdir().unwrap();
    let small = [set("10.9.0.0/30")];
    open(tmp.path()).allocate(&owner("a"), &small, &[]).unwrap();
    // Removed while the index could not see it.
    let stamp = fs::metadata(tmp.path()).unwrap().modified().unwrap();
    fs::remove_file(tmp.path().join("10.9.0.2")).unwrap();
    let dir = File::open(tmp.path()).unwrap();
    dir.set_times(std::fs::FileTimes::new().set_modified(stamp))
        .unwrap();
    assert!(uses_index(tmp.path()));
    open(tmp.path()).allocate(&owner("b"), &small, &[]).unwrap();
}

#[test]
fn an_index_that_is_no_file_or_cannot_be_written_is_done_without() {
    let tmp = tempfile::tempdir().unwrap();
    fs::create_dir(tmp.path().join(INDEX)).unwrap();
    assert_eq!(add(tmp.path(), "a"), "10.0.0.2");
    assert_eq!(add(tmp.path(), "b"), "10.0.0.3");
    assert!(!uses_index(tmp.path()));
    assert_eq!(open(tmp.path()).release(&owner("a")).unwrap().len(), 1);
}

#[test]
fn growth_loses_nothing() {
    let tmp = filled(600);
    assert!(uses_index(tmp.path()));
    let mut store = open(tmp.path());
    for n in 0..600 {
        let found = store.find(&owner(&format!("c{n}"))).unwrap();
        assert_eq!(
            found,
            [format!("10.0.{}.{}", (n + 2) / 256, (n + 2) % 256)
                .parse::<IpAddr>()
                .unwrap()]
        );
    }
    assert!(!store.leases.as_ref().unwrap().is_scan());
    drop(store);
    // Addresses far apart need a page each.
    let far = RangeSet::new(vec![RangeSpec::subnet("2001:db8::/32".parse().unwrap())]).unwrap();
    for n in 0..100u128 {
        let wanted = IpAddr::V6((0x2001_0db8u128 << 96 | n << 64 | 5).into());
        let mut store = open(tmp.path());
        store
            .allocate(
                &owner(&format!("v6-{n}")),
                std::slice::from_ref(&far),
                &[wanted],
            )
            .unwrap();
    }
    assert!(uses_index(tmp.path()));
    assert_eq!(open(tmp.path()).usage(&[far]).unwrap()[0].leases, 100);
}

#[derive(Debug, Clone)]
enum Step {
    Add(u8),
    Ask(u8, u8),
    Del(u8),
    Collect(Vec<u8>),
    ForeignAdd(u8, u8),
    ForeignDel(u8),
    Torn(u8),
    Damage(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..40u8).prop_map(Step::Add),
        2 => (0..40u8, 0..40u8).prop_map(|(c, a)| Step::Ask(c, a)),
        5 => (0..40u8).prop_map(Step::Del),
        1 => proptest::collection::vec(0..40u8, 0..40).prop_map(Step::Collect),
        1 => (0..40u8, 0..40u8).prop_map(|(c, a)| Step::ForeignAdd(c, a)),
        1 => (0..40u8).prop_map(Step::ForeignDel),
        1 => (0..40u8).prop_map(Step::Torn),
        1 => any::<usize>().prop_map(Step::Damage),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever happens to the directory, the store says and does what a plain table of leases would.
    #[test]
    fn agrees_with_a_plain_table(steps in proptest::collection::vec(step(), 1..80)) {
        let tmp = tempfile::tempdir().unwrap();
        let sets = [set("10.0.0.0/27")];
        let mut table = std::collections::BTreeMap::<u8, Option<u8>>::new();
        let mut last = None::<u8>;
        let file = |a: u8| tmp.path().join(format!("10.0.0.{a}"));
        for step in steps {
            let mut store = open(tmp.path());
            store.reclaim().unwrap();
            table.retain(|_, holder| holder.is_some());
            match step {
                Step::Add(c) => {
                    let order: Vec<u8> = match last {
                        Some(last) => (last + 1..=30).chain(1..=last).collect(),
                        None => (1..=30).collect(),
                    };
                    let free = order.into_iter().find(|a| *a != 1 && !table.contains_key(a));
                    let held = table.iter().any(|(a, holder)| *holder == Some(c) && (1..=30).contains(a));
                    let got = store.allocate(&owner(&c.to_string()), &sets, &[]);
                    match (held, free) {
                        (true, _) => prop_assert!(matches!(got, Err(Error::Duplicate { .. })), "duplicate"),
                        (_, None) => prop_assert!(matches!(got, Err(Error::Exhausted { .. })), "exhausted"),
                        (_, Some(a)) => {
                            prop_assert_eq!(got.unwrap()[0].address.ip().to_string(), format!("10.0.0.{a}"));
                            table.insert(a, Some(c));
                            last = Some(a);
                        }
                    }
                }
                Step::Ask(c, a) => {
                    let held = table.iter().any(|(a, holder)| *holder == Some(c) && (1..=30).contains(a));
                    let fits = !held && (2..=30).contains(&a) && !table.contains_key(&a);
                    let got = store.allocate(&owner(&c.to_string()), &sets, &[format!("10.0.0.{a}").parse().unwrap()]);
                    prop_assert_eq!(got.is_ok(), fits);
                    if fits {
                        table.insert(a, Some(c));
                        last = Some(a);
                    }
                }
                Step::Del(c) => {
                    let freed = store.release(&owner(&c.to_string())).unwrap().len();
                    let before = table.len();
                    table.retain(|_, holder| *holder != Some(c));
                    prop_assert_eq!(freed, before - table.len());
                }
                Step::Collect(valid) => {
                    let owners: Vec<Owner> = valid.iter().map(|c| owner(&c.to_string())).collect();
                    store.collect(&owners).unwrap();
                    table.retain(|_, holder| holder.is_some_and(|c| valid.contains(&c)));
                }
                Step::ForeignAdd(c, a) => {
                    drop(store);
                    fs::write(tmp.path().join("moved"), format!("{c}\r\neth0")).unwrap();
                    fs::rename(tmp.path().join("moved"), file(a)).unwrap();
                    table.insert(a, Some(c));
                }
                Step::ForeignDel(a) => {
                    drop(store);
                    let _ = fs::remove_file(file(a));
                    table.remove(&a);
                }
                Step::Torn(a) => {
                    drop(store);
                    let _ = fs::remove_file(file(a));
                    fs::write(file(a), "").unwrap();
                    table.insert(a, None);
                }
                Step::Damage(at) => {
                    drop(store);
                    if let Ok(mut bytes) = fs::read(tmp.path().join(INDEX)) {
                        let at = at % bytes.len();
                        bytes[at] ^= 1;
                        fs::write(tmp.path().join(INDEX), bytes).unwrap();
                    }
                }
            }
        }
        let mut left: Vec<u8> = fs::read_dir(tmp.path()).unwrap()
            .filter_map(|e| e.unwrap().file_name().to_str()?.strip_prefix("10.0.0.")?.parse().ok())
            .collect();
        left.sort_unstable();
        prop_assert_eq!(left, table.into_keys().collect::<Vec<_>>());
    }
}
