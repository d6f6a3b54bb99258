//! tc-redirect-tap: a virtual machine in the place of the container.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use conformance::chain::{Attachment, Network};
use conformance::facts::{addresses, interfaces};
use conformance::lists::{LIMITED_MICROVM, MICROVM};
use conformance::net::{Netns, OUTSIDE_V4, Rtnl};
use conformance::probe::{BRIEFLY, PATIENCE, ping};
use serde_json::{Value, json};

use super::guest::Guest;
use super::support::{Lab, fine, network, refused, run, sandboxed, tool};

/// What a microVM driver's list looks like.
fn list(version: &str, extra: &Value) -> Network {
    let mut redirect = json!({"type": "tc-redirect-tap"});
    redirect
        .as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    network(&json!({"cniVersion": version, "name": "fcnet", "plugins": [
        {"type": "ptp", "ipMasq": true,
         "ipam": {"type": "host-local", "subnet": "10.66.0.0/24", "resolvConf": "/etc/resolv.conf",
                  "routes": [{"dst": "0.0.0.0/0"}]}},
        {"type": "firewall"},
        redirect,
    ]}))
}

fn attach(lab: &Lab, name: &str) -> (Netns, Attachment) {
    let netns = lab.container(name);
    let attachment = Attachment::new(&format!("vm-{name}"), netns.path());
    (netns, attachment)
}

/// A static guest configuration, taken from the result and nothing else, as the Firecracker SDK does.
#[derive(Debug)]
struct Machine {
    tap: String,
    netns: String,
    mac: String,
    address: ipnetwork::IpNetwork,
    gateway: Ipv4Addr,
}

impl Machine {
    fn from(result: &Value, id: &str) -> Self {
        let listed = interfaces(result);
        let inner: Vec<usize> = (0..listed.len())
            .filter(|index| listed[*index].sandbox == id)
            .collect();
        assert_eq!(inner.len(), 1, "one interface in the machine: {result}");
        let machine = &listed[inner[0]];
        let taps: Vec<_> = listed
            .iter()
            .filter(|i| i.name == machine.name && i.sandbox != id)
            .collect();
        assert_eq!(taps.len(), 1, "one tap of the same name: {result}");
        let given: Vec<_> = addresses(result)
            .into_iter()
            .filter(|ip| ip.interface == Some(inner[0] as u64))
            .collect();
        assert_eq!(given.len(), 1, "one address: {result}");
        let Some(IpAddr::V4(gateway)) = given[0].gateway else {
            panic!("no gateway: {result}");
        };
        Self {
            tap: machine.name.clone(),
            netns: taps[0].sandbox.clone(),
            mac: machine.mac.clone(),
            address: given[0].address,
            gateway,
        }
    }

    fn start(&self, netns: &Netns) -> Guest {
        let IpAddr::V4(address) = self.address.ip() else {
            panic!("{self:?}");
        };
        Guest::start(netns, &self.tap, &self.mac, address)
    }
}

fn outside() -> Ipv4Addr {
    match OUTSIDE_V4 {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => unreachable!(),
    }
}

/// A tool's output in a namespace.
fn inside(netns: &Netns, program: &str, arguments: &str) -> String {
    let program = tool(program, "iproute2");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    netns.run(|| Ok(run(&program, &arguments))).unwrap()
}

