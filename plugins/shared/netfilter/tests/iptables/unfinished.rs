//! Writers that are killed at their work, and writers that take too long.

use std::fs::{self, File};
use std::time::Duration;

use super::sandbox::*;
use netfilter::{ApplyOptions, Backend, Error, Kinds, Netfilter, Owner};
use nix::fcntl::{Flock, FlockArg};

const LOCK: &str = "/run/ferrule/iptables.lock";

/// As if the owner's writer had been killed after `iptables-restore` and before the rules were marked.
fn killed(owner: &Owner) {
    apply(owner, &[admit("10.88.0.2"), admit("fd00::2")]).unwrap();
    assert_eq!(
        fs::read_to_string(LOCK).unwrap(),
        "",
        "a writer that ends cleans up"
    );
    for tool in ["iptables", "ip6tables"] {
        sh(&format!(
            "{tool}-save > /run/rules && {tool} -F && {tool}-restore /run/rules"
        ));
    }
    let note = format!("{}\n10.88.0.2\nfd00::2\n\n", owner.comment());
    fs::write(LOCK, note).unwrap();
}

fn admitted() -> bool {
    save("iptables", "filter").contains("10.88.0.2")
        || save("ip6tables", "filter").contains("fd00::2")
}

sandboxed! {
    /// DEL with nothing but the names.
    fn the_owners_removal_finds_what_a_killed_writer_made() {
        let owner = owner("n", "c1", "eth0");
        killed(&owner);
        remove(&owner, &[]);
        assert!(!admitted());
        assert_eq!(fs::read_to_string(LOCK).unwrap(), "");
    }

    /// GC finds it, unless the container is one of the living.
    fn a_collection_finds_what_a_killed_writer_made() {
        let owner = owner("n", "c1", "eth0");
        killed(&owner);
        let collect = |network, valid: &[Owner]| Netfilter::open().unwrap().collect(network, valid, Kinds::ALL);
        collect("other", &[]).unwrap();
        collect("n", std::slice::from_ref(&owner)).unwrap();
        assert!(admitted());
        collect("n", &[]).unwrap();
        assert!(!admitted());
    }

    /// The next writer says whose the rules are.
    fn the_next_writer_finishes_for_a_killed_one() {
        let (dead, next) = (owner("n", "c1", "eth0"), owner("n", "c2", "eth0"));
        killed(&dead);
        apply(&next, &[admit("10.88.0.3")]).unwrap();
        assert_eq!(fs::read_to_string(LOCK).unwrap(), "");
        remove(&dead, &[]);
        assert!(!admitted());
        verify(&next, &[admit("10.88.0.3")]).unwrap();
    }

    /// A torn or foreign note is nobody's.
    fn a_damaged_note_is_passed_over() {
        let owner = owner("n", "c1", "eth0");
        killed(&owner);
        fs::write(LOCK, "\u{0}no note\n10.88.0.2").unwrap();
        apply(&owner, &[admit("10.88.0.2"), admit("fd00::2")]).unwrap();
        remove(&owner, &[]);
        assert!(!admitted());
    }

    /// Waiting has an end, and the message names the lock and who has it.
    fn a_lock_that_stays_held_names_its_holder() {
        let owner = owner("n", "c1", "eth0");
        apply(&owner, &[admit("10.88.0.2")]).unwrap();
        let _held = Flock::lock(File::open(LOCK).unwrap(), FlockArg::LockExclusive).unwrap();
        let options = ApplyOptions { timeout: Duration::from_millis(50), ..ApplyOptions::default() };
        let applied = Netfilter::open().unwrap().apply(Backend::Iptables, &owner, &[admit("10.88.0.3")], &options);
        let error = applied.unwrap_err();
        assert!(matches!(error, Error::Busy { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(LOCK) && text.contains(&format!("process {}", std::process::id())), "{text}");
    }
}
