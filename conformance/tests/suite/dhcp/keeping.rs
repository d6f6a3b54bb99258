//! What becomes of a lease with time, and over the ends of daemons.

use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use conformance::chain::Attachment;
use conformance::net::{Netns, Rtnl};
use conformance::probe::{PATIENCE, ping};
use netlink_packet_route::AddressFamily;
use serde_json::json;

use super::super::support::{Lab, sandboxed};
use super::world::*;

/// Leases are so short here, in seconds, that they can be waited for.
const LEASE: u32 = 8;

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

/// An attachment of `c1`, its namespace, and when it was made.
fn attached(lab: &Lab) -> (Netns, Attachment, Instant) {
    let netns = lab.container("c1");
    let mut attachment = Attachment::new("c1", netns.path());
    let begun = Instant::now();
    lab.add(&list(json!({})), &mut attachment);
    (netns, attachment, begun)
}

/// Whether eth0 has a default route.
fn has_default(netns: &Netns) -> bool {
    let routes = Rtnl::open(netns).unwrap().routes().unwrap();
    routes.iter().any(|route| {
        let header = &route.header;
        header.destination_prefix_length == 0 && header.address_family == AddressFamily::Inet
    })
}

sandboxed! {
    fn a_lease_is_renewed_after_half_its_time_by_its_server(lab) {
        let server = dhcpd(lab, LEASE, "");
        let frames = Frames::listen(lab);
        let _daemon = daemon(lab, &[]);
        let (netns, attachment, begun) = attached(lab);
        let list = list(json!({}));
        for round in 1_u32..=3 {
            let frame = until(seconds(7.0), "a renewal", || frames.extensions().get(round as usize - 1).cloned());
            let half = f64::from(LEASE) / 2.0;
            let after = (frame.at - begun).as_secs_f64();
            let due = half * f64::from(round);
            assert!((due - 1.5..due + 1.5).contains(&after), "renewal {round} came after {after} s");
            // From the leased address to its server alone, without options 50 and 54 (RFC 2131, 4.3.6).
            assert!(!frame.is_broadcast(), "{frame:?}");
            assert_eq!((frame.to, frame.from, frame.wanted), (SERVER, frame.own, None), "{frame:?}");
            assert_eq!(frame.id, b"\0c1/lan/eth0");
        }
        // It would have ended by now.
        assert!(begun.elapsed() > seconds(f64::from(LEASE)));
        lab.check(&list, &attachment);
        ping(&netns, SERVER.into(), PATIENCE).unwrap();
        assert_eq!(frames.extensions().len(), 3, "one packet each");
        lab.del(&list, &attachment);
        until(SOON, "the release", || server.log().contains("DHCPRELEASE of").then_some(()));
        assert!(server.log().contains("(found)"), "{}", server.log());
    }

    fn a_silent_server_is_asked_alone_then_all_are_and_then_the_address_goes(lab) {
        let server = dhcpd(lab, LEASE, "");
        let frames = Frames::listen(lab);
        let daemon = daemon(lab, &[]);
        let (netns, attachment, begun) = attached(lab);
        let list = list(json!({}));
        let before = addresses(&netns);
        assert!(has_default(&netns));
        server.kill();
        let all = frames.wait(SOON, "a rebinding", |frame| frame.is_broadcast() && !frame.own.is_unspecified());
        // 85 % of eight seconds, in whole seconds, from a moment in whole seconds.
        let after = (all.at - begun).as_secs_f64();
        assert!((4.9..8.3).contains(&after), "{after}");
        assert_eq!((all.kind, all.from, all.to), (REQUEST, all.own, Ipv4Addr::BROADCAST), "{all:?}");
        let alone: Vec<Frame> = frames.extensions().into_iter().filter(|frame| frame.at < all.at).collect();
        assert!(!alone.is_empty() && alone.iter().all(|frame| frame.to == SERVER && !frame.is_broadcast()), "{alone:?}");
        until(SOON, "the end of the address", || addresses(&netns).is_empty().then_some(()));
        let after = begun.elapsed().as_secs_f64();
        assert!((7.0..10.0).contains(&after), "{after}");
        let text = lab.ours.check(&list, &attachment).expect_err("it has ended").to_string();
        assert!(text.contains("has ended"), "{text}");
        assert!(Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.up, "the interface is the workload's");

        // It comes back, with its routes, when a server gives it.
        let server = dhcpd(lab, LEASE, "");
        until(Duration::from_secs(20), "the address to come back", || (addresses(&netns) == before).then_some(()));
        until(SOON, "its routes", || has_default(&netns).then_some(()));
        ping(&netns, SERVER.into(), PATIENCE).unwrap();
        lab.check(&list, &attachment);
        frames.wait(SOON, "the next renewal", |frame| frame.at > begun + seconds(10.0) && !frame.is_broadcast() && !frame.own.is_unspecified());
        lab.del(&list, &attachment);
        until(SOON, "the release", || server.log().contains("DHCPRELEASE of").then_some(()));
        assert!(files().is_empty());
        drop(daemon);
    }

    fn an_address_that_the_server_takes_back_is_given_up_and_no_other_taken(lab) {
        let server = dhcpd(lab, LEASE, "");
        let frames = Frames::listen(lab);
        let daemon = daemon(lab, &[]);
        let (netns, attachment, _) = attached(lab);
        let before = addresses(&netns);
        server.kill();
        let (first, last) = (Ipv4Addr::new(192, 0, 2, 200), Ipv4Addr::new(192, 0, 2, 210));
        let other = dnsmasq_for(lab, first, last, &["--dhcp-authoritative"]);
        let heard = |what: &str| other.process.log().contains(what).then_some(());
        until(SOON, "a refusal", || heard("DHCPNAK"));
        until(SOON, "the end of the address", || addresses(&netns).is_empty().then_some(()));
        // It asks for the same one, and does not take what it is offered instead.
        frames.wait(SOON, "a discovery", |frame| frame.kind == DISCOVER && frame.wanted.is_some());
        until(SOON, "an offer", || heard("DHCPOFFER(eth0) 192.0.2.2"));
        assert!(heard("DHCPACK").is_none(), "{}", other.process.log());
        assert!(addresses(&netns).is_empty());
        other.process.kill();
        let _server = dhcpd(lab, LEASE, "");
        until(Duration::from_secs(20), "the address to come back", || (addresses(&netns) == before).then_some(()));
        lab.check(&list(json!({})), &attachment);
        lab.del(&list(json!({})), &attachment);
        drop(daemon);
    }

    fn leases_outlive_the_daemon(lab) {
        let server = dhcpd(lab, LEASE, "");
        let frames = Frames::listen(lab);
        let list = list(json!({}));
        let keeper = daemon(lab, &[]);
        let (netns, attachment, begun) = attached(lab);
        let before = addresses(&netns);
        assert!(keeper.stop(), "it ends well when it is asked to");
        assert!(!std::path::Path::new(SOCKET).exists());
        assert_eq!(files().len(), 1);
        assert!(frames.of(RELEASE).is_empty());

        let keeper = daemon(lab, &[]);
        lab.check(&list, &attachment);
        let first = frames.wait(SOON, "a renewal by the second daemon", |frame| frame.kind == REQUEST && !frame.own.is_unspecified());
        assert!((first.at - begun) < seconds(6.0), "{:?}", first.at - begun);
        until(SOON, "its answer", || server.log().matches("DHCPACK").nth(1).map(drop));
        keeper.kill();
        assert!(std::path::Path::new(SOCKET).exists(), "a killed daemon leaves its socket");

        let count = frames.extensions().len();
        let _third = daemon(lab, &[]);
        lab.check(&list, &attachment);
        until(SOON, "a renewal by the third daemon", || (frames.extensions().len() > count).then_some(()));
        assert_eq!(addresses(&netns), before);
        lab.del(&list, &attachment);
        frames.wait(SOON, "a release", |frame| frame.kind == RELEASE);
        assert!(files().is_empty());
    }

    fn a_lease_that_ends_while_no_daemon_runs_is_given_up_by_the_next(lab) {
        let server = dhcpd(lab, LEASE, "");
        let keeper = daemon(lab, &[]);
        let (netns, _attachment, begun) = attached(lab);
        let before = addresses(&netns);
        keeper.kill();
        server.kill();
        until(seconds(12.0), "the lease's end", || (begun.elapsed() > seconds(f64::from(LEASE) + 1.5)).then_some(()));
        assert_eq!(addresses(&netns), before, "nobody is there to take it off");
        let again = daemon(lab, &[]);
        until(SOON, "the end of the address", || addresses(&netns).is_empty().then_some(()));
        // That is remembered, too, with the routes that the lease had.
        again.kill();
        let _third = daemon(lab, &[]);
        let _server = dhcpd(lab, 120, "");
        until(Duration::from_secs(20), "the address to come back", || (addresses(&netns) == before).then_some(()));
        until(SOON, "its routes", || has_default(&netns).then_some(()));
    }

    fn leases_of_what_is_gone_are_not_taken_up(lab) {
        let _server = dnsmasq(lab, &[]);
        let keeper = daemon(lab, &[]);
        let list = list(json!({}));
        let mut namespaces: Vec<_> = (0..4).map(|number| lab.container(&format!("c{number}"))).collect();
        let attachments: Vec<Attachment> = namespaces.iter().enumerate().map(|(number, netns)| {
            let mut attachment = Attachment::new(&format!("c{number}"), netns.path());
            lab.add(&list, &mut attachment);
            attachment
        }).collect();
        assert_eq!(files().len(), 4);
        assert!(keeper.stop());
        // A namespace, an interface, and everything of an earlier start of the machine.
        drop(namespaces.remove(0));
        Rtnl::open(&namespaces[0]).unwrap().delete_link("eth0").unwrap();
        let old = files().into_iter().find(|file| fs::read_to_string(file).unwrap().contains("\"c2\"")).unwrap();
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        let text = fs::read_to_string(&old).unwrap();
        assert!(text.contains(boot.trim()), "{text}");
        fs::write(&old, text.replace(boot.trim(), "an-earlier-boot")).unwrap();
        fs::write(format!("{LEASES}/damaged.lease"), "{\"format\":").unwrap();
        let again = daemon(lab, &[]);
        let left = || files().into_iter().filter(|file| !file.ends_with("damaged.lease")).count();
        until(SOON, "the leases to be looked through", || (left() == 1).then_some(()));
        lab.check(&list, &attachments[3]);
        lab.ours.check(&list, &attachments[0]).expect_err("it is gone");
        for attachment in &attachments {
            lab.del(&list, attachment);
        }
        assert_eq!(left(), 0);
        assert!(again.log().contains("damaged.lease is no lease"), "{}", again.log());
    }
}