sandboxed! {
    fn a_machine_reaches_gateway_and_outside_from_the_result_alone(lab) {
        for version in ["0.4.0", "1.0.0", "1.1.0"] {
            let (netns, mut attachment) = attach(lab, &format!("c{version}"));
            let list = list(version, &json!({}));
            let before = lab.snapshot();
            let result = lab.add(&list, &mut attachment);
            let machine = Machine::from(&result, &attachment.container_id);
            assert_eq!((machine.tap.as_str(), machine.netns.as_str()), ("tap0", netns.path().to_str().unwrap()));
            assert_eq!(machine.address.prefix(), 24);
            assert_eq!(result["routes"][0]["dst"], "0.0.0.0/0");
            assert_eq!(result["dns"]["nameservers"][0], "192.0.2.53");
            let rtnl = Rtnl::open(&netns).unwrap();
            assert_eq!(machine.mac, rtnl.link("eth0").unwrap().facts.mac, "the machine takes the interface's place");
            let tap = rtnl.link("tap0").unwrap().facts;
            assert_ne!(machine.mac, tap.mac);
            assert_eq!((tap.kind.as_str(), tap.up, tap.mtu), ("tun", true, 1500));
            let listed = interfaces(&result);
            let names: Vec<_> = listed.iter().skip(1).map(|one| one.name.as_str()).collect();
            assert_eq!(names, ["eth0", "tap0", "tap0"], "behind the host's end: {result}");
            assert_eq!(listed[2].mac, tap.mac);

            let mut guest = machine.start(&netns);
            let gateway = guest.resolve(machine.gateway, PATIENCE).expect("the gateway answers");
            let host_end = lab.rtnl().link(&listed[0].name).unwrap().facts;
            assert_eq!(gateway, host_end.mac.parse::<netlink::MacAddr>().unwrap().octets());
            assert!(guest.ping(machine.gateway, machine.gateway, PATIENCE));
            assert!(guest.ping(machine.gateway, outside(), PATIENCE), "masqueraded, and through the firewall");
            lab.check(&list, &attachment);

            let stop = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| guest.serve(&stop));
                let answer = ping(lab.host.netns(), machine.address.ip(), PATIENCE);
                stop.store(true, Ordering::Relaxed);
                answer.unwrap();
            });
            drop(guest);
            // Nobody is there any more: the container's own kernel must not answer for the machine.
            assert!(ping(lab.host.netns(), machine.address.ip(), BRIEFLY).is_err());

            lab.del(&list, &attachment);
            lab.del(&list, &attachment);
            assert!(rtnl.links().unwrap().iter().all(|link| link.name == "lo"));
            drop(netns);
            let left = before.diff(&lab.snapshot());
            let mentioned = left.added.iter().any(|item| item.to_string().contains("vm-c"));
            let links = left.added.iter().any(|item| item.to_string().starts_with("link"));
            assert!(!mentioned && !links, "{left}");
        }
    }

    fn the_list_of_a_microvm_driver_as_it_stands(lab) {
        for (name, text) in [("c1", MICROVM), ("c2", LIMITED_MICROVM)] {
            let list = Network::parse(text).unwrap();
            let (netns, mut attachment) = attach(lab, name);
            let result = lab.add(&list, &mut attachment);
            assert_eq!(result["dns"]["nameservers"][0], "192.0.2.53");
            let machine = Machine::from(&result, &attachment.container_id);
            let mut guest = machine.start(&netns);
            assert!(guest.ping(machine.gateway, machine.gateway, PATIENCE));
            assert!(guest.ping(machine.gateway, outside(), PATIENCE));
            lab.check(&list, &attachment);
            lab.del(&list, &attachment);
            assert!(lab.snapshot().mentioning(&attachment.container_id).is_empty());
        }
    }

    fn it_stands_behind_a_bridge_too(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let mut list = list("1.0.0", &json!({}));
        for (key, value) in [("type", json!("bridge")), ("bridge", json!("fc0")), ("isGateway", json!(true))] {
            list.plugins[0][key] = value;
        }
        let result = lab.add(&list, &mut attachment);
        let machine = Machine::from(&result, &attachment.container_id);
        let mut guest = machine.start(&netns);
        let gateway = guest.resolve(machine.gateway, PATIENCE).expect("the gateway answers");
        assert_eq!(gateway, lab.rtnl().link("fc0").unwrap().facts.mac.parse::<netlink::MacAddr>().unwrap().octets());
        assert!(guest.ping(machine.gateway, outside(), PATIENCE));
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
        assert!(lab.snapshot().mentioning("vm-c1").is_empty());
    }

    fn it_may_stand_before_the_firewall(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let mut list = list("1.1.0", &json!({}));
        list.plugins.swap(1, 2);
        let result = lab.add(&list, &mut attachment);
        let machine = Machine::from(&result, &attachment.container_id);
        let mut guest = machine.start(&netns);
        assert!(guest.ping(machine.gateway, outside(), PATIENCE));
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
        assert!(lab.snapshot().mentioning("vm-c1").is_empty());
    }

    fn owner_and_name_come_from_the_arguments(lab) {
        let ids = "TC_REDIRECT_TAP_UID=0;TC_REDIRECT_TAP_GID=0;OTHER=x";
        let (netns, attachment) = attach(lab, "c1");
        let mut attachment = attachment.args(&format!("TC_REDIRECT_TAP_NAME=vmtap7;{ids}"));
        let list = list("1.0.0", &json!({"tap_name": "other", "uid": 4_000_000, "gid": 4_000_000}));
        let result = lab.add(&list, &mut attachment);
        let machine = Machine::from(&result, &attachment.container_id);
        assert_eq!(machine.tap, "vmtap7");
        let text = inside(&netns, "ip", "-d link show vmtap7");
        for part in ["tun type tap", "pi off", "vnet_hdr on", "persist on", "user root", "group root"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        lab.check(&list, &attachment);
        lab.del(&list, &attachment);
    }

    fn arguments_that_are_none_are_refused_before_any_change(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let mut bare = list("1.0.0", &json!({}));
        bare.plugins.pop();
        let result = lab.add(&bare, &mut attachment);
        let config = |extra: Value| {
            let mut config = json!({"cniVersion": "1.0.0", "name": "fcnet", "type": "tc-redirect-tap", "prevResult": result});
            for (key, value) in extra.as_object().unwrap() {
                config[key] = value.clone();
            }
            config
        };
        let before = inside(&netns, "ip", "-br link");
        for (args, code) in [
            ("TC_REDIRECT_TAP_UID=root", 4), ("TC_REDIRECT_TAP_GID=-1", 4), ("TC_REDIRECT_TAP_NAME=a/b", 7),
            ("TC_REDIRECT_TAP_NAME=a-name-that-is-too-long", 7), ("TC_REDIRECT_TAP_NAME=eth0", 999), ("TC_REDIRECT_TAP_NAME=lo", 999),
        ] {
            refused(&lab.one("ADD", &config(json!({})), &attachment.clone().args(args)), code);
        }
        refused(&lab.one("ADD", &config(json!({"uid": "x"})), &attachment), 7);
        refused(&lab.one("ADD", &config(json!({})), &attachment.clone().ifname("eth1")), 999);
        assert_eq!(before, inside(&netns, "ip", "-br link"));
        assert!(!inside(&netns, "tc", "qdisc show dev eth0").contains("ingress"));
    }

    fn a_second_add_is_refused_and_the_machine_goes_on(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let list = list("1.0.0", &json!({}));
        let result = lab.add(&list, &mut attachment);
        let mut again = list.plugins[2].clone();
        for (key, value) in [("name", json!("fcnet")), ("cniVersion", json!("1.0.0")), ("prevResult", result.clone())] {
            again[key] = value;
        }
        let text = refused(&lab.one("ADD", &again, &attachment), 999);
        assert!(text.contains("tap0") && text.contains("DEL"), "{text}");
        let machine = Machine::from(&result, &attachment.container_id);
        assert!(machine.start(&netns).ping(machine.gateway, machine.gateway, PATIENCE));
    }

    fn a_tap_whose_interface_is_gone_is_replaced(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let list = list("1.0.0", &json!({}));
        lab.add(&list, &mut attachment);
        inside(&netns, "ip", "link del eth0");
        std::fs::remove_file("/var/lib/cni/networks/fcnet/10.66.0.2").unwrap();
        let result = lab.add(&list, &mut attachment);
        let machine = Machine::from(&result, &attachment.container_id);
        assert_eq!(machine.tap, "tap0");
        assert!(machine.start(&netns).ping(machine.gateway, outside(), PATIENCE));
        lab.check(&list, &attachment);
    }

    fn what_others_hooked_on_the_interface_stays(lab) {
        // A program of somebody else's hangs on the interface before us.
        let (netns, mut attachment) = attach(lab, "c1");
        let list = list("1.0.0", &json!({}));
        let mut bare = list.clone();
        let redirect = bare.plugins.pop().unwrap();
        let result = lab.add(&bare, &mut attachment);
        inside(&netns, "tc", "qdisc add dev eth0 clsact");
        let filter = "filter add dev eth0 ingress prio 5 protocol all u32 match ip dst 203.0.113.1/32 classid 1:1";
        inside(&netns, "tc", filter);
        let only = Network { plugins: vec![redirect], ..list.clone() };
        let mut config = only.plugins[0].clone();
        for (key, value) in [("name", json!("fcnet")), ("cniVersion", json!("1.0.0")), ("prevResult", result)] {
            config[key] = value;
        }
        let answer = lab.one("ADD", &config, &attachment);
        fine(&answer);
        let machine = Machine::from(&answer.json().unwrap(), &attachment.container_id);
        let _guest = machine.start(&netns);
        fine(&lab.one("DEL", &config, &attachment));
        let left = inside(&netns, "tc", "filter show dev eth0 ingress");
        assert!(left.contains("pref 5") && !left.contains("mirred"), "{left}");
        assert!(inside(&netns, "tc", "qdisc show dev eth0").contains("clsact"));
    }

    fn check_notices_each_loss(lab) {
        let losses: [(&str, &str); 5] = [
            ("ip", "link del tap0"),
            ("ip", "link set tap0 down"),
            ("tc", "qdisc del dev tap0 ingress"),
            ("tc", "filter del dev eth0 ingress"),
            ("ip", "link set eth0 address 02:00:00:00:00:99"),
        ];
        for (number, (program, arguments)) in losses.into_iter().enumerate() {
            let (netns, mut attachment) = attach(lab, &format!("c{number}"));
            let list = list("1.0.0", &json!({}));
            let result = lab.add(&list, &mut attachment);
            let mut config = list.plugins[2].clone();
            for (key, value) in [("name", json!("fcnet")), ("cniVersion", json!("1.0.0")), ("prevResult", result)] {
                config[key] = value;
            }
            fine(&lab.one("CHECK", &config, &attachment));
            inside(&netns, program, arguments);
            refused(&lab.one("CHECK", &config, &attachment), 999);
            lab.del(&list, &attachment);
            let links = Rtnl::open(&netns).unwrap().links().unwrap();
            assert!(links.iter().all(|link| link.name == "lo"), "after {arguments}: {links:?}");
        }
    }

    fn del_finds_the_tap_without_a_result(lab) {
        // Made by the original plugin, a tap carries no name of its owner.
        let made = ["ours", "the original's"];
        for (number, whose) in made.into_iter().enumerate() {
            let (netns, mut attachment) = attach(lab, &format!("c{number}"));
            let list = list("1.0.0", &json!({}));
            lab.add(&list, &mut attachment);
            if number == 1 {
                netns
                    .run(|| {
                        let status = Command::new(tool("ip", "iproute2")).args(["link", "set", "tap0", "alias", ""]).status();
                        assert!(status.unwrap().success());
                        Ok(())
                    })
                    .unwrap();
            }
            attachment.result = None;
            let redirect = Network { plugins: vec![list.plugins[2].clone()], ..list.clone() };
            lab.del(&redirect, &attachment);
            let rtnl = Rtnl::open(&netns).unwrap();
            assert!(rtnl.link("tap0").is_err(), "{whose}");
            assert!(!inside(&netns, "tc", "qdisc show dev eth0").contains("ingress"), "{whose}");
            // The interface is the container's again.
            ping(&netns, "10.66.0.1".parse().unwrap(), PATIENCE).unwrap();
            lab.del(&list, &attachment);
        }
    }

    fn del_without_a_namespace_needs_nothing(lab) {
        let config = json!({"cniVersion": "1.0.0", "name": "fcnet", "type": "tc-redirect-tap", "uid": "broken"});
        for path in ["", "/run/netns/never", "/tmp"] {
            fine(&lab.one("DEL", &config, &Attachment::new("vm", path.as_ref())));
        }
    }

    fn a_failed_add_leaves_nothing(lab) {
        let (netns, mut attachment) = attach(lab, "c1");
        let mut bare = list("1.0.0", &json!({}));
        bare.plugins.pop();
        let result = lab.add(&bare, &mut attachment);
        // The result cannot be written.
        let plugins = super::support::plugins();
        let config = json!({"cniVersion": "1.0.0", "name": "fcnet", "type": "tc-redirect-tap", "prevResult": result});
        let mut child = Command::new(plugins.join("tc-redirect-tap"))
            .env_clear()
            .envs([("CNI_COMMAND", "ADD"), ("CNI_CONTAINERID", "vm-c1"), ("CNI_IFNAME", "eth0")])
            .env("CNI_NETNS", netns.path())
            .env("CNI_PATH", &plugins)
            .stdin(std::process::Stdio::piped())
            .stdout(std::fs::File::options().write(true).open("/dev/full").unwrap())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), config.to_string().as_bytes()).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(1));
        let links = Rtnl::open(&netns).unwrap().links().unwrap();
        assert!(links.iter().all(|link| ["lo", "eth0"].contains(&link.name.as_str())), "{links:?}");
        assert!(!inside(&netns, "tc", "qdisc show dev eth0").contains("ingress"));
        let started = Instant::now();
        ping(&netns, "10.66.0.1".parse().unwrap(), PATIENCE).unwrap();
        assert!(started.elapsed() < PATIENCE);
    }

    fn status_is_fine_here(lab) {
        lab.ours.status(&list("1.1.0", &json!({}))).unwrap();
        lab.ours.gc(&list("1.1.0", &json!({})), Some(&[])).unwrap();
        let bad = list("1.1.0", &json!({"tap_name": "a/b"}));
        lab.ours.status(&bad).expect_err("no ADD could work");
    }
}
