//! The six commands with a daemon that runs, and without.

use std::fs;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use conformance::chain::Attachment;
use conformance::net::{Rtnl, UPLINK};
use conformance::probe::{PATIENCE, ping};
use serde_json::json;

use super::super::support::{address_of, fine, network, refused, sandboxed};
use super::world::*;

const VERSIONS: [&str; 7] = [
    "0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0",
];

sandboxed! {
    fn a_lease_comes_with_add_and_goes_with_del(lab) {
        let server = dnsmasq(lab, &[]);
        let frames = Frames::listen(lab);
        let _daemon = daemon(lab, &[]);
        for version in VERSIONS {
            let list = list_of(version, json!({}));
            let id = format!("c{}", version.replace('.', "-"));
            let netns = lab.container(&id);
            let mut attachment = Attachment::new(&id, netns.path());
            let begun = Instant::now();
            let result = lab.add(&list, &mut attachment);
            // The first packet may be lost; its repetition comes soon.
            assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
            let address = address_of(&result, true);
            assert!((FIRST..=LAST).contains(&match address { IpAddr::V4(v4) => v4, IpAddr::V6(_) => panic!("{address}") }));
            if version >= "0.3.0" {
                assert_eq!(result["ips"][0]["gateway"], SERVER.to_string(), "{result}");
                assert_eq!(result["routes"], json!([{"dst": "0.0.0.0/0", "gw": SERVER.to_string()}]));
            } else {
                assert_eq!(result["ip4"]["routes"][0]["gw"], SERVER.to_string(), "{result}");
            }
            ping(&netns, SERVER.into(), PATIENCE).unwrap();
            server.expect(1);
            if list.has(conformance::chain::Verb::Check) {
                lab.check(&list, &attachment);
            }
            let before = frames.all().len();
            lab.del(&list, &attachment);
            server.expect(0);
            let own_id = format!("\0{id}/lan/eth0").into_bytes();
            let release = frames.wait(SOON, "a release", |frame| frame.kind == RELEASE && frame.id == own_id);
            assert_eq!((release.to, IpAddr::V4(release.from), IpAddr::V4(release.own)), (SERVER, address, address), "{release:?}");
            assert!(!release.is_broadcast(), "{release:?}");
            assert!(frames.all().len() > before && files().is_empty());
            lab.del(&list, &attachment);
        }
    }

    fn options_go_to_the_server_and_come_from_there(lab) {
        let server = dnsmasq(lab, &["--dhcp-option=121,10.88.1.0/24,192.0.2.6,10.88.2.0/24,0.0.0.0", "--dhcp-authoritative"]);
        let frames = Frames::listen(lab);
        let _daemon = daemon(lab, &[]);
        let list = list(json!({"priority": 77, "request": [{"option": "121"}, {"option": "routers"}], "provide": [
            {"option": "host-name", "value": "fixed", "fromArg": "K8S_POD_NAME"},
            {"option": "dhcp-client-identifier", "value": "my-own-id"},
            {"option": "vendor-class-identifier", "value": "ferrule"},
        ]}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path()).args("IgnoreUnknown=1;K8S_POD_NAME=web;x;a=b=c");
        let result = lab.add(&list, &mut attachment);
        server.expect(1);
        let (_, name, id) = server.leases().remove(0);
        let hex: Vec<String> = b"my-own-id".iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((name.as_str(), id), ("web", hex.join(":")));
        assert!(server.process.log().contains("vendor class: ferrule"), "{}", server.process.log());
        // Classless routes stand for all others; the router is the gateway all the same.
        assert_eq!(result["ips"][0]["gateway"], SERVER.to_string());
        assert_eq!(result["routes"], json!([
            {"dst": "10.88.1.0/24", "gw": "192.0.2.6", "priority": 77},
            {"dst": "10.88.2.0/24", "gw": "0.0.0.0", "priority": 77, "scope": 253},
        ]), "{result}");
        lab.del(&list, &attachment);
        // Who asked by an identifier of its own gives back by the same.
        let release = frames.wait(SOON, "a release", |frame| frame.kind == RELEASE);
        assert_eq!(release.id, b"my-own-id");
        server.expect(0);
    }

    fn two_at_once_have_a_lease_each(lab) {
        let server = dnsmasq(lab, &[]);
        let _daemon = daemon(lab, &[]);
        let list = list(json!({}));
        let names: Vec<String> = (0..8).map(|number| format!("c{number}")).collect();
        let namespaces: Vec<_> = names.iter().map(|name| lab.container(name)).collect();
        let added: Vec<Attachment> = std::thread::scope(|scope| {
            let threads: Vec<_> = names.iter().zip(&namespaces).map(|(name, netns)| {
                let (list, ours) = (&list, &lab.ours);
                scope.spawn(move || {
                    let mut attachment = Attachment::new(name, netns.path());
                    ours.add(list, &mut attachment).unwrap_or_else(|error| panic!("{error}"));
                    attachment
                })
            }).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let mut given: Vec<String> = namespaces.iter().flat_map(addresses).collect();
        given.sort();
        given.dedup();
        assert_eq!(given.len(), 8, "{given:?}");
        server.expect(8);
        for attachment in &added {
            lab.check(&list, attachment);
            lab.del(&list, attachment);
        }
        server.expect(0);
    }

    fn two_calls_for_one_attachment_get_one_lease(lab) {
        let server = dnsmasq(lab, &[]);
        let frames = Frames::listen(lab);
        let _daemon = daemon(lab, &[]);
        let netns = lab.container("c1");
        segment(lab, &netns);
        let config = json!({"cniVersion": "1.0.0", "name": "lan", "type": "dhcp", "ipam": {"type": "dhcp"}});
        let attachment = Attachment::new("c1", netns.path());
        let results: Vec<String> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6).map(|_| {
                let call = lab.ours.call("dhcp", "ADD", &attachment).unwrap().stdin(config.to_string());
                scope.spawn(move || {
                    let answer = call.run().unwrap();
                    fine(&answer);
                    answer.json().unwrap().to_string()
                })
            }).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(results.iter().all(|result| *result == results[0]), "{results:?}");
        server.expect(1);
        let taken: Vec<Frame> = frames.of(REQUEST);
        assert!(!taken.is_empty() && taken.iter().all(|frame| frame.wanted == taken[0].wanted), "{taken:?}");
        fine(&lab.one("DEL", &config, &attachment));
        server.expect(0);
    }

    fn a_bridge_to_the_lan_works_too(lab) {
        let server = dnsmasq(lab, &[]);
        let frames = Frames::listen(lab);
        let _daemon = daemon(lab, &[]);
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl().set_master(UPLINK, "br0").unwrap();
        let list = network(&json!({"cniVersion": "1.1.0", "name": "lan", "plugins": [
            {"type": "bridge", "bridge": "br0", "ipam": {"type": "dhcp"}}]}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path());
        let result = lab.add(&list, &mut attachment);
        server.expect(1);
        ping(&netns, SERVER.into(), PATIENCE).unwrap();
        assert_eq!(result["ips"][0]["interface"], 2, "{result}");
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
        frames.wait(SOON, "a release", |frame| frame.kind == RELEASE && !frame.is_broadcast());
        server.expect(0);
    }

    fn a_card_of_the_host_on_the_lan_works_too(lab) {
        let server = dnsmasq(lab, &[]);
        let frames = Frames::listen(lab);
        let _daemon = daemon(lab, &[]);
        lab.rtnl().add_bridge("br0").unwrap();
        lab.rtnl().set_master(UPLINK, "br0").unwrap();
        lab.rtnl().add_veth("port1", lab.host.netns(), "card0").unwrap();
        lab.rtnl().set_master("port1", "br0").unwrap();
        for name in ["br0", "port1"] {
            lab.rtnl().set_up(name).unwrap();
        }
        let mac = lab.rtnl().link("card0").unwrap().facts.mac;
        let list = network(&json!({"cniVersion": "1.1.0", "name": "lan", "plugins": [
            {"type": "host-device", "device": "card0", "ipam": {"type": "dhcp"}}]}));
        for name in ["c1", "c2"] {
            let netns = lab.container(name);
            let mut attachment = Attachment::new(name, netns.path());
            let result = lab.add(&list, &mut attachment);
            server.expect(1);
            ping(&netns, SERVER.into(), PATIENCE).unwrap();
            assert_eq!(result["interfaces"][0]["mac"], mac, "{result}");
            assert_eq!(result["ips"][0]["gateway"], SERVER.to_string(), "{result}");
            lab.check(&list, &attachment);
            // The release goes out from the leased address while the card is still inside.
            lab.del(&list, &attachment);
            frames.wait(SOON, "a release", |frame| frame.kind == RELEASE && !frame.is_broadcast());
            server.expect(0);
            assert!(files().is_empty());
            assert_eq!(lab.rtnl().link("card0").unwrap().facts.mac, mac);
        }
    }

    fn check_asks_nobody_and_compares(lab) {
        let server = dnsmasq(lab, &[]);
        let frames = Frames::listen(lab);
        let _daemon = daemon(lab, &[]);
        let list = list(json!({}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path());
        let result = lab.add(&list, &mut attachment);
        let config = json!({"cniVersion": "1.1.0", "name": "lan", "type": "dhcp", "ipam": {"type": "dhcp"}, "prevResult": result});
        fine(&lab.one("CHECK", &config, &attachment));
        let mut other = config.clone();
        other["prevResult"]["ips"][0]["address"] = json!("192.0.2.99/24");
        let text = refused(&lab.one("CHECK", &other, &attachment), 999);
        assert!(text.contains("192.0.2.99"), "{text}");
        let before = frames.all().len();
        let stranger = Attachment::new("c2", netns.path());
        let text = refused(&lab.one("CHECK", &config, &stranger), 999);
        assert!(text.contains("c2/lan/eth0 has no lease"), "{text}");
        assert_eq!((server.leases().len(), files().len()), (1, 1));
        // The interface is gone, but not the lease.
        Rtnl::open(&netns).unwrap().delete_link("eth0").unwrap();
        refused(&lab.one("CHECK", &config, &attachment), 999);
        assert_eq!(frames.all().len(), before, "nobody was asked");
        lab.del(&list, &attachment);
        assert!(files().is_empty());
    }

    fn gc_gives_back_what_is_not_listed(lab) {
        let server = dnsmasq(lab, &[]);
        let keeper = daemon(lab, &[]);
        let list = list(json!({}));
        let namespaces: Vec<_> = (0..3).map(|number| lab.container(&format!("c{number}"))).collect();
        let attachments: Vec<Attachment> = namespaces.iter().enumerate().map(|(number, netns)| {
            let mut attachment = Attachment::new(&format!("c{number}"), netns.path());
            lab.add(&list, &mut attachment);
            attachment
        }).collect();
        server.expect(3);
        lab.ours.gc(&list, None).unwrap();
        lab.ours.gc(&list, Some(&[&attachments[0], &attachments[1]])).unwrap();
        server.expect(2);
        lab.check(&list, &attachments[0]);
        lab.ours.check(&list, &attachments[2]).expect_err("its lease was given back");
        // Leases of other networks are somebody else's.
        let mut other = list.clone();
        other.name = "other".into();
        lab.ours.gc(&other, Some(&[])).unwrap();
        assert_eq!(files().len(), 2);
        assert!(keeper.stop());
        lab.ours.gc(&list, Some(&[&attachments[0]])).unwrap();
        server.expect(1);
        assert_eq!(files().len(), 1);
        let _again = daemon(lab, &[]);
        lab.check(&list, &attachments[0]);
        lab.ours.gc(&list, Some(&[])).unwrap();
        server.expect(0);
        assert!(files().is_empty());
    }

    fn status_and_add_say_that_the_daemon_is_not_there(lab) {
        let list = list(json!({}));
        let status = |config: &serde_json::Value| {
            lab.ours.bare("dhcp", "STATUS").unwrap().stdin(config.to_string()).run().unwrap()
        };
        let config = json!({"cniVersion": "1.1.0", "name": "lan", "type": "dhcp", "ipam": {"type": "dhcp"}});
        let text = refused(&status(&config), 50);
        assert!(text.contains(SOCKET) && text.contains("dhcp daemon"), "{text}");
        lab.ours.status(&list).expect_err("so does the interface's plugin");
        let netns = lab.container("c1");
        let text = refused(&lab.one("ADD", &config, &Attachment::new("c1", netns.path())), 11);
        assert!(text.contains(SOCKET), "{text}");
        let fresh = lab.snapshot();
        let mut attachment = Attachment::new("c1", netns.path());
        lab.ours.add(&list, &mut attachment).expect_err("nobody gives an address");
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
        lab.del(&list, &attachment);
        assert!(fresh.diff(&lab.snapshot()).is_empty());
        // Something else listens there.
        fs::create_dir_all("/run/cni").unwrap();
        let stranger = std::os::unix::net::UnixListener::bind(SOCKET).unwrap();
        std::thread::spawn(move || while stranger.accept().is_ok() {});
        refused(&status(&config), 50);
        fs::remove_file(SOCKET).unwrap();
        let _daemon = daemon(lab, &[]);
        fine(&status(&config));
        lab.ours.status(&list).unwrap();
    }

    fn what_cannot_be_meant_is_refused_and_never_fails_a_del(lab) {
        let _daemon = daemon(lab, &[]);
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for (ipam, word) in [
            (json!(null), "ipam"),
            (json!({"provide": [{"option": "nonsense", "value": "x"}]}), "nonsense"),
            (json!({"provide": [{"option": "12", "value": "x".repeat(300)}]}), "300"),
            (json!({"request": [{"option": "256"}]}), "256"),
            (json!({"priority": "high"}), "priority"),
        ] {
            let config = json!({"cniVersion": "1.1.0", "name": "lan", "type": "dhcp", "ipam": ipam});
            let text = refused(&lab.one("ADD", &config, &attachment), 7);
            assert!(text.contains(word), "{text}");
            refused(&lab.one("CHECK", &config, &attachment), 7);
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn without_a_server_add_fails_in_time_and_leaves_nothing(lab) {
        let frames = Frames::listen(lab);
        let daemon = daemon(lab, &["-timeout", "1s", "-resendmax", "1s", "-resendtimeout", "3s"]);
        let list = list(json!({}));
        let netns = lab.container("c1");
        let fresh = lab.snapshot();
        let begun = Instant::now();
        let mut attachment = Attachment::new("c1", netns.path());
        let error = lab.ours.add(&list, &mut attachment).expect_err("there is no server").to_string();
        assert!(error.contains("no DHCP server"), "{error}");
        let took = begun.elapsed();
        assert!((Duration::from_secs(3)..Duration::from_secs(6)).contains(&took), "{took:?}");
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
        let asked: Vec<Duration> = frames.of(DISCOVER).windows(2).map(|pair| pair[1].at - pair[0].at).collect();
        assert!(asked.len() >= 3 && asked[0] < Duration::from_millis(700), "soon, and then ever later: {asked:?}");
        lab.del(&list, &attachment);
        let diff = fresh.diff(&lab.snapshot());
        assert!(diff.is_empty(), "{diff}");
        drop(daemon);
    }
}
