//! Waiting for links and addresses by notification.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs
)]

mod common;

use std::thread;
use std::time::{Duration, Instant};

use common::{bridge, host_and_container, veth};
use netlink::{Error, Handle, Netns, NewAddress, NewVeth, OperState, sysctl};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

sandboxed! {
    /// The port, its bridge and the container's end: all can carry traffic, nothing of it takes long.
    fn port_runs_as_soon_as_both_ends_are_up() {
        let (host, container) = host_and_container();
        let br = bridge(&host, "cni0");
        let wanted = NewVeth { master: Some(br.index), host_up: true, ..NewVeth::new("eth0").unwrap() };
        let made = host.create_veth(&wanted, &container).unwrap();
        assert!(!host.link(&made.host.name).unwrap().is_running());
        container.set_up(&made.container).unwrap();
        let port = host.wait_running(&made.host, soon()).unwrap();
        assert_eq!(port.operstate, OperState::Up);
        assert_eq!(port.port.unwrap().state, 3);
        assert_eq!(host.wait_running(&br, soon()).unwrap().operstate, OperState::Up);
        assert_eq!(container.wait_running(&made.container, soon()).unwrap().operstate, OperState::Up);
    }

    /// The change comes while we wait: the notification wakes us.
    fn notification_ends_the_wait() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        host.set_up(&made.host).unwrap();
        let netns = Netns::open("/run/netns/blue").unwrap();
        let waiter = common::this_thread();
        let helper = thread::spawn(move || {
            common::until_asleep(&waiter);
            let container = Handle::open(&netns).unwrap();
            container.set_up(&container.link("eth0").unwrap()).unwrap();
        });
        assert!(host.wait_running(&made.host, soon()).unwrap().is_running());
        helper.join().unwrap();
    }

    fn deadline_tells_the_state() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        let deadline = || Instant::now() + Duration::from_millis(50);
        let error = host.wait_running(&made.host, deadline()).unwrap_err();
        assert!(matches!(error, Error::Timeout { .. }));
        let text = error.to_string();
        assert!(text.starts_with(&format!("{} is still administratively down after ", made.host.name)), "{text}");
        host.set_up(&made.host).unwrap();
        let text = host.wait_running(&made.host, deadline()).unwrap_err().to_string();
        assert!(text.contains(" is still without carrier after "), "{text}");
        host.wait_running(&made.host, Instant::now()).unwrap_err();
    }

    fn link_that_goes_away_ends_the_wait() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        let netns = Netns::open("/run/netns/blue").unwrap();
        let waiter = common::this_thread();
        let helper = thread::spawn(move || {
            common::until_asleep(&waiter);
            let container = Handle::open(&netns).unwrap();
            container.delete_link(&container.link("eth0").unwrap()).unwrap();
        });
        assert!(host.wait_running(&made.host, soon()).unwrap_err().is_not_found());
        helper.join().unwrap();
    }

    fn addresses_settle() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        host.set_up(&made.host).unwrap();
        container.set_up(&made.container).unwrap();
        container.add_address(&made.container, &NewAddress::new("fd00::2/64".parse().unwrap())).unwrap();
        assert!(container.addresses(&made.container).unwrap().iter().any(netlink::Address::is_tentative));
        container.wait_settled(&made.container, |_| true, soon()).unwrap();
        assert!(!container.addresses(&made.container).unwrap().iter().any(netlink::Address::is_tentative));
    }

    /// Addresses without detection are taken in once the wait is over, and others are not waited for if not asked for.
    fn addresses_without_detection_are_ready() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        host.set_up(&made.host).unwrap();
        container.set_up(&made.container).unwrap();
        for n in 1..=50 {
            let ours = format!("fd00::{n:x}/64").parse().unwrap();
            container.add_address(&made.container, &NewAddress::new(ours).nodad()).unwrap();
            container.wait_settled(&made.container, |a| a.ip == ours, soon()).unwrap();
            assert!(container.way_to(ours.ip()).unwrap().local);
        }
    }

    fn duplicate_is_named() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        host.set_up(&made.host).unwrap();
        container.set_up(&made.container).unwrap();
        let same = "fd00::2/64".parse().unwrap();
        host.add_address(&made.host, &NewAddress::new(same).nodad()).unwrap();
        container.add_address(&made.container, &NewAddress::new(same)).unwrap();
        let error = container.wait_settled(&made.container, |a| a.ip == same, soon()).unwrap_err();
        assert!(matches!(error, Error::Duplicate { .. }), "{error}");
        assert!(error.to_string().starts_with("address fd00::2 on eth0 is already used by another station"), "{error}");
    }

    fn detection_that_cannot_end_runs_into_the_deadline() {
        let (host, container) = host_and_container();
        let made = veth(&host, &container);
        container.inside(|| sysctl::write(&sysctl::conf("ipv6", "eth0", "accept_dad").unwrap(), "1").unwrap()).unwrap();
        container.set_up(&made.container).unwrap();
        container.add_address(&made.container, &NewAddress::new("fd00::2/64".parse().unwrap())).unwrap();
        let deadline = Instant::now() + Duration::from_millis(50);
        let error = container.wait_settled(&made.container, |_| true, deadline).unwrap_err();
        assert!(error.to_string().starts_with("address fd00::2 on eth0 is still tentative after "), "{error}");
    }
}
