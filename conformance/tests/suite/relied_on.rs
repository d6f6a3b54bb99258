//! What users of bridge, host-local, firewall, portmap and loopback rely on, and no other test holds.

use std::ffi::OsString;
use std::fs::{self, File};
use std::time::Duration;

use conformance::chain::Attachment;
use conformance::facts::{addresses, interfaces};
use conformance::net::{HOST_V4, Rtnl};
use conformance::probe::{BRIEFLY, PATIENCE, Transport, ping};
use serde_json::{Value, json};

use super::support::{
    Lab, address_of, ask, fine, network, nft, no_answer, one_of, refused, run, sandboxed, serve,
    tool,
};

fn bridge(extra: Value) -> Value {
    let mut config = json!({"cniVersion": "1.1.0", "name": "relied", "type": "bridge", "bridge": "br0", "isGateway": true,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}], [{"subnet": "fd00:77::/64"}]]}});
    let extra = extra.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(extra);
    config
}

fn host_local(ipam: Value) -> Value {
    let mut all = json!({"type": "host-local"});
    let ipam = ipam.as_object().unwrap().clone();
    all.as_object_mut().unwrap().extend(ipam);
    json!({"cniVersion": "1.1.0", "name": "relied", "type": "host-local", "ipam": all})
}

fn chained(plugin: &str, extra: Value) -> Value {
    let mut config = json!({"cniVersion": "1.1.0", "name": "relied", "type": plugin,
        "prevResult": {"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": "/run/netns/c1"}],
            "ips": [{"address": "10.77.0.2/24", "interface": 0}]}});
    let extra = extra.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(extra);
    config
}

/// The addresses that an ADD gave.
#[track_caller]
fn given(lab: &Lab, config: &Value, attachment: &Attachment) -> Vec<String> {
    let answer = lab.one("ADD", config, attachment);
    fine(&answer);
    let all = addresses(&answer.json().unwrap());
    all.iter().map(|one| one.address.to_string()).collect()
}

