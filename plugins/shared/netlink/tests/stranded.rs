//! Without a way back nothing goes on in the wrong namespace.
//!
//! A program of its own without the test harness: it bars its way back by a new user namespace, which a process with
//! more than one thread cannot make.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use netlink::{Error, Handle, Netns, sysctl};
use nix::sched::{CloneFlags, unshare};

fn main() {
    // The harness' line tells the parent that the body has run.
    common::sandbox("stranded", || {
        refuses_everything();
        println!("1 passed");
    });
}

fn refuses_everything() {
    let netns = Netns::open(common::new_netns("a")).unwrap();
    common::until_alone();
    let error = netns
        .run(|| unshare(CloneFlags::CLONE_NEWUSER).unwrap())
        .unwrap_err();
    assert!(matches!(error, Error::Stranded { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("stranded in network namespace \"/run/netns/a\""),
        "{error}"
    );
    assert!(matches!(
        Handle::host().unwrap_err(),
        Error::Stranded { .. }
    ));
    assert!(matches!(
        Netns::current().unwrap_err(),
        Error::Stranded { .. }
    ));
    assert!(matches!(
        netns.run(|| ()).unwrap_err(),
        Error::Stranded { .. }
    ));
    let setting = sysctl::path(&["net", "ipv4", "ip_forward"]).unwrap();
    assert!(matches!(
        sysctl::read(&setting).unwrap_err(),
        Error::Stranded { .. }
    ));
}
