//! Moving a link to another namespace under another name.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{host_and_container, new_netns};
use netlink::{Handle, LinkChange, Netns, NewVeth};

/// A link of that name on the host, its far end elsewhere.
fn device(host: &Handle, name: &str) {
    let place = if host.netns().is_some() {
        "there"
    } else {
        "here"
    };
    let far = new_netns(&format!("beyond-{name}-{place}"));
    let far = Handle::open(&Netns::open(far).unwrap()).unwrap();
    let pair = NewVeth {
        host_name: Some(name.to_owned()),
        host_up: true,
        ..NewVeth::new("far").unwrap()
    };
    host.create_veth(&pair, &far).unwrap();
}

fn to(container: &Handle, name: &str) -> LinkChange {
    LinkChange::new()
        .netns(container.netns().unwrap())
        .name(name)
}

sandboxed! {
    fn one_request_moves_renames_and_gives_an_alias() {
        let (host, container) = host_and_container();
        device(&host, "nic0");
        let before = host.link("nic0").unwrap();
        host.change_link(&before, &to(&container, "net1").alias("nic0")).unwrap();
        assert!(host.find_link("nic0").unwrap().is_none());
        let inside = container.link("net1").unwrap();
        assert_eq!((inside.mac, inside.alias.as_deref(), inside.up), (before.mac, Some("nic0"), false));

        let home = LinkChange::new().netns(&Netns::current().unwrap()).name("nic0").alias("");
        container.change_link(&inside, &home).unwrap();
        assert!(container.find_link("net1").unwrap().is_none());
        let back = host.link("nic0").unwrap();
        assert_eq!((back.mac, back.alias, back.up), (before.mac, None, false));
    }

    fn the_old_name_may_be_taken_where_it_goes() {
        let (host, container) = host_and_container();
        device(&host, "eth0");
        device(&container, "eth0");
        let mac = host.link("eth0").unwrap().mac;
        host.change_link(&host.link("eth0").unwrap(), &to(&container, "net1").alias("eth0")).unwrap();
        assert_eq!(container.link("net1").unwrap().mac, mac);
        assert_ne!(container.link("eth0").unwrap().mac, mac);
    }

    fn a_link_whose_both_names_are_taken_stays_where_it_is() {
        let (host, container) = host_and_container();
        device(&host, "eth0");
        device(&container, "eth0");
        let before = host.link("eth0").unwrap();
        let error = host.change_link(&before, &to(&container, "lo").alias("eth0")).unwrap_err();
        assert!(error.is_exists() && error.to_string().starts_with("cannot move link eth0"), "{error}");
        assert_eq!(host.link("eth0").unwrap(), before);
    }

    fn a_link_whose_new_name_is_taken_is_refused() {
        let (host, container) = host_and_container();
        device(&host, "nic0");
        device(&container, "net1");
        let before = host.link("nic0").unwrap();
        let error = host.change_link(&before, &to(&container, "net1").alias("nic0")).unwrap_err();
        assert!(error.is_exists(), "{error}");
        // It went under its old name before the new one was tried.
        assert!(host.find_link("nic0").unwrap().is_none());
        let inside = container.link("nic0").unwrap();
        assert_eq!((inside.mac, inside.alias), (before.mac, None));
    }
}
