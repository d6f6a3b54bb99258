//! tap: what it makes, what it promises, and what it gives back.

use std::path::Path;
use std::time::Duration;

use conformance::chain::Attachment;
use conformance::facts::{addresses, interfaces};
use conformance::net::{Netns, Rtnl};
use conformance::probe::{PATIENCE, ping};
use serde_json::{Value, json};

use super::guest::Guest;
use super::support::{Lab, fine, ip, leases_in, refused, sandboxed, with_previous};

fn config(extra: Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.0.0", "name": "tap-net", "type": "tap",
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.5.0.0/24"}]]},
    });
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn attach(lab: &Lab, name: &str) -> (Netns, Attachment) {
    let netns = lab.container(name);
    let attachment = Attachment::new(&format!("container-{name}"), netns.path());
    (netns, attachment)
}

fn leases() -> usize {
    leases_in(&Path::new("/var/lib/cni/networks").join("tap-net")).len()
}

/// Nothing but `lo` is in the container, and no address is leased.
#[track_caller]
fn nothing_stays(netns: &Netns) {
    let links = Rtnl::open(netns).unwrap().links().unwrap();
    assert!(links.iter().all(|link| link.name == "lo"), "{links:?}");
    assert_eq!(leases(), 0);
}

sandboxed! {
    fn all_options_are_honoured_together(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({
            "owner": 0, "group": 0, "multiQueue": true, "mtu": 1400, "mac": "02:00:00:00:05:01",
            "dns": {"nameservers": ["192.0.2.7"]},
        }));
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        let result = answer.json().unwrap();
        let listed = interfaces(&result);
        assert_eq!(listed.len(), 1, "{result}");
        assert_eq!((listed[0].name.as_str(), listed[0].mac.as_str()), ("eth0", "02:00:00:00:05:01"));
        assert_eq!(listed[0].sandbox, netns.path().to_str().unwrap());
        assert_eq!(addresses(&result)[0].interface, Some(0));
        assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.7"]));
        let text = ip(&netns, "-d link show eth0");
        for part in ["tun type tap", "pi off", "vnet_hdr off", "multi_queue", "persist on", "user root", "group root",
            "mtu 1400", "02:00:00:00:05:01", "numtxqueues 256"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        let link = Rtnl::open(&netns).unwrap().link("eth0").unwrap();
        assert!(link.facts.up && link.facts.alias.contains("id: container-c1"), "{link:?}");
        assert!(Rtnl::open(&netns).unwrap().addresses_of("eth0").unwrap().contains(&addresses(&result)[0].address));

        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
        nothing_stays(&netns);
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn without_options_it_belongs_to_nobody_and_has_one_queue(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let answer = lab.one("ADD", &config(json!({})), &attachment);
        fine(&answer);
        let text = ip(&netns, "-d link show eth0");
        assert!(text.contains("mtu 1500") && text.contains("vnet_hdr off") && text.contains("pi off"), "{text}");
        for part in ["user", "multi_queue"] {
            assert!(!text.contains(part), "{part} in {text}");
        }
        fine(&lab.one("CHECK", &with_previous(&config(json!({})), &answer), &attachment));
    }

    fn whoever_opens_it_talks_with_the_container(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let answer = lab.one("ADD", &config(json!({})), &attachment);
        fine(&answer);
        let mut guest = Guest::start(&netns, "eth0", "02:00:00:00:05:99", "10.5.0.99".parse().unwrap());
        let own = "10.5.0.2".parse().unwrap();
        assert!(guest.ping(own, own, PATIENCE), "the container answers the machine");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| guest.serve(&stop));
            let answer = ping(&netns, "10.5.0.99".parse().unwrap(), PATIENCE);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            answer.unwrap();
        });
    }

    fn a_mac_address_can_be_asked_for_in_three_places(lab) {
        let places = [
            (json!({"mac": "02:00:00:00:00:01"}), None, "02:00:00:00:00:01"),
            (json!({"mac": "02:00:00:00:00:01"}), Some("MAC=02:00:00:00:00:02;OTHER=x"), "02:00:00:00:00:02"),
            (json!({"mac": "02:00:00:00:00:01", "runtimeConfig": {"mac": "02:00:00:00:00:03"}}),
             Some("IgnoreUnknown=1;MAC=02:00:00:00:00:02"), "02:00:00:00:00:03"),
        ];
        for (number, (extra, args, wanted)) in places.into_iter().enumerate() {
            let (netns, mut attachment) = attach(lab, &format!("c{number}"));
            attachment.args = args.map(str::to_owned);
            let answer = lab.one("ADD", &config(extra), &attachment);
            fine(&answer);
            assert_eq!(interfaces(&answer.json().unwrap())[0].mac, wanted);
            assert_eq!(Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.mac, wanted);
        }
        let (netns, attachment) = attach(lab, "bad");
        refused(&lab.one("ADD", &config(json!({"mac": "02:00"})), &attachment), 7);
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
    }

    fn it_can_be_a_port_of_a_bridge_in_the_container(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let inside = Rtnl::open(&netns).unwrap();
        let config = config(json!({"bridge": "br-in", "owner": 0, "group": 0}));
        let text = refused(&lab.one("ADD", &config, &attachment), 7);
        assert!(text.contains("br-in") && text.contains("container"), "{text}");
        nothing_stays(&netns);
        inside.add_bridge("br-in").unwrap();
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        let link = inside.link("eth0").unwrap();
        assert_eq!(link.master, Some(inside.link("br-in").unwrap().index));
        assert_eq!(interfaces(&answer.json().unwrap())[0].mac, link.facts.mac);
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        ip(&netns, "link set eth0 nomaster");
        refused(&lab.one("CHECK", &with_previous(&config, &answer), &attachment), 999);
        for _ in 0..2 {
            fine(&lab.one("DEL", &config, &attachment));
        }
        assert!(inside.link("eth0").is_err() && inside.link("br-in").is_ok());
        let other = super::tap::config(json!({"bridge": "lo"}));
        refused(&lab.one("ADD", &other, &attachment), 7);
    }

    fn names_that_are_taken_are_refused_before_any_change(lab) {
        let (netns, attachment) = attach(lab, "c1");
        refused(&lab.one("ADD", &config(json!({})), &attachment.clone().ifname("lo")), 999);
        nothing_stays(&netns);
        assert!(!Rtnl::open(&netns).unwrap().link("lo").unwrap().facts.up);
        let inside = Rtnl::open(&netns).unwrap();
        inside.add_bridge("eth0").unwrap();
        let text = refused(&lab.one("ADD", &config(json!({})), &attachment), 999);
        assert!(text.contains("eth0") && text.contains("already exists"), "{text}");
        assert_eq!((leases(), inside.link("eth0").unwrap().facts.kind.as_str()), (0, "bridge"));
        inside.delete_link("eth0").unwrap();
        fine(&lab.one("ADD", &config(json!({})), &attachment));
        refused(&lab.one("ADD", &config(json!({})), &attachment), 999);
        assert_eq!(leases(), 1);
        fine(&lab.one("DEL", &config(json!({})), &attachment));
        nothing_stays(&netns);
    }

    fn ipv6_costs_no_wait(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.5.0.0/24"}], [{"subnet": "fd00:5::/64"}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]}}));
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        assert!(answer.took < Duration::from_secs(2), "{:?}", answer.took);
        let text = ip(&netns, "-6 addr show eth0");
        assert!(text.contains("fd00:5::2/64") && !text.contains("tentative"), "{text}");
        assert!(ip(&netns, "-6 route show default").contains("via fd00:5::1"));
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &config, &attachment));
        nothing_stays(&netns);
    }

    fn without_ipam_every_command_works(lab) {
        let (netns, attachment) = attach(lab, "c1");
        for ipam in [Value::Null, json!({})] {
            let config = config(json!({"ipam": ipam, "cniVersion": "1.1.0"}));
            fine(&lab.one("STATUS", &config, &attachment));
            let answer = lab.one("ADD", &config, &attachment);
            fine(&answer);
            assert!(Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.up);
            fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            let mut gc = config.clone();
            gc["cni.dev/valid-attachments"] = json!([]);
            fine(&lab.one("GC", &gc, &attachment));
            fine(&lab.one("DEL", &config, &attachment));
            nothing_stays(&netns);
        }
        // An early version cannot say "no address".
        let early = config(json!({"ipam": {}, "cniVersion": "0.2.0"}));
        refused(&lab.one("ADD", &early, &attachment), 999);
        nothing_stays(&netns);
    }

    fn a_failed_add_leaves_nothing(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let v6 = json!({"type": "host-local", "ranges": [[{"subnet": "10.5.0.0/24"}], [{"subnet": "fd00:5::/64"}]]});
        let failing = [
            json!({"mtu": 1000, "ipam": v6}),
            json!({"mtu": 67}),
            json!({"mtu": 1_000_000}),
            json!({"selinuxContext": "no:such:context:s0"}),
            json!({"ipam": {"type": "host-local", "subnet": "10.5.0.0/24", "routes": [{"dst": "10.9.0.0/16", "gw": "fd00::1"}]}}),
            json!({"ipam": {"type": "missing-ipam"}}),
            json!({"bridge": "a/b"}),
            json!({"owner": -1}),
        ];
        for extra in failing {
            let answer = lab.one("ADD", &config(extra.clone()), &attachment);
            assert!(answer.error().is_some(), "{extra}: {}", answer.text());
            nothing_stays(&netns);
        }
        fine(&lab.one("ADD", &config(json!({})), &attachment));
    }

    fn check_tells_what_is_gone(lab) {
        let losses = [
            "link set eth0 down",
            "link set eth0 mtu 1300",
            "link set eth0 address 02:00:00:00:00:77",
            "addr del 10.5.0.2/24 dev eth0",
            "route del 10.8.0.0/16",
            "link del eth0",
        ];
        for (number, loss) in losses.into_iter().enumerate() {
            let (netns, attachment) = attach(lab, &format!("c{number}"));
            let config = config(json!({"mtu": 1400, "name": format!("net{number}"), "ipam": {"type": "host-local",
                "subnet": "10.5.0.0/24", "routes": [{"dst": "10.8.0.0/16"}]}}));
            let answer = lab.one("ADD", &config, &attachment);
            fine(&answer);
            let config = with_previous(&config, &answer);
            fine(&lab.one("CHECK", &config, &attachment));
            ip(&netns, loss);
            refused(&lab.one("CHECK", &config, &attachment), 999);
            fine(&lab.one("DEL", &config, &attachment));
        }
        let (_netns, attachment) = attach(lab, "other");
        let made = config(json!({}));
        let answer = lab.one("ADD", &made, &attachment);
        let wanted = with_previous(&config(json!({"owner": 0, "group": 0})), &answer);
        let text = refused(&lab.one("CHECK", &wanted, &attachment), 999);
        assert!(text.contains("owner"), "{text}");
        let wanted = with_previous(&config(json!({"multiQueue": true})), &answer);
        refused(&lab.one("CHECK", &wanted, &attachment), 999);
        refused(&lab.one("CHECK", &made, &attachment), 999);
    }

    fn del_works_without_namespace_result_or_a_valid_config(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        fine(&lab.one("ADD", &config(json!({})), &attachment));
        let broken = config(json!({"owner": "me", "mtu": "wide", "bridge": 7, "runtimeConfig": []}));
        fine(&lab.one("DEL", &broken, &attachment));
        nothing_stays(&netns);
        fine(&lab.one("ADD", &config(json!({})), &attachment));
        drop(netns);
        for path in ["/run/netns/c1", "", "/tmp"] {
            attachment.netns = path.into();
            fine(&lab.one("DEL", &config(json!({})), &attachment));
        }
        assert_eq!(leases(), 0);
    }

    fn del_finds_a_tap_that_the_workload_has_renamed(lab) {
        let (netns, attachment) = attach(lab, "c1");
        fine(&lab.one("ADD", &config(json!({})), &attachment));
        ip(&netns, "link set eth0 down");
        ip(&netns, "link set eth0 name wan0");
        fine(&lab.one("DEL", &config(json!({})), &attachment));
        nothing_stays(&netns);
    }

    fn del_leaves_what_the_workload_put_in_its_place(lab) {
        let (netns, attachment) = attach(lab, "c1");
        fine(&lab.one("ADD", &config(json!({})), &attachment));
        let inside = Rtnl::open(&netns).unwrap();
        inside.delete_link("eth0").unwrap();
        inside.add_bridge("eth0").unwrap();
        fine(&lab.one("DEL", &config(json!({})), &attachment));
        assert_eq!(inside.link("eth0").unwrap().facts.kind, "bridge");
        assert_eq!(leases(), 0);
    }

    fn gc_frees_the_addresses_of_the_lost(lab) {
        let (_lost, lost) = attach(lab, "lost");
        let (_live, live) = attach(lab, "live");
        let mut config = config(json!({"cniVersion": "1.1.0"}));
        for attachment in [&lost, &live] {
            fine(&lab.one("ADD", &config, attachment));
        }
        config["cni.dev/valid-attachments"] = json!([{"containerID": live.container_id, "ifname": "eth0"}]);
        fine(&lab.one("GC", &config, &lost));
        assert_eq!(leases(), 1);
        config["ipam"] = json!({"type": "missing-ipam"});
        refused(&lab.one("STATUS", &config, &lost), 999);
    }
}
