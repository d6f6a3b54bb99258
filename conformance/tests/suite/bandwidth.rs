//! bandwidth: limits that are kept, and nothing that stays.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use conformance::chain::{Attachment, Network};
use conformance::error::Context;
use conformance::facts::interfaces;
use conformance::net::{Netns, Rtnl};
use conformance::probe::{PATIENCE, ping};
use serde_json::{Value, json};

use super::support::{
    Lab, address_of, fine, network, one_of, reference, refused, run, sandboxed, tool,
};

/// Bits a second and bits, of what the container receives and of what it sends.
const IN_RATE: u64 = 8_000_000;
const OUT_RATE: u64 = 4_000_000;
const BURST: u64 = 160_000;

fn both() -> Value {
    json!({"ingressRate": IN_RATE, "ingressBurst": BURST, "egressRate": OUT_RATE, "egressBurst": BURST})
}

fn list(limits: &Value) -> Network {
    let mut shape = json!({"type": "bandwidth", "capabilities": {"bandwidth": true}});
    for (key, value) in limits.as_object().unwrap() {
        shape[key] = value.clone();
    }
    network(&json!({"cniVersion": "1.0.0", "name": "bwnet", "plugins": [
        {"type": "bridge", "bridge": "bw0", "isGateway": true,
         "ipam": {"type": "host-local", "subnet": "10.44.0.0/24", "routes": [{"dst": "0.0.0.0/0"}]}},
        shape,
    ]}))
}

/// The second plugin's configuration as a runtime sends it.
fn shaping(list: &Network, previous: &Value) -> Value {
    let mut config = list.plugins[1].clone();
    config["name"] = json!(list.name);
    config["cniVersion"] = json!(list.version);
    config["prevResult"] = previous.clone();
    config
}

fn attach(lab: &Lab, name: &str) -> (Netns, Attachment) {
    let netns = lab.container(name);
    let attachment = Attachment::new(&format!("container-{name}"), netns.path());
    (netns, attachment)
}

fn tc(arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    run(&tool("tc", "iproute2"), &arguments)
}

fn ip(arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    run(&tool("ip", "iproute2"), &arguments)
}

/// Names of the intermediate functional blocks that are there.
fn blocks(lab: &Lab) -> Vec<String> {
    let links = lab.rtnl().links().unwrap();
    links
        .into_iter()
        .filter(|link| link.facts.kind == "ifb")
        .map(|link| link.name)
        .collect()
}

/// The host's end of the pair.
fn host_end(result: &Value) -> String {
    interfaces(result)[1].name.clone()
}

/// Bits a second that arrive, headers included, while much more is sent; without what the burst and the queue hold.
fn measured(from: &Netns, to: &Netns, address: IpAddr) -> f64 {
    const PAYLOAD: usize = 1000;
    const HEADERS: usize = 14 + 20 + 8;
    let target = SocketAddr::new(address, 9);
    let receiver = to.run(|| UdpSocket::bind(target).doing(|| "bind")).unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    let sender = from
        .run(|| UdpSocket::bind("0.0.0.0:0").doing(|| "bind"))
        .unwrap();
    sender.connect(target).unwrap();
    sender.set_nonblocking(true).unwrap();
    let stop = AtomicBool::new(false);
    let mut arrivals: Vec<Instant> = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                // A full queue is what is wanted here.
                for _ in 0..20 {
                    let _ = sender.send(&[0; PAYLOAD]);
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let start = Instant::now();
        let mut buffer = [0; 2 * PAYLOAD];
        while start.elapsed() < Duration::from_millis(2000) && receiver.recv(&mut buffer).is_ok() {
            arrivals.push(Instant::now());
        }
        stop.store(true, Ordering::Relaxed);
    });
    // The bucket and the queue are empty at the beginning.
    let skipped = arrivals.partition_point(|at| *at - arrivals[0] < Duration::from_millis(300));
    let counted = &arrivals[skipped..];
    assert!(
        counted.len() > 100,
        "only {} datagrams arrived",
        arrivals.len()
    );
    let seconds = (counted[counted.len() - 1] - counted[0]).as_secs_f64();
    ((counted.len() - 1) * (PAYLOAD + HEADERS) * 8) as f64 / seconds
}

