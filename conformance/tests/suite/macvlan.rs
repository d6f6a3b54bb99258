//! macvlan: what it makes on the host's segment, what it promises, and what it gives back.

use conformance::Result;
use conformance::facts::{addresses, interfaces};
use conformance::net::{Netns, OUTSIDE_V4, OUTSIDE_V6, Rtnl, UPLINK};
use conformance::probe::{BRIEFLY, PATIENCE, ping};
use conformance::single::{self, Kind, Site};
use serde_json::{Value, json};

use super::support::{Lab, fine, run, sandboxed, tool};

/// Plays what every plugin of this sort must do.
#[track_caller]
fn play(lab: &Lab, scenario: fn(&Site) -> Result<()>) {
    let site = Site {
        host: &lab.host,
        runtime: &lab.ours,
        kind: Kind::macvlan(),
    };
    scenario(&site).unwrap_or_else(|error| panic!("{error}"));
}

/// macvlan on the host's uplink, with addresses of both families of that segment.
fn config(extra: Value) -> Value {
    let mut config = json!({"cniVersion": "1.0.0", "name": "segment", "type": "macvlan", "master": UPLINK,
        "ipam": {"type": "host-local", "ranges": [
            [{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.100"}],
            [{"subnet": "2001:db8::/64", "rangeStart": "2001:db8::100"}]]}});
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// Attaches a new container, which must work; gives the configuration with the result too.
#[track_caller]
fn attach(lab: &Lab, name: &str, config: &Value, args: &str) -> (Netns, Value) {
    let netns = lab.container(name);
    let mut attachment = conformance::chain::Attachment::new(name, netns.path());
    if !args.is_empty() {
        attachment = attachment.args(args);
    }
    let answer = lab.one("ADD", config, &attachment);
    fine(&answer);
    let mut with = config.clone();
    with["prevResult"] = answer.json().unwrap();
    fine(&lab.one("CHECK", &with, &attachment));
    (netns, with)
}

/// What `ip` says of the container's interface.
fn details(netns: &Netns) -> String {
    let ip = tool("ip", "iproute2");
    netns
        .run(|| Ok(run(&ip, &["-d", "link", "show", "dev", "eth0"])))
        .unwrap()
}

sandboxed! {
    fn every_version_attaches_checks_and_detaches(lab) {
        play(lab, single::every_version);
    }

    fn without_ipam_every_command_works(lab) {
        play(lab, single::without_ipam);
    }

    fn dns_of_ipam_is_kept_and_dns_of_the_config_wins(lab) {
        play(lab, single::dns);
    }

    fn del_works_without_namespace_result_or_a_valid_config(lab) {
        play(lab, single::del_is_patient);
    }

    fn a_link_of_another_kind_is_left_alone(lab) {
        play(lab, single::foreign_links_stay);
    }

    fn a_failed_add_leaves_nothing(lab) {
        play(lab, single::failed_add_leaves_nothing);
    }

    fn what_is_wrong_is_refused_before_any_change(lab) {
        play(lab, single::refused_before_any_change);
    }

    fn status_says_what_add_meets(lab) {
        play(lab, single::status_says_what_add_meets);
    }

    fn check_tells_what_is_gone(lab) {
        play(lab, single::check_notices);
    }

    fn the_default_route_names_the_master(lab) {
        play(lab, single::of_default_route);
    }

    fn the_master_can_be_in_the_container(lab) {
        play(lab, single::in_container);
    }

    fn ipv6_works_at_once(lab) {
        play(lab, single::no_waiting);
    }

    fn an_address_that_somebody_else_holds_is_named(lab) {
        play(lab, single::duplicates);
    }

    fn neighbours_that_knew_another_holder_learn_the_new_one(lab) {
        play(lab, single::stale_neighbours);
    }

    fn containers_on_one_master_reach_each_other(lab) {
        play(lab, single::siblings);
    }

    fn many_at_once(lab) {
        play(lab, single::many_at_once);
    }

    fn router_advertisements_are_not_taken(lab) {
        play(lab, single::router_advertisements);
    }

    fn a_mac_address_can_be_asked_for_in_three_places(lab) {
        let (own, argument, capability) = ("c2:11:22:33:44:55", "c2:11:22:33:44:66", "C2-11-22-33-44-77");
        let in_arguments = format!("MAC={argument}");
        let cases = [
            ("c1", json!({"mac": own}), "", own),
            ("c2", json!({"mac": own}), in_arguments.as_str(), argument),
            ("c3", json!({"mac": own}), "IgnoreUnknown=true;MAC=c2:11:22:33:44:66;K8S_POD_NAME=x", argument),
            ("c4", json!({"mac": own, "runtimeConfig": {"mac": capability}}), in_arguments.as_str(), "c2:11:22:33:44:77"),
        ];
        for (name, extra, args, wanted) in cases {
            let mut config = config(extra);
            config["name"] = json!(name);
            config["ipam"]["ranges"] = json!([[{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.100"}]]);
            let (netns, with) = attach(lab, name, &config, args);
            assert_eq!(interfaces(&with["prevResult"])[0].mac, wanted);
            assert_eq!(Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.mac, wanted);
            ping(&netns, OUTSIDE_V4, PATIENCE).unwrap();
            // The address is the sibling's too in the next round, which the kernel refuses.
            let attachment = conformance::chain::Attachment::new(name, netns.path());
            fine(&lab.one("DEL", &with, &attachment));
        }
    }

    fn a_mac_address_that_is_taken_is_explained(lab) {
        let config = config(json!({"mac": "c2:11:22:33:44:55"}));
        let (_one, _) = attach(lab, "c1", &config, "");
        let two = lab.container("c2");
        let attachment = conformance::chain::Attachment::new("c2", two.path());
        let error = lab.one("ADD", &config, &attachment).error().unwrap();
        assert!(error.details.contains("has that MAC address"), "{error:?}");
        assert!(Rtnl::open(&two).unwrap().link("eth0").is_err());
    }

    fn modes_decide_who_is_reached(lab) {
        for (mode, sibling) in [("bridge", true), ("private", false), ("vepa", false)] {
            let config = config(json!({"mode": mode, "name": mode}));
            let (one, _) = attach(lab, &format!("{mode}-1"), &config, "");
            let (two, with) = attach(lab, &format!("{mode}-2"), &config, "");
            assert!(details(&two).contains(&format!("macvlan mode {mode}")), "{}", details(&two));
            for outside in [OUTSIDE_V4, OUTSIDE_V6] {
                ping(&one, outside, PATIENCE).unwrap();
            }
            for assigned in addresses(&with["prevResult"]) {
                let to = assigned.address.ip();
                let limit = if sibling { PATIENCE } else { BRIEFLY };
                assert_eq!(ping(&one, to, limit).is_ok(), sibling, "{mode} {to}");
            }
            for (name, netns) in [("1", &one), ("2", &two)] {
                let attachment = conformance::chain::Attachment::new(&format!("{mode}-{name}"), netns.path());
                fine(&lab.one("DEL", &config, &attachment));
            }
        }
    }

    fn passthru_is_alone_with_the_masters_address_or_its_own(lab) {
        let master = lab.rtnl().link(UPLINK).unwrap().facts.mac;
        let theirs = config(json!({"mode": "passthru"}));
        let (netns, with) = attach(lab, "c1", &theirs, "");
        assert_eq!(interfaces(&with["prevResult"])[0].mac, master);
        ping(&netns, OUTSIDE_V4, PATIENCE).unwrap();
        ping(&netns, OUTSIDE_V6, PATIENCE).unwrap();
        let second = lab.container("c2");
        let two = conformance::chain::Attachment::new("c2", second.path());
        let error = lab.one("ADD", &theirs, &two).error().unwrap();
        assert!(error.details.contains("alone on its master"), "{error:?}");
        let one = conformance::chain::Attachment::new("c1", netns.path());
        fine(&lab.one("DEL", &with, &one));

        let own = config(json!({"mode": "passthru", "mac": "c2:11:22:33:44:55"}));
        let (netns, with) = attach(lab, "c3", &own, "");
        assert_eq!(interfaces(&with["prevResult"])[0].mac, "c2:11:22:33:44:55");
        ping(&netns, OUTSIDE_V4, PATIENCE).unwrap();
        let three = conformance::chain::Attachment::new("c3", netns.path());
        fine(&lab.one("DEL", &with, &three));
        assert_eq!(lab.rtnl().link(UPLINK).unwrap().facts.mac, master, "the master has its own again");
    }

    fn settings_reach_the_link(lab) {
        let (netns, with) = attach(lab, "c1", &config(json!({"mtu": 1400, "bcqueuelen": 77})), "");
        assert!(details(&netns).contains("bcqueuelen 77 "), "{}", details(&netns));
        assert_eq!(Rtnl::open(&netns).unwrap().link("eth0").unwrap().facts.mtu, 1400);
        let attachment = conformance::chain::Attachment::new("c1", netns.path());
        for (key, value) in [("bcqueuelen", 78), ("mtu", 1300)] {
            let mut other = with.clone();
            other[key] = json!(value);
            let error = lab.one("CHECK", &other, &attachment).error().unwrap();
            assert!(error.msg.contains(&value.to_string()), "{error:?}");
        }
    }

    fn a_master_without_carrier_does_not_keep_anybody_waiting(lab) {
        let far = lab.container("far");
        lab.rtnl().add_veth("dark0", &far, "dark1").unwrap();
        lab.rtnl().set_up("dark0").unwrap();
        let netns = lab.container("c1");
        let attachment = conformance::chain::Attachment::new("c1", netns.path());
        let config = config(json!({"master": "dark0"}));
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        assert!(answer.took < std::time::Duration::from_secs(1), "{:?}", answer.took);
        let mut with = config.clone();
        with["prevResult"] = answer.json().unwrap();
        fine(&lab.one("CHECK", &with, &attachment));
    }
}
