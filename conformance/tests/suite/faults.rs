//! Kinds of fault that users of CNI plugins have met, across plugins.

use std::path::Path;

use conformance::chain::{Attachment, Network, Runtime};
use conformance::net::{HOST_V4, Rtnl};
use conformance::probe::{PATIENCE, Transport, ping};
use conformance::snapshot::Leavings;
use netlink_packet_route::route::{RouteAttribute, RouteMetric};
use serde_json::{Value, json};

use super::support::{Lab, address_of, ask, fine, network, nft, sandboxed, serve};

fn list(extra: Value) -> Network {
    let mut bridge = json!({"type": "bridge", "bridge": "br0", "isGateway": true, "ipMasq": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}});
    bridge
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    network(
        &json!({"cniVersion": "1.1.0", "name": "faults", "plugins": [
            bridge, {"type": "firewall"}, {"type": "portmap", "capabilities": {"portMappings": true}},
        ]}),
    )
}

fn web(attachment: Attachment) -> Attachment {
    attachment.capability(
        "portMappings",
        json!([{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]),
    )
}

/// The host must hold nothing of any container.
#[track_caller]
fn clean(lab: &Lab, fresh: &conformance::snapshot::Snapshot, owners: &[String]) {
    let beyond = fresh.diff(&lab.snapshot()).beyond(&Leavings {
        bridge: "br0",
        owners,
    });
    assert!(beyond.is_empty(), "{beyond:#?}");
}

sandboxed! {
    fn an_mtu_too_small_for_ipv6_is_not_passed_over(lab) {
        let list = list(json!({"mtu": 1000, "ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.77.0.0/24"}], [{"subnet": "fd00:77::/64"}]]}}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("container-1", netns.path());
        match lab.ours.add(&list, &mut attachment) {
            Ok(_) => ping(&netns, "fd00:77::1".parse().unwrap(), PATIENCE).unwrap(),
            Err(error) => {
                let text = error.to_string();
                assert!(text.contains("1000") || text.to_lowercase().contains("mtu") || text.contains("IPv6"), "{text}");
                assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
            }
        }
        lab.del(&list, &attachment);
    }

    fn a_reload_of_the_packet_filter_is_noticed_and_del_still_works(lab) {
        let list = list(json!({}));
        let netns = lab.container("c1");
        let mut attachment = web(Attachment::new("container-1", netns.path()));
        lab.add(&list, &mut attachment);
        nft("flush ruleset");
        let bridge = Network { plugins: vec![list.plugins[0].clone()], ..list.clone() };
        lab.ours.check(&bridge, &attachment).expect_err("masquerading is lost");
        lab.del(&list, &attachment);
        assert!(lab.snapshot().mentioning("container-1").is_empty());
    }

    fn rules_in_our_own_tables_survive_the_flushing_of_others(lab) {
        let list = list(json!({}));
        let netns = lab.container("c1");
        let mut attachment = web(Attachment::new("container-1", netns.path()));
        let result = lab.add(&list, &mut attachment);
        nft("add table ip filter; add table ip nat; flush table ip filter; flush table ip nat; delete table ip filter; delete table ip nat");
        let _server = serve(&netns, Transport::Tcp, address_of(&result, true), 80, "web");
        ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080);
        lab.check(&list, &attachment);
    }

    fn any_step_may_fail_and_nothing_stays(lab) {
        // Each plugin of the list in turn is one that fails; the runtime then sends DEL.
        let fresh = lab.snapshot();
        for broken in 0..3 {
            let mut list = list(json!({}));
            let netns = lab.container(&format!("c{broken}"));
            let id = format!("container-{broken}");
            let mut attachment = web(Attachment::new(&id, netns.path()));
            match broken {
                0 => list.plugins[0]["ipam"]["ranges"] = json!([[{"subnet": "10.77.0.0/31"}]]),
                1 => list.plugins[1]["ingressPolicy"] = json!("nonsense"),
                _ => list.plugins[2]["markMasqBit"] = json!(77),
            }
            lab.ours.add(&list, &mut attachment).expect_err("the list is broken");
            lab.del(&list, &attachment);
            assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err());
            clean(lab, &fresh, &[id, "0a4d0002".into()]);
        }
    }

    fn an_ipam_plugin_that_is_missing_at_del_time_loses_nothing(lab) {
        let list = list(json!({}));
        let netns = lab.container("c1");
        let fresh = lab.snapshot();
        let mut attachment = Attachment::new("container-1", netns.path());
        lab.add(&list, &mut attachment);
        // A directory that has everything but host-local.
        let partial = Path::new("/run/sandbox/tmp/partial");
        std::fs::create_dir_all(partial).unwrap();
        for plugin in ["bridge", "firewall", "portmap"] {
            std::fs::copy(super::support::plugins().join(plugin), partial.join(plugin)).unwrap();
        }
        // Whether this one fails or not, the next one has to finish the work.
        let first = Runtime::new(partial).del(&list, &attachment);
        lab.del(&list, &attachment);
        clean(lab, &fresh, &["container-1".into(), "0a4d0002".into(), "10.77.0.2".into()]);
        drop(first);
    }

    fn the_same_container_again_after_a_crash(lab) {
        let list = list(json!({}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("container-1", netns.path());
        lab.add(&list, &mut attachment);
        drop(netns);
        lab.rtnl().wait_without_ports("br0", PATIENCE).unwrap();
        let netns = lab.container("c1");
        let mut again = Attachment::new("container-1", netns.path());
        // Either it works, or the message says which file and what to do; after DEL it works.
        if let Err(error) = lab.ours.add(&list, &mut again) {
            let text = error.to_string();
            assert!(text.contains("10.77.0.2") && text.contains("container-1") && text.contains("DEL"), "{text}");
            lab.del(&list, &again);
            lab.add(&list, &mut again);
        }
        lab.del(&list, &again);
    }

    fn a_host_process_on_the_port_is_told_of(lab) {
        let list = list(json!({}));
        let netns = lab.container("c1");
        let mut attachment = web(Attachment::new("container-1", netns.path()));
        let _daemon = serve(lab.host.netns(), Transport::Tcp, HOST_V4, 8080, "daemon");
        // The container gets the port, as with the reference set.
        let result = lab.add(&list, &mut attachment);
        let _server = serve(&netns, Transport::Tcp, address_of(&result, true), 80, "web");
        assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).server, "web");
        lab.del(&list, &attachment);
        assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8080).server, "daemon");
    }

    fn routes_keep_their_attributes(lab) {
        let list = list(json!({"ipMasq": false, "ipam": {"type": "host-local", "subnet": "10.77.0.0/24", "routes": [
            {"dst": "198.51.100.0/24", "mtu": 1300, "advmss": 1200, "priority": 77},
            {"dst": "203.0.113.0/24", "table": 5000},
            {"dst": "192.0.2.77/32", "gw": "10.77.0.9"},
        ]}}));
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("container-1", netns.path());
        lab.add(&list, &mut attachment);
        let routes = Rtnl::open(&netns).unwrap().routes().unwrap();
        let has = |wanted: RouteAttribute| routes.iter().any(|route| route.attributes.contains(&wanted));
        assert!(has(RouteAttribute::Metrics(vec![RouteMetric::Mtu(1300), RouteMetric::Advmss(1200)])), "{routes:?}");
        assert!(has(RouteAttribute::Priority(77)) && has(RouteAttribute::Table(5000)), "{routes:?}");
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
    }

    fn an_address_that_changed_hands_a_second_ago_works_at_once(lab) {
        let list = list(json!({"ipam": {"type": "host-local",
            "ranges": [[{"subnet": "10.77.0.0/24", "rangeStart": "10.77.0.5", "rangeEnd": "10.77.0.5"}]],
            "routes": [{"dst": "0.0.0.0/0"}]}}));
        let watcher_list = network(&json!({"cniVersion": "1.1.0", "name": "watch", "plugins": [
            {"type": "bridge", "bridge": "br0", "ipam": {"type": "host-local", "subnet": "10.77.0.0/24",
             "rangeStart": "10.77.0.100"}}]}));
        let watcher = lab.container("watcher");
        lab.add(&watcher_list, &mut Attachment::new("watcher", watcher.path()));
        for round in 0..3 {
            let netns = lab.container(&format!("c{round}"));
            let mut attachment = Attachment::new(&format!("container-{round}"), netns.path());
            let result = lab.add(&list, &mut attachment);
            let address = address_of(&result, true);
            let name = format!("round-{round}");
            let _server = serve(&netns, Transport::Udp, address, 9, &name);
            // One datagram each: a stale neighbour entry would lose it.
            assert_eq!(ask(lab.host.netns(), Transport::Udp, address, 9).server, name);
            assert_eq!(ask(&watcher, Transport::Udp, address, 9).server, name);
            lab.del(&list, &attachment);
        }
    }

    fn gc_frees_everything_of_the_lost_and_nothing_of_the_living(lab) {
        let list = list(json!({}));
        let (lost_netns, live_netns) = (lab.container("lost"), lab.container("live"));
        let mut live = Attachment::new("container-live", live_netns.path())
            .capability("portMappings", json!([{"hostPort": 8081, "containerPort": 80, "protocol": "tcp"}]));
        let result = lab.add(&list, &mut live);
        let before = lab.snapshot();
        let mut lost = web(Attachment::new("container-lost", lost_netns.path()));
        lab.add(&list, &mut lost);
        drop(lost_netns);
        lab.ours.gc(&list, Some(&[&live])).unwrap();
        lab.rtnl().wait_links_gone("veth", 2, PATIENCE).unwrap();
        let diff = before.diff(&lab.snapshot());
        assert!(diff.is_empty(), "{diff}");
        let _server = serve(&live_netns, Transport::Tcp, address_of(&result, true), 80, "web");
        ask(lab.host.outside(), Transport::Tcp, HOST_V4, 8081);
        lab.check(&list, &live);
        lab.ours.gc(&list, None).unwrap();
        lab.check(&list, &live);
    }

    fn status_is_good_where_add_works_and_bad_where_it_would_fail(lab) {
        let good = list(json!({}));
        lab.ours.status(&good).unwrap();
        let mut no_ipam = good.clone();
        no_ipam.plugins[0]["ipam"]["type"] = json!("missing-ipam");
        lab.ours.status(&no_ipam).expect_err("there is no such IPAM plugin");
        let mut full = good.clone();
        full.plugins[0]["ipam"]["ranges"] = json!([[{"subnet": "10.77.0.0/30"}]]);
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("container-1", netns.path());
        lab.add(&full, &mut attachment);
        lab.ours.status(&full).expect_err("no address is left");
        lab.del(&full, &attachment);
        lab.ours.status(&full).unwrap();
    }

    fn a_result_on_a_full_disk_undoes_the_add(lab) {
        let netns = lab.container("c1");
        let fresh = lab.snapshot();
        let attachment = Attachment::new("container-1", netns.path());
        let config = json!({"cniVersion": "1.0.0", "name": "n", "type": "bridge", "bridge": "br0", "isGateway": true,
            "ipam": {"type": "host-local", "subnet": "10.77.0.0/24"}});
        let plugins = super::support::plugins();
        let mut child = std::process::Command::new(plugins.join("bridge"))
            .env_clear()
            .envs([("CNI_COMMAND", "ADD"), ("CNI_CONTAINERID", "container-1"), ("CNI_IFNAME", "eth0")])
            .env("CNI_NETNS", netns.path())
            .env("CNI_PATH", &plugins)
            .stdin(std::process::Stdio::piped())
            .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), config.to_string().as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert!(Rtnl::open(&netns).unwrap().link("eth0").is_err(), "nobody was told of it, so it must not stay");
        clean(lab, &fresh, &["container-1".into(), "10.77.0.2".into()]);
        fine(&lab.one("DEL", &config, &attachment));
    }
}
