//! Finding, changing and deleting links.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use common::{bridge, host_and_container, veth};
use netlink::{Error, Handle, LinkChange, MacAddr, Netns, NewVeth};

sandboxed! {
    fn lookup_by_name_index_and_alternative_name() {
        let (host, _container) = host_and_container();
        let br = bridge(&host, "cni0");
        let long = "a-rather-long-alternative-name-of-the-bridge";
        let status = std::process::Command::new("ip")
            .args(["link", "property", "add", "dev", "cni0", "altname", long])
            .status()
            .expect("this test needs ip(8) from iproute2");
        assert!(status.success());
        for found in [host.link("cni0").unwrap(), host.link(long).unwrap(), host.link_by_index(br.index).unwrap()] {
            assert_eq!((found.index, found.name.as_str()), (br.index, "cni0"));
            assert_eq!(found.alt_names, [long]);
        }
        let lo = host.link("lo").unwrap();
        assert!(lo.loopback && lo.up && lo.is_running());
        assert_eq!((lo.kind, lo.mac), (None, Some(MacAddr::default())));
    }

    fn spanning_tree_is_seen() {
        let (host, _container) = host_and_container();
        bridge(&host, "cni0");
        assert!(!host.link("cni0").unwrap().stp);
        let status = std::process::Command::new("ip")
            .args(["link", "set", "cni0", "type", "bridge", "stp_state", "1"])
            .status()
            .expect("this test needs ip(8) from iproute2");
        assert!(status.success());
        assert!(host.link("cni0").unwrap().stp);
    }

    fn absence_is_told() {
        let (host, _container) = host_and_container();
        let error = host.link("nothing").unwrap_err();
        assert!(error.is_not_found());
        assert_eq!(error.to_string().split(" (").next().unwrap(), "cannot find link nothing: no such device");
        assert!(host.link("an-alternative-name-nobody-has").unwrap_err().is_not_found());
        assert!(host.link_by_index(4711).unwrap_err().is_not_found());
        assert!(host.find_link("nothing").unwrap().is_none());
        for bad in ["", "a\0b", &"x".repeat(128)] {
            assert!(matches!(host.link(bad).unwrap_err(), Error::BadName { .. }), "{bad:?}");
        }
        assert!(host.set_up(&4711).unwrap_err().is_not_found());
        assert!(host.delete_link(&4711).unwrap_err().is_not_found());
    }

    fn every_change_is_made() {
        let (host, container) = host_and_container();
        let br = bridge(&host, "cni0");
        let made = veth(&host, &container);
        let mac: MacAddr = "02:00:00:00:00:09".parse().unwrap();
        let change = LinkChange::new()
            .name("renamed")
            .mac(mac)
            .mtu(1300)
            .master(br.index)
            .alias("of somebody")
            .promisc(true)
            .tx_queue_len(77)
            .up(true);
        host.change_link(&made.host, &change).unwrap();
        let link = host.link("renamed").unwrap();
        assert_eq!((link.index, link.mac, link.mtu, link.master), (made.host.index, Some(mac), 1300, Some(br.index)));
        assert_eq!(link.alias.as_deref(), Some("of somebody"));
        assert_eq!(link.tx_queue_len, 77);
        assert!(link.up && link.promisc && link.promiscuity >= 1);
        assert!(!link.carrier && !link.is_running());

        host.change_link(&link, &LinkChange::new().master(0).promisc(false).up(false).alias("")).unwrap();
        let link = host.link("renamed").unwrap();
        assert_eq!((link.master, link.alias.as_deref()), (None, None));
        assert!(!link.up && !link.promisc);
        assert!(link.port.is_none());
    }

    fn refusals_carry_the_object_and_the_reason() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        bridge(&host, "cni0");
        let error = host.change_link(&made.host, &LinkChange::new().name("cni0")).unwrap_err();
        assert!(error.is_exists());
        assert!(error.to_string().starts_with(&format!("cannot rename link {}: file exists", made.host.name)), "{error}");
        let error = host.change_link(&made.host, &LinkChange::new().mtu(70_000)).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("cannot set the MTU of {}: invalid argument", made.host.name)), "{text}");
        assert!(text.contains("mtu greater than device maximum"), "the kernel's own words are missing: {text}");
        let multicast = LinkChange::new().mac("01:00:00:00:00:01".parse().unwrap());
        host.change_link(&made.host, &multicast).unwrap_err();
        let lo = host.link("lo").unwrap();
        let text = host.delete_link(&lo).unwrap_err().to_string();
        assert!(text.starts_with("cannot delete link lo: operation not supported"), "{text}");
    }

    fn dumps_larger_than_one_datagram_are_whole() {
        let (host, _container) = host_and_container();
        for n in 0..150 {
            let wanted = NewVeth { host_name: Some(format!("left{n}")), ..NewVeth::new(format!("right{n}")).unwrap() };
            host.create_veth(&wanted, &host).unwrap();
        }
        let mut names: Vec<_> = host.links().unwrap().into_iter().map(|link| link.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 301);
    }

    /// Listings stay right while others make and delete links all the time.
    fn dumps_during_changes() {
        let (host, container) = host_and_container();
        for n in 0..60 {
            let wanted = NewVeth { host_name: Some(format!("left{n}")), ..NewVeth::new(format!("right{n}")).unwrap() };
            host.create_veth(&wanted, &container).unwrap();
        }
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (host, netns) = (Handle::host().unwrap(), Netns::open("/run/netns/blue").unwrap());
                let container = Handle::open(&netns).unwrap();
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let made = veth(&host, &container);
                    host.delete_link(&made.host).unwrap();
                }
            });
            for _ in 0..200 {
                let mut seen: Vec<_> = host.links().unwrap().into_iter().map(|link| link.index).collect();
                let found = seen.len();
                seen.sort_unstable();
                seen.dedup();
                assert!(found == seen.len() && (61..=62).contains(&found), "{found} links, {} of them distinct", seen.len());
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
