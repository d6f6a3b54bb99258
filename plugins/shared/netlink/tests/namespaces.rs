//! Naming, entering and leaving network namespaces.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;

use common::{host_and_container, new_netns};
use netlink::{Error, Handle, Netns};

sandboxed! {
    fn missing_path_is_told_apart() {
        let error = Netns::open("/run/netns/none-here").unwrap_err();
        assert!(error.is_netns_gone());
        assert!(error.to_string().contains("no such file or directory"), "{error}");
        assert!(Netns::open("/proc/4194305/ns/net").unwrap_err().is_netns_gone());
    }

    fn other_files_are_refused() {
        let regular = new_netns("a").with_file_name("regular");
        fs::write(&regular, "").unwrap();
        let fifo = regular.with_file_name("fifo");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [regular.as_path(), &fifo, Path::new("/run"), Path::new("/proc/self/status"), Path::new("/proc/self/ns/mnt")] {
            let error = Netns::open(path).unwrap_err();
            assert!(matches!(error, Error::NotNetns { .. }), "{path:?}: {error}");
            assert!(!error.is_netns_gone());
        }
        let text = Netns::open(&regular).unwrap_err().to_string();
        assert!(text.contains("unknown FS magic on \"/run/netns/regular\": 1021994"), "{text}");
    }

    fn identity_is_not_the_path() {
        let path = new_netns("a");
        let (first, again) = (Netns::open(&path).unwrap(), Netns::open(format!("/run/../{}", path.display())).unwrap());
        assert!(first.same_as(&again));
        assert_ne!(first.path(), again.path());
        assert!(!first.same_as(&Netns::open(new_netns("b")).unwrap()));
        assert!(Netns::current().unwrap().same_as(&Netns::open("/proc/self/ns/net").unwrap()));
        assert!(!Netns::current().unwrap().same_as(&first));
    }

    /// An open namespace outlives its path.
    fn deleted_path_does_not_matter() {
        let path = new_netns("a");
        let netns = Netns::open(&path).unwrap();
        nix::mount::umount2(&path, nix::mount::MntFlags::MNT_DETACH).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(Handle::open(&netns).unwrap().links().unwrap().len(), 1);
    }

    fn closures_run_inside_and_come_back() {
        let home = Netns::current().unwrap();
        let netns = Netns::open(new_netns("a")).unwrap();
        let inside = netns.run(|| Netns::current().unwrap()).unwrap();
        assert!(inside.same_as(&netns));
        assert!(Netns::current().unwrap().same_as(&home));
        let nested = netns.run(|| home.run(|| Netns::current().unwrap()).unwrap()).unwrap();
        assert!(nested.same_as(&home));
        assert!(Netns::current().unwrap().same_as(&home));
    }

    fn panics_come_back_too() {
        let home = Netns::current().unwrap();
        let netns = Netns::open(new_netns("a")).unwrap();
        let caught = catch_unwind(AssertUnwindSafe(|| netns.run(|| panic!("on purpose"))));
        assert!(caught.is_err());
        assert!(Netns::current().unwrap().same_as(&home));
        Handle::host().unwrap();
    }

    /// Only the calling thread moves.
    fn other_threads_stay() {
        let home = Netns::current().unwrap();
        let netns = Netns::open(new_netns("a")).unwrap();
        netns
            .run(|| {
                let elsewhere = home.clone();
                let seen = thread::scope(|scope| {
                    // A thread starts where its parent stands, and goes its own way from there.
                    scope.spawn(move || elsewhere.run(|| Netns::current().unwrap()).unwrap()).join().unwrap()
                });
                assert!(seen.same_as(&home));
                assert!(Netns::current().unwrap().same_as(&netns));
            })
            .unwrap();
    }

    fn handles_stay_with_their_namespace() {
        let (host, container) = host_and_container();
        common::bridge(&host, "only-host");
        container.inside(|| assert!(host.find_link("only-host").unwrap().is_some())).unwrap();
        assert!(container.find_link("only-host").unwrap().is_none());
    }
}