#[track_caller]
fn within_a_tenth(measured: f64, wanted: u64) {
    let part = measured / wanted as f64;
    println!("{measured:.0} bit/s of {wanted}: {part:.3}");
    assert!(
        (0.9..=1.1).contains(&part),
        "{measured:.0} bit/s instead of {wanted}"
    );
}

sandboxed! {
    fn both_directions_are_limited_as_promised(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let before = lab.snapshot();
        let list = list(&both());
        let result = lab.add(&list, &mut attachment);
        let listed = interfaces(&result);
        assert_eq!(listed.len(), 4, "{result}");
        let block = &listed[3];
        // H(15, "bwp", network + container id), as both kinds of plugin compute it.
        assert_eq!((block.name.as_str(), block.sandbox.as_str()), ("bwp60639f958167", ""));
        let real = lab.rtnl().link(&block.name).unwrap();
        assert_eq!((real.facts.kind.as_str(), real.facts.up, real.facts.mtu), ("ifb", true, 1500));
        assert_eq!(real.facts.mac, block.mac);
        assert!(real.facts.alias.contains("net: bwnet, if: eth0, id: container-c1"), "{real:?}");
        let port = host_end(&result);
        assert!(tc(&format!("qdisc show dev {port} root")).contains("tbf 1: root refcnt"));
        assert!(tc(&format!("qdisc show dev {port}")).contains("rate 8Mbit burst 20000b lat 25ms"));
        assert!(tc(&format!("qdisc show dev {port}")).contains("qdisc ingress ffff:"));
        assert!(tc(&format!("qdisc show dev {}", block.name)).contains("rate 4Mbit burst 20000b lat 25ms"));
        let filter = tc(&format!("filter show dev {port} ingress"));
        assert!(filter.contains("protocol all pref 1 u32") && filter.contains(&format!("Redirect to device {}", block.name)), "{filter}");
        assert_eq!(filter.matches("mirred").count(), 1, "{filter}");
        lab.check(&list, &attachment);

        let address = address_of(&result, true);
        let host: IpAddr = "10.44.0.1".parse().unwrap();
        within_a_tenth(measured(lab.host.netns(), &netns, address), IN_RATE);
        within_a_tenth(measured(&netns, lab.host.netns(), host), OUT_RATE);
        ping(&netns, host, PATIENCE).unwrap();

        for _ in 0..2 {
            lab.del(&list, &attachment);
            assert!(blocks(lab).is_empty());
        }
        let left = before.diff(&lab.snapshot());
        assert!(left.added.iter().all(|item| !item.to_string().contains("container-c1")), "{left}");
    }

    fn each_direction_can_be_limited_alone(lab) {
        let cases = [
            (json!({"ingressRate": IN_RATE, "ingressBurst": BURST}), true, false),
            (json!({"egressRate": OUT_RATE, "egressBurst": BURST}), false, true),
            (json!({}), false, false),
            (json!({"ingressRate": 0, "ingressBurst": 0, "egressRate": 0, "egressBurst": 0}), false, false),
        ];
        for (number, (limits, ingress, egress)) in cases.into_iter().enumerate() {
            let (netns, mut attachment) = attach(lab, &format!("c{number}"));
            let list = list(&limits);
            let result = lab.add(&list, &mut attachment);
            let text = tc(&format!("qdisc show dev {}", host_end(&result)));
            assert_eq!((text.contains("tbf"), text.contains("ingress")), (ingress, egress), "{limits}: {text}");
            assert_eq!((interfaces(&result).len(), blocks(lab).len()), (3 + usize::from(egress), usize::from(egress)));
            lab.check(&list, &attachment);
            let free = 1.5 * IN_RATE as f64;
            let address = address_of(&result, true);
            if !ingress {
                assert!(measured(lab.host.netns(), &netns, address) > free);
            }
            if !egress {
                assert!(measured(&netns, lab.host.netns(), "10.44.0.1".parse().unwrap()) > free);
            }
            lab.del(&list, &attachment);
        }
    }

    fn limits_of_the_runtime_count_unless_the_network_has_its_own(lab) {
        let limits = |config: Value, runtime: Value, number: usize| {
            let (_netns, attachment) = attach(lab, &format!("c{number}"));
            let mut attachment = attachment.capability("bandwidth", runtime);
            let result = lab.add(&list(&config), &mut attachment);
            tc(&format!("qdisc show dev {}", host_end(&result)))
        };
        let lower = json!({"ingressRate": 1_000_000, "ingressBurst": 1_000_000, "egressRate": 2_000_000, "egressBurst": 1_000_000});
        // As containerd and Nomad spell it.
        let capital = json!({"IngressRate": 1_000_000, "IngressBurst": 4_294_967_295_u64, "EgressRate": 0, "EgressBurst": 0});
        assert!(limits(json!({}), lower.clone(), 0).contains("rate 1Mbit burst 125000b lat 25ms"));
        let text = limits(json!({}), capital, 1);
        assert!(text.contains("rate 1Mbit") && !text.contains("ingress"), "{text}");
        assert!(limits(both(), lower.clone(), 2).contains("rate 8Mbit"));
        // Even a zero says that this network has no limits.
        assert!(!limits(json!({"egressRate": 0}), lower, 3).contains("tbf"));
    }

    fn limits_that_cannot_be_are_refused_and_leave_nothing(lab) {
        let (_netns, mut attachment) = attach(lab, "c1");
        let bare = Network { plugins: vec![list(&both()).plugins[0].clone()], ..list(&both()) };
        let result = lab.add(&bare, &mut attachment);
        let before = lab.snapshot();
        for limits in [
            json!({"ingressRate": 1000}), json!({"ingressBurst": 1000}), json!({"egressRate": 1000}), json!({"egressBurst": 1000}),
            json!({"ingressRate": 7, "ingressBurst": 80_000}), json!({"egressRate": 8000, "egressBurst": 7}),
            json!({"ingressRate": 8000, "ingressBurst": 34_359_738_360_u64}), json!({"ingressRate": -1, "ingressBurst": 8000}),
            json!({"ingressRate": "fast", "ingressBurst": 8000}), json!({"ingressRate": 1.5, "ingressBurst": 8000}),
        ] {
            let config = shaping(&list(&limits), &result);
            for verb in ["ADD", "CHECK"] {
                refused(&lab.one(verb, &config, &attachment), 7);
            }
            fine(&lab.one("DEL", &config, &attachment));
        }
        let diff = before.diff(&lab.snapshot());
        assert!(diff.is_empty(), "{diff}");
    }

    fn no_sum_overflows(lab) {
        let cases = [
            (json!({"ingressRate": 8, "ingressBurst": 80_000}), "rate 8bit"),
            (json!({"ingressRate": 1_000_000, "ingressBurst": 34_359_738_352_u64}), "rate 1Mbit"),
            (json!({"ingressRate": 100_000_000_000_u64, "ingressBurst": 80_000}), "rate 100Gbit"),
            (json!({"ingressRate": u64::MAX, "ingressBurst": 80_000}), "rate "),
        ];
        for (number, (limits, rate)) in cases.into_iter().enumerate() {
            let (_netns, mut attachment) = attach(lab, &format!("c{number}"));
            let list = list(&limits);
            let result = lab.add(&list, &mut attachment);
            let text = tc(&format!("qdisc show dev {}", host_end(&result)));
            assert!(text.contains(rate), "{text}");
            // The bucket holds what it was given: some full packets pass at once, however slow the rate is.
            for _ in 0..3 {
                ping(lab.host.netns(), address_of(&result, true), PATIENCE).unwrap();
            }
            lab.check(&list, &attachment);
            lab.del(&list, &attachment);
        }
    }

    fn what_has_no_end_on_the_host_is_refused_with_the_reason(lab) {
        let (netns, attachment) = attach(lab, "c1");
        let inside = Rtnl::open(&netns).unwrap();
        let sandbox = netns.path().to_str().unwrap();
        let with = |interfaces: Value| {
            shaping(&list(&both()), &json!({"cniVersion": "1.0.0", "interfaces": interfaces}))
        };
        let own = json!({"name": "eth0", "sandbox": sandbox});
        refused(&lab.one("ADD", &with(json!([])), &attachment), 7);
        let text = refused(&lab.one("ADD", &with(json!([own])), &attachment), 999);
        assert!(text.contains("eth0") && text.contains("not found"), "{text}");
        inside.add_bridge("eth0").unwrap();
        let text = refused(&lab.one("ADD", &with(json!([own])), &attachment), 7);
        assert!(text.contains("bridge") && text.contains("not a veth"), "{text}");
        inside.delete_link("eth0").unwrap();

        // A pair between two containers has no end here; a number that is the same by chance is none.
        let other = lab.container("c2");
        inside.add_veth("eth0", &other, "far").unwrap();
        refused(&lab.one("ADD", &with(json!([own, {"name": "up0"}])), &attachment), 999);
        inside.delete_link("eth0").unwrap();

        // The right one among several; the result must know it.
        for name in ["a0", "b0", "c0"] {
            let far = if name == "b0" { "eth0".to_owned() } else { format!("far-{name}") };
            lab.rtnl().add_veth(name, &netns, &far).unwrap();
        }
        let text = refused(&lab.one("ADD", &with(json!([{"name": "a0"}, {"name": "c0"}, own])), &attachment), 999);
        assert!(text.contains("b0"), "{text}");
        fine(&lab.one("ADD", &with(json!([{"name": "a0"}, {"name": "b0"}, own, {"name": "c0"}])), &attachment));
        assert!(tc("qdisc show dev b0").contains("tbf"));
        for other in ["a0", "c0"] {
            assert!(!tc(&format!("qdisc show dev {other}")).contains("tbf"));
        }
    }

    fn a_program_that_was_there_first_keeps_its_place(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let list = list(&both());
        let bare = Network { plugins: vec![list.plugins[0].clone()], ..list.clone() };
        let result = lab.add(&bare, &mut attachment);
        let port = host_end(&result);
        tc(&format!("qdisc add dev {port} clsact"));
        tc(&format!("filter add dev {port} ingress prio 7 protocol all u32 match ip dst 203.0.113.1/32 classid 1:1"));
        let config = shaping(&list, &result);
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        let shaped = answer.json().unwrap();
        fine(&lab.one("CHECK", &shaping(&list, &shaped), &attachment));
        let filters = tc(&format!("filter show dev {port} ingress"));
        assert!(filters.contains("pref 7") && filters.contains("Redirect to device bwp"), "{filters}");
        within_a_tenth(measured(&netns, lab.host.netns(), "10.44.0.1".parse().unwrap()), OUT_RATE);
        fine(&lab.one("DEL", &config, &attachment));
        assert!(blocks(lab).is_empty());
        let filters = tc(&format!("filter show dev {port} ingress"));
        assert!(filters.contains("pref 7"), "{filters}");
        // Once more on the same pair: the filter that lost its target is no obstacle.
        fine(&lab.one("ADD", &config, &attachment));
        ping(&netns, "10.44.0.1".parse().unwrap(), PATIENCE).unwrap();
    }

    fn a_failed_add_leaves_nothing(lab) {
        let (_netns, mut attachment) = attach(lab, "c1");
        let list = list(&both());
        let bare = Network { plugins: vec![list.plugins[0].clone()], ..list.clone() };
        let result = lab.add(&bare, &mut attachment);
        let port = host_end(&result);
        let clean = tc("qdisc show");
        // Nobody is told of the result.
        let plugins = super::support::plugins();
        let mut child = std::process::Command::new(plugins.join("bandwidth"))
            .env_clear()
            .envs([("CNI_COMMAND", "ADD"), ("CNI_CONTAINERID", "container-c1"), ("CNI_IFNAME", "eth0")])
            .env("CNI_NETNS", &attachment.netns)
            .env("CNI_PATH", &plugins)
            .stdin(std::process::Stdio::piped())
            .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
            .spawn()
            .unwrap();
        let config = shaping(&list, &result);
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), config.to_string().as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        assert!(blocks(lab).is_empty());
        assert_eq!(tc("qdisc show"), clean);
        // Another shaper is not replaced.
        tc(&format!("qdisc add dev {port} root handle 5: tbf rate 1mbit burst 10kb latency 50ms"));
        let text = refused(&lab.one("ADD", &config, &attachment), 999);
        assert!(text.contains(&port) && text.contains("tbf"), "{text}");
        assert!(blocks(lab).is_empty());
        assert!(tc(&format!("qdisc show dev {port}")).contains("tbf 5:"));
        // Names that belong to others are not taken.
        tc(&format!("qdisc del dev {port} root"));
        ip("link add bwp60639f958167 type bridge");
        fine(&lab.one("ADD", &config, &attachment));
        assert_eq!(blocks(lab).len(), 1);
        fine(&lab.one("DEL", &config, &attachment));
        assert!(blocks(lab).is_empty());
        assert_eq!(lab.rtnl().link("bwp60639f958167").unwrap().facts.kind, "bridge");
    }

    fn an_add_can_be_repeated(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let list = list(&both());
        let result = lab.add(&list, &mut attachment);
        let answer = lab.one("ADD", &shaping(&list, &result), &attachment);
        fine(&answer);
        assert_eq!(answer.json().unwrap(), result);
        assert_eq!(blocks(lab).len(), 1);
        lab.check(&list, &attachment);
        within_a_tenth(measured(&netns, lab.host.netns(), "10.44.0.1".parse().unwrap()), OUT_RATE);
        lab.del(&list, &attachment);
        assert!(blocks(lab).is_empty());
    }

    fn the_same_container_again_after_a_crash(lab) {
        let list = list(&both());
        let (netns, mut attachment) = attach(lab, "c1");
        lab.add(&list, &mut attachment);
        drop(netns);
        lab.rtnl().wait_without_ports("bw0", PATIENCE).unwrap();
        assert_eq!(blocks(lab).len(), 1, "nobody took it away");
        let (netns, mut attachment) = attach(lab, "c1");
        std::fs::remove_file("/var/lib/cni/networks/bwnet/10.44.0.2").unwrap();
        lab.add(&list, &mut attachment);
        assert_eq!(blocks(lab).len(), 1);
        ping(&netns, "10.44.0.1".parse().unwrap(), PATIENCE).unwrap();
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
    }

    fn two_interfaces_of_one_container_are_limited_apart(lab) {
        let list = list(&both());
        let (netns, mut first) = attach(lab, "c1");
        lab.add(&list, &mut first);
        let mut second = Attachment::new("container-c1", netns.path()).ifname("net1");
        lab.add(&list, &mut second);
        assert_eq!(blocks(lab).len(), 2);
        lab.check(&list, &first);
        lab.check(&list, &second);
        lab.del(&list, &second);
        assert_eq!(blocks(lab), ["bwp60639f958167"]);
        lab.check(&list, &first);
        lab.del(&list, &first);
        assert!(blocks(lab).is_empty());
    }

    fn del_needs_nothing(lab) {
        let list = list(&both());
        let (netns, mut attachment) = attach(lab, "c1");
        lab.add(&list, &mut attachment);
        drop(netns);
        attachment.result = None;
        for (path, config) in [
            ("", json!({"ingressRate": "broken", "runtimeConfig": 5})), ("/run/netns/c1", json!({"egressBurst": 1})), ("/tmp", json!({})),
        ] {
            let mut config = config;
            for (key, value) in [("name", "bwnet"), ("type", "bandwidth"), ("cniVersion", "1.0.0")] {
                config[key] = json!(value);
            }
            attachment.netns = path.into();
            fine(&lab.one("DEL", &config, &attachment));
            assert!(blocks(lab).is_empty());
        }
    }

    fn del_finds_a_block_under_another_name(lab) {
        let list = list(&both());
        let (_netns, mut attachment) = attach(lab, "c1");
        lab.add(&list, &mut attachment);
        ip("link set bwp60639f958167 down");
        ip("link set bwp60639f958167 name renamed0");
        lab.del(&list, &attachment);
        assert!(blocks(lab).is_empty());
    }

    fn gc_takes_the_blocks_of_the_lost(lab) {
        let list = list(&both());
        let mut other = list.clone();
        other.name = "other".into();
        let (_a, mut live) = attach(lab, "live");
        let (_b, mut lost) = attach(lab, "lost");
        let (_c, mut elsewhere) = attach(lab, "elsewhere");
        lab.add(&list, &mut live);
        lab.add(&list, &mut lost);
        lab.add(&other, &mut elsewhere);
        ip("link add foreign0 type ifb");
        let gc = |valid: Option<Value>| {
            let mut config = json!({"cniVersion": "1.1.0", "name": "bwnet", "type": "bandwidth"});
            if let Some(valid) = valid {
                config["cni.dev/valid-attachments"] = valid;
            }
            fine(&lab.one("GC", &config, &live));
            blocks(lab).len()
        };
        assert_eq!(gc(None), 4);
        assert_eq!(gc(Some(json!([{"containerID": "container-live", "ifname": "eth0"}]))), 3);
        lab.check(&list, &live);
        lab.check(&other, &elsewhere);
        lab.ours.check(&list, &lost).expect_err("it was not in the list");
        assert_eq!(gc(Some(Value::Null)), 2);
        lab.check(&other, &elsewhere);
    }

    fn check_notices_each_loss(lab) {
        type Loss = fn(&str) -> String;
        let losses: [(&str, Loss); 7] = [
            ("tc", |port| format!("qdisc del dev {port} root")),
            ("tc", |port| format!("qdisc change dev {port} root handle 1: tbf rate 9mbit burst 20kb latency 25ms")),
            ("tc", |port| format!("filter del dev {port} ingress")),
            ("tc", |port| format!("qdisc del dev {port} ingress")),
            ("tc", |_| "qdisc del dev bwp60639f958167 root".to_owned()),
            ("ip", |_| "link set bwp60639f958167 down".to_owned()),
            ("ip", |_| "link del bwp60639f958167".to_owned()),
        ];
        let list = list(&both());
        for (program, loss) in losses {
            let (_netns, mut attachment) = attach(lab, "c1");
            let result = lab.add(&list, &mut attachment);
            let config = shaping(&list, &result);
            fine(&lab.one("CHECK", &config, &attachment));
            let loss = loss(&host_end(&result));
            match program {
                "tc" => tc(&loss),
                _ => ip(&loss),
            };
            refused(&lab.one("CHECK", &config, &attachment), 999);
            lab.del(&list, &attachment);
            assert!(blocks(lab).is_empty(), "after {loss}");
        }
    }

    fn what_one_kind_of_plugin_limits_the_other_checks_and_lifts(lab) {
        let list = list(&both());
        let theirs = reference();
        for (name, maker, remover) in [("theirs", &theirs, &lab.ours), ("ours", &lab.ours, &theirs)] {
            let (netns, mut attachment) = attach(lab, name);
            let bare = Network { plugins: vec![list.plugins[0].clone()], ..list.clone() };
            let made = lab.add(&bare, &mut attachment);
            let answer = one_of(maker, "ADD", &shaping(&list, &made), &attachment);
            fine(&answer);
            let config = shaping(&list, &answer.json().unwrap());
            for runtime in [maker, remover] {
                fine(&one_of(runtime, "CHECK", &config, &attachment));
            }
            within_a_tenth(measured(&netns, lab.host.netns(), "10.44.0.1".parse().unwrap()), OUT_RATE);
            fine(&one_of(remover, "DEL", &config, &attachment));
            assert!(blocks(lab).is_empty(), "made by {name}");
            lab.del(&bare, &attachment);
        }
    }

    fn a_block_of_the_reference_set_may_belong_to_the_other_interface(lab) {
        let list = list(&both());
        let (netns, mut first) = attach(lab, "c1");
        let bare = Network { plugins: vec![list.plugins[0].clone()], ..list.clone() };
        let made = lab.add(&bare, &mut first);
        fine(&one_of(&reference(), "ADD", &shaping(&list, &made), &first));
        let mut second = Attachment::new("container-c1", netns.path()).ifname("net1");
        lab.add(&list, &mut second);
        assert_eq!(blocks(lab).len(), 2);
        lab.del(&list, &second);
        assert_eq!(blocks(lab), ["bwp60639f958167"], "the first interface's");
        first.result = None;
        lab.del(&list, &first);
        assert!(blocks(lab).is_empty());
    }

    fn status_is_fine_here(lab) {
        let mut list = list(&both());
        list.version = "1.1.0".into();
        let before = lab.snapshot();
        lab.ours.status(&list).unwrap();
        let diff = before.diff(&lab.snapshot());
        assert!(diff.is_empty(), "{diff}");
        list.plugins[1]["egressBurst"] = json!(0);
        lab.ours.status(&list).expect_err("no ADD could work");
        let bare = Attachment::new("c", Path::new(""));
        let config = json!({"cniVersion": "1.1.0", "name": "n", "type": "bandwidth"});
        fine(&lab.one("STATUS", &config, &bare));
    }
}