sandboxed! {
    fn a_del_without_an_add_changes_nothing(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let before = lab.snapshot();
        for config in [
            bridge(json!({"ipMasq": true, "macspoofchk": true, "isDefaultGateway": true})),
            host_local(json!({"subnet": "10.77.0.0/24"})),
            chained("firewall", json!({})),
            chained("firewall", json!({"backend": "iptables", "ingressPolicy": "same-bridge"})),
            chained("portmap", json!({"runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]}})),
            chained("portmap", json!({"backend": "iptables"})),
            json!({"cniVersion": "1.1.0", "name": "relied", "type": "loopback"}),
        ] {
            for _ in 0..2 {
                fine(&lab.one("DEL", &config, &attachment));
            }
            let diff = before.diff(&lab.snapshot());
            // A directory to keep a lock in is no trace of an attachment.
            assert!(diff.removed.is_empty() && lab.snapshot().mentioning("c1").len() == before.mentioning("c1").len(), "{config}:\n{diff}");
            assert!(lab.rtnl().link("br0").is_err());
        }
    }

    fn a_bridge_name_that_is_too_long_is_explained(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for name in ["a-bridge-of-16-by", "a/b", "..", "a b"] {
            let config = bridge(json!({"bridge": name}));
            let text = refused(&lab.one("ADD", &config, &attachment), 7);
            assert!(text.contains(name), "{text}");
            fine(&lab.one("DEL", &config, &attachment));
        }
        assert!(!fs::exists("/var/lib/cni/networks/relied/10.77.0.2").unwrap());
    }

    fn a_misspelt_key_is_told_of(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        for (extra, told) in [(json!({}), None), (json!({"ipMask": true}), Some(["ipMask", "ipMasq"])),
            (json!({"isDefaultGatway": true}), Some(["isDefaultGatway", "isDefaultGateway"])), (json!({"master": "eth0", "note": "mine"}), None)] {
            let config = bridge(extra);
            let answer = lab.one("ADD", &config, &attachment);
            fine(&answer);
            let said = String::from_utf8_lossy(&answer.stderr).into_owned();
            match told {
                Some(words) => assert!(words.iter().all(|word| said.contains(word)), "{said}"),
                None => assert!(said.is_empty(), "{said}"),
            }
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn a_misspelt_key_inside_a_section_is_told_of(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let ipam = |extra: Value| {
            let mut ipam = json!({"type": "host-local", "ranges": [[{"subnet": "10.77.0.0/24"}]]});
            ipam.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            bridge(json!({"ipam": ipam}))
        };
        let previous = |config: Value| {
            let mut config = chained(config["type"].as_str().unwrap(), config.clone());
            config["prevResult"] = json!({"cniVersion": "1.1.0", "interfaces": [{"name": "eth0", "sandbox": netns.path()}],
                "ips": [{"address": "10.77.0.9/24", "interface": 0}]});
            config
        };
        for (config, told) in [
            (ipam(json!({})), None),
            (ipam(json!({"note": "mine", "x": {"subnett": 1}, "route": []})), Some(("ipam.route", "ipam.routes"))),
            (ipam(json!({"subnett": "10.77.0.0/24"})), Some(("ipam.subnett", "ipam.subnet"))),
            (ipam(json!({"ranges": [[{"subnet": "10.77.0.0/24", "rangeStrat": "10.77.0.9"}]]})),
                Some(("ipam.ranges[0][0].rangeStrat", "ipam.ranges[0][0].rangeStart"))),
            (bridge(json!({"ipam": {"tpye": "host-local"}, "isGateway": false})), Some(("ipam.tpye", "ipam.type"))),
            (bridge(json!({"runtimeConfig": {"ipRange": []}})), Some(("runtimeConfig.ipRange", "runtimeConfig.ipRanges"))),
            (bridge(json!({"args": {"cni": {"macc": "x", "labels": [{"key": "a"}]}}, "dns": {"domain": "x"}})), None),
            (previous(json!({"type": "portmap", "runtimeConfig": {"portMappings": [
                {"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIp": "10.77.0.1"},
                {"hostport": 8081, "containerPort": 81, "protocl": "udp"}]}})),
                Some(("runtimeConfig.portMappings[1].protocl", "runtimeConfig.portMappings[1].protocol"))),
            (previous(json!({"type": "tuning", "args": {"cni": {"sysctls": {}}}, "sysctl": {"net.ipv4.conf.all.log_martian": "0"}})),
                Some(("args.cni.sysctls", "args.cni.sysctl"))),
        ] {
            let answer = lab.one("ADD", &config, &attachment);
            let said = String::from_utf8_lossy(&answer.stderr).into_owned();
            let lines = said.lines().filter(|line| line.contains("is unknown and ignored")).count();
            match told {
                Some((written, meant)) => assert!(lines == 1 && said.contains(&format!("{written:?}")) && said.contains(&format!("{meant:?}")),
                    "{config}: {said} {}", answer.text()),
                None => assert_eq!(said, "", "{config}"),
            }
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn check_does_not_ask_for_what_a_later_plugin_has_dropped(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let config = bridge(json!({"isDefaultGateway": true}));
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        let whole = answer.json().unwrap();
        for dropped in ["sandbox", "mac", "mtu", "dns", "routes", "interface"] {
            let mut result = whole.clone();
            for one in result["interfaces"].as_array_mut().unwrap() {
                one.as_object_mut().unwrap().remove(dropped);
            }
            for one in result["ips"].as_array_mut().unwrap() {
                one.as_object_mut().unwrap().remove(dropped);
            }
            result.as_object_mut().unwrap().remove(dropped);
            let mut with = config.clone();
            with["prevResult"] = result;
            let answer = lab.one("CHECK", &with, &attachment);
            assert!(answer.ok(), "without {dropped}: {}", answer.text());
        }
        // What is there to be compared is compared.
        let mut with = config;
        with["prevResult"] = whole;
        with["prevResult"]["ips"][0]["address"] = json!("10.77.0.99/24");
        refused(&lab.one("CHECK", &with, &attachment), 999);
    }

    fn hairpin_mode_that_is_off_stays_off(lab) {
        for (number, mode) in [Value::Null, json!(false), json!(true)].into_iter().enumerate() {
            let id = format!("c{number}");
            let netns = lab.container(&id);
            let port = 8080 + u16::try_from(number).unwrap();
            let mut attachment = Attachment::new(&id, netns.path())
                .capability("portMappings", json!([{"hostPort": port, "containerPort": 80, "protocol": "tcp"}]));
            let list = network(&json!({"cniVersion": "1.1.0", "name": "relied", "plugins": [
                bridge(json!({"hairpinMode": mode, "isDefaultGateway": true})), {"type": "portmap", "capabilities": {"portMappings": true}}]}));
            let result = lab.add(&list, &mut attachment);
            let end = interfaces(&result).into_iter().nth(1).unwrap();
            let end = lab.rtnl().link(&end.name).unwrap();
            let on = mode != json!(false);
            assert!(end.facts.port_has(&format!("HairpinMode({on})")), "{mode}: {:?}", end.facts.port);
            lab.check(&list, &attachment);
            let _server = serve(&netns, Transport::Tcp, address_of(&result, true), 80, "self");
            if on {
                assert_eq!(ask(&netns, Transport::Tcp, HOST_V4, port).server, "self");
            }
            assert_eq!(ask(lab.host.outside(), Transport::Tcp, HOST_V4, port).server, "self");
            lab.del(&list, &attachment);
        }
    }

    fn a_chain_of_others_that_drops_is_told_of(lab) {
        let config = json!({"cniVersion": "1.1.0", "name": "relied", "type": "firewall", "backend": "nftables"});
        let status = || {
            let answer = lab.ours.bare("firewall", "STATUS").unwrap().stdin(config.to_string()).run().unwrap();
            fine(&answer);
            String::from_utf8_lossy(&answer.stderr).into_owned()
        };
        assert!(!status().contains("drops"));
        nft("table inet guard { chain gate { type filter hook forward priority 10; policy drop; }; \
            chain harmless { type filter hook forward priority 11; policy accept; }; \
            chain inwards { type filter hook input priority 0; policy drop; }; }");
        let said = status();
        assert!(said.contains("inet guard gate") && !said.contains("harmless") && !said.contains("inwards"), "{said}");
        // It is true: nothing passes, whatever our own table accepts.
        let netns = lab.container("c1");
        let mut attachment = Attachment::new("c1", netns.path());
        let list = network(&json!({"cniVersion": "1.1.0", "name": "relied", "plugins": [
            bridge(json!({"isDefaultGateway": true, "ipMasq": true})), {"type": "firewall", "backend": "nftables"}]}));
        lab.add(&list, &mut attachment);
        let _server = serve(lab.host.outside(), Transport::Tcp, conformance::net::OUTSIDE_V4, 7000, "outside");
        no_answer(&netns, Transport::Tcp, conformance::net::OUTSIDE_V4, 7000);
        nft("delete table inet guard");
        ask(&netns, Transport::Tcp, conformance::net::OUTSIDE_V4, 7000);
        assert!(!status().contains("drops"));
        lab.del(&list, &attachment);
    }

    fn addresses_of_several_ranges_can_be_asked_for(lab) {
        let attachment = |id: &str| Attachment::new(id, std::path::Path::new("/run/netns/none"));
        let plain = host_local(json!({"ranges": [[{"subnet": "10.1.2.0/24"}, {"subnet": "10.1.4.0/24"}], [{"subnet": "10.1.3.0/24"}], [{"subnet": "fd00:1::/64"}]]}));
        for (id, key, asked, wanted) in [
            ("a", "runtimeConfig", json!({"ips": ["10.1.4.80", "10.1.3.80", "fd00:1::80"]}), ["10.1.4.80/24", "10.1.3.80/24", "fd00:1::80/64"]),
            ("b", "args", json!({"cni": {"ips": ["fd00:1::81/64", "10.1.3.81/24", "10.1.2.81/24"]}}), ["10.1.2.81/24", "10.1.3.81/24", "fd00:1::81/64"]),
            // Nothing is asked of the first set, which goes on after the last one.
            ("c", "runtimeConfig", json!({"ips": ["10.1.3.82", "fd00:1::82/64"]}), ["10.1.2.82/24", "10.1.3.82/24", "fd00:1::82/64"]),
        ] {
            let mut config = plain.clone();
            config[key] = asked;
            let all = given(lab, &config, &attachment(id));
            assert_eq!(all, wanted, "{id}");
        }
        for args in ["IP=10.1.2.90/24", "IP=10.1.2.91", "IgnoreUnknown=1;IP=10.1.2.92"] {
            let wanted = args.split('=').next_back().unwrap().trim_end_matches("/24");
            let all = given(lab, &plain, &attachment(wanted).args(args));
            assert_eq!(all[0], format!("{wanted}/24"));
        }
        // One that no range has fails the call, and the others are not taken.
        let mut config = plain;
        config["runtimeConfig"] = json!({"ips": ["10.1.2.99", "10.99.0.1"]});
        let answer = lab.one("ADD", &config, &attachment("d"));
        let text = refused(&answer, 7);
        assert!(text.contains("10.99.0.1"), "{text}");
        assert!(!fs::exists("/var/lib/cni/networks/relied/10.1.2.99").unwrap());
    }

    fn the_old_style_of_ranges_is_understood(lab) {
        let attachment = |id: &str| Attachment::new(id, std::path::Path::new("/run/netns/none"));
        let config = host_local(json!({"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.10", "gateway": "10.1.2.30",
            "routes": [{"dst": "0.0.0.0/0"}]}));
        let answer = lab.one("ADD", &config, &attachment("a"));
        fine(&answer);
        let result = answer.json().unwrap();
        assert_eq!(result["ips"][0], json!({"address": "10.1.2.9/24", "gateway": "10.1.2.30"}));
        assert_eq!(result["routes"], json!([{"dst": "0.0.0.0/0"}]));
        assert_eq!(given(lab, &config, &attachment("b")), ["10.1.2.10/24"]);
        let text = refused(&lab.one("ADD", &config, &attachment("c")), 11);
        assert!(text.contains("10.1.2.9") && text.contains("10.1.2.10"), "{text}");
        // Both styles: the old one comes first.
        let both = host_local(json!({"subnet": "10.1.5.0/24", "ranges": [[{"subnet": "fd00:1::/64"}]]}));
        assert_eq!(given(lab, &both, &attachment("e")), ["10.1.5.2/24", "fd00:1::2/64"]);
    }

    fn a_stuck_writer_of_the_packet_filter_is_not_waited_for_forever(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let ports = json!({"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]});
        for backend in ["nftables", "iptables"] {
            let config = chained("portmap", json!({"backend": backend, "runtimeConfig": ports}));
            fine(&lab.one("ADD", &config, &attachment));
            fine(&lab.one("DEL", &config, &attachment));
            let file = fs::read_dir("/run/ferrule").unwrap().map(|one| one.unwrap().path()).find(|path| {
                path.to_string_lossy().contains(backend) && path.extension().is_some_and(|end| end == "lock")
            });
            let file = File::open(file.expect("a lock file")).unwrap();
            let held = nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).unwrap();
            let before = lab.snapshot();
            let answer = lab.one("ADD", &config, &attachment);
            assert!(answer.took < Duration::from_secs(50), "{:?}", answer.took);
            if backend == "nftables" {
                // The kernel says whether somebody wrote in between, so the lock only saves repetitions.
                fine(&answer);
                fine(&lab.one("DEL", &config, &attachment));
            } else {
                let text = refused(&answer, 11);
                assert!(text.contains("/run/ferrule") && text.contains("process"), "{text}");
            }
            assert!(before.diff(&lab.snapshot()).is_empty());
            drop(held);
            fine(&lab.one("ADD", &config, &attachment));
            fine(&lab.one("DEL", &config, &attachment));
        }
    }

    fn rules_of_others_cost_nothing(lab) {
        // Counted in system calls, which no other load on the machine can disturb.
        let trace = "/run/sandbox/tmp/calls";
        let mut wrapper = vec![tool("strace", "strace").into_os_string()];
        wrapper.extend(["-f", "-qq", "-o", trace].map(OsString::from));
        let traced = lab.ours.clone().under(&wrapper);
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let ports = json!({"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"}]});
        let configs = [chained("firewall", json!({"backend": "nftables"})),
            chained("portmap", json!({"backend": "nftables", "runtimeConfig": ports}))];
        let calls = || {
            let mut count = 0;
            for verb in ["ADD", "CHECK", "DEL"] {
                for config in &configs {
                    fine(&one_of(&traced, verb, config, &attachment));
                    count += fs::read_to_string(trace).unwrap().lines().count();
                }
            }
            count
        };
        calls();
        let few = calls();
        let write = |rules: &str| {
            fs::write("/run/sandbox/tmp/rules", rules).unwrap();
            run(&tool("nft", "nftables"), &["-f", "/run/sandbox/tmp/rules"]);
        };
        write("table ip nat { chain PREROUTING { type nat hook prerouting priority -100; }; }\n\
            table ip filter { chain FORWARD { type filter hook forward priority 0; }; }\n");
        // An ordinary user's socket takes no larger transactions.
        for part in 0..20 {
            let rules = (part * 100..part * 100 + 100).map(|number| {
                format!("add chain ip nat other-{number}\nadd rule ip nat other-{number} tcp dport {} counter\n\
                    add rule ip filter FORWARD ip saddr 10.{}.{}.1 counter\n", 1000 + number, number / 256, number % 256)
            });
            write(&rules.collect::<String>());
        }
        let many = calls();
        assert!(many < few + 60, "{few} system calls among few rules, {many} among 4000");
    }

    fn several_ways_to_one_destination_are_made_and_checked(lab) {
        let netns = lab.container("c1");
        let attachment = Attachment::new("c1", netns.path());
        let mut config = bridge(json!({"isDefaultGateway": true}));
        config["ipam"]["routes"] = json!([
            {"dst": "203.0.113.0/24", "gw": "10.77.0.8"}, {"dst": "203.0.113.0/24", "gw": "10.77.0.9", "priority": 50},
            {"dst": "2001:db8:5::/48", "gw": "fd00:77::8"}, {"dst": "2001:db8:5::/48", "gw": "fd00:77::9"},
            {"dst": "198.51.100.7/32", "gw": "10.77.0.8", "table": 4000},
        ]);
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        config["prevResult"] = answer.json().unwrap();
        fine(&lab.one("CHECK", &config, &attachment));
        // Each of them is missed when it is gone.
        let rtnl = Rtnl::open(&netns).unwrap();
        rtnl.delete_routes_to("203.0.113.0/24".parse().unwrap()).unwrap();
        let text = refused(&lab.one("CHECK", &config, &attachment), 999);
        assert!(text.contains("203.0.113.0/24"), "{text}");
    }

    fn an_address_that_a_neighbour_holds_is_found_when_asked_for(lab) {
        let fixed = |id: &str| {
            let netns = lab.container(id);
            let attachment = Attachment::new(id, netns.path());
            let config = json!({"cniVersion": "1.1.0", "name": "relied", "type": "bridge", "bridge": "br0", "enabledad": true,
                "ipam": {"type": "static", "addresses": [{"address": "fd00:77::5/64"}]}});
            let answer = lab.one("ADD", &config, &attachment);
            (netns, attachment, config, answer)
        };
        let (one, ..) = fixed("c1");
        let (other, attachment, config, answer) = fixed("c2");
        let text = refused(&answer, 999);
        assert!(text.contains("fd00:77::5") && text.contains("another station"), "{text}");
        assert!(Rtnl::open(&other).unwrap().link("eth0").is_err());
        fine(&lab.one("DEL", &config, &attachment));
        // The holder is none the worse for it.
        let third = lab.container("c3");
        let config = json!({"cniVersion": "1.1.0", "name": "relied", "type": "bridge", "bridge": "br0", "enabledad": true,
            "ipam": {"type": "static", "addresses": [{"address": "fd00:77::6/64"}]}});
        fine(&lab.one("ADD", &config, &Attachment::new("c3", third.path())));
        ping(&third, "fd00:77::5".parse().unwrap(), PATIENCE).unwrap();
        drop(one);
        assert!(ping(&third, "fd00:77::99".parse().unwrap(), BRIEFLY).is_err());
    }
}
