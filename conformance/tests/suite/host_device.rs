//! host-device: what it moves, and how it gives it back.

use std::path::Path;
use std::time::Duration;

use conformance::chain::Attachment;
use conformance::facts::{addresses, interfaces};
use conformance::net::{Link, Netns, Rtnl};
use conformance::probe::{PATIENCE, ping};
use nix::mount::{MsFlags, mount};
use serde_json::{Value, json};

use super::support::{
    Lab, fine, ip, leases_in, one_of, reference, refused, run, sandboxed, tool, with_previous,
};

const NETWORK: &str = "hd-net";
const DEVICE: &str = "nic0";
const PCI: &str = "0000:05:00.0";

fn config(extra: Value) -> Value {
    let mut config =
        json!({"cniVersion": "1.0.0", "name": NETWORK, "type": "host-device", "device": DEVICE});
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

fn ipam() -> Value {
    json!({"type": "host-local", "ranges": [[{"subnet": "10.8.0.0/24", "rangeStart": "10.8.0.100"}],
        [{"subnet": "fd00:8::/64", "rangeStart": "fd00:8::100"}]], "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]})
}

fn host_ip(lab: &Lab, arguments: &str) -> String {
    ip(lab.host.netns(), arguments)
}

/// A network card of the host, up, with a segment and its router behind.
fn card(lab: &Lab, name: &str, mac: &str) -> Link {
    let far = format!("far-{name}");
    lab.rtnl().add_veth(name, lab.host.outside(), &far).unwrap();
    host_ip(
        lab,
        &format!("link set {name} address {mac} mtu 1450 txqueuelen 77 up"),
    );
    let outside = Rtnl::open(lab.host.outside()).unwrap();
    outside.set_up(&far).unwrap();
    lab.rtnl().link(name).unwrap()
}

fn router(lab: &Lab, name: &str) {
    let outside = Rtnl::open(lab.host.outside()).unwrap();
    for address in ["10.8.0.1/24", "fd00:8::1/64"] {
        outside
            .add_address(&format!("far-{name}"), address.parse().unwrap())
            .unwrap();
    }
}

fn attach(lab: &Lab, name: &str) -> (Netns, Attachment) {
    let netns = lab.container(name);
    let attachment = Attachment::new(&format!("container-{name}"), netns.path()).ifname("net1");
    (netns, attachment)
}

fn inside(netns: &Netns) -> Rtnl {
    Rtnl::open(netns).unwrap()
}

fn leases() -> usize {
    leases_in(&Path::new("/var/lib/cni/networks").join(NETWORK)).len()
}

/// The card is on the host under its name, and nothing of it in the container.
#[track_caller]
fn is_home(lab: &Lab, netns: &Netns, before: &Link) {
    let links = inside(netns).links().unwrap();
    assert!(links.iter().all(|link| link.name == "lo"), "{links:?}");
    let now = lab.rtnl().link(&before.name).unwrap();
    assert_eq!(
        (now.facts.mac.as_str(), now.facts.alias.as_str()),
        (before.facts.mac.as_str(), "")
    );
    assert_eq!(leases(), 0);
}

/// Puts a file system of our own over what the kernel tells about devices.
fn fake_sysfs() {
    for directory in ["/sys/bus", "/sys/devices"] {
        mount(
            Some("tmpfs"),
            directory,
            Some("tmpfs"),
            MsFlags::empty(),
            None::<&str>,
        )
        .unwrap();
    }
}

fn make(directory: &str) {
    std::fs::create_dir_all(directory).unwrap();
}

/// A PCI device with that driver.
fn pci(driver: &str) {
    make(&format!("/sys/bus/pci/devices/{PCI}"));
    make(&format!("/sys/bus/pci/drivers/{driver}"));
    let link = format!("/sys/bus/pci/devices/{PCI}/driver");
    let _ = std::fs::remove_file(&link);
    std::os::unix::fs::symlink(format!("/sys/bus/pci/drivers/{driver}"), link).unwrap();
}

sandboxed! {
    fn it_goes_in_and_comes_back_in_every_version(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
            let (netns, attachment) = attach(lab, &format!("c{version}"));
            let config = config(json!({"cniVersion": version}));
            if version == "1.1.0" {
                fine(&lab.one("STATUS", &config, &attachment));
            }
            let answer = lab.added(&config, &attachment);
            let listed = interfaces(&answer.json().unwrap());
            assert_eq!(listed.len(), 1);
            assert_eq!((listed[0].name.as_str(), listed[0].mac.as_str()), ("net1", "02:00:00:00:08:01"));
            assert_eq!(listed[0].sandbox, netns.path().to_str().unwrap());
            let link = inside(&netns).link("net1").unwrap().facts;
            assert_eq!((link.mac.as_str(), link.up, link.alias.as_str()), ("02:00:00:00:08:01", true, DEVICE));
            assert_eq!((link.mtu, link.tx_queue_len), (1450, 77));
            assert!(lab.rtnl().link(DEVICE).is_err());
            let check = lab.one("CHECK", &with_previous(&config, &answer), &attachment);
            if version < "0.4.0" {
                refused(&check, 1);
            } else {
                fine(&check);
            }
            fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
            is_home(lab, &netns, &before);
            assert!(!lab.rtnl().link(DEVICE).unwrap().facts.up, "it comes back down, as from the reference set");
            fine(&lab.one("DEL", &config, &attachment));
            is_home(lab, &netns, &before);
            lab.rtnl().set_up(DEVICE).unwrap();
        }
        // An early version cannot say "no address".
        for version in ["0.1.0", "0.2.0"] {
            let (netns, attachment) = attach(lab, &format!("c{version}"));
            refused(&lab.one("ADD", &config(json!({"cniVersion": version})), &attachment), 999);
            is_home(lab, &netns, &before);
            assert!(lab.rtnl().link(DEVICE).unwrap().facts.up);
        }
    }

    fn with_ipam_traffic_flows_when_add_returns(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        router(lab, DEVICE);
        let (netns, attachment) = attach(lab, "c1");
        for version in ["0.2.0", "1.0.0"] {
            let config = config(json!({"ipam": ipam(), "dns": {"nameservers": ["192.0.2.7"]}, "cniVersion": version}));
            let answer = lab.added(&config, &attachment);
            assert!(answer.took < Duration::from_secs(2), "{:?}", answer.took);
            let result = answer.json().unwrap();
            assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.7"]));
            assert_eq!(addresses(&result).len(), 2, "{result}");
            for gateway in ["10.8.0.1", "fd00:8::1"] {
                ping(&netns, gateway.parse().unwrap(), PATIENCE).unwrap();
            }
            if version == "1.0.0" {
                assert_eq!(addresses(&result)[0].interface, Some(0));
                fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            }
            fine(&lab.one("DEL", &config, &attachment));
            is_home(lab, &netns, &before);
        }
    }

    fn neighbours_hear_who_holds_an_address_now(lab) {
        card(lab, "nic0", "02:00:00:00:08:01");
        card(lab, "nic1", "02:00:00:00:08:02");
        // Both cards are on one segment.
        let outside = Rtnl::open(lab.host.outside()).unwrap();
        outside.add_bridge("segment").unwrap();
        for far in ["far-nic0", "far-nic1"] {
            outside.set_master(far, "segment").unwrap();
        }
        outside.set_up("segment").unwrap();
        outside.add_address("segment", "10.8.0.1/24".parse().unwrap()).unwrap();
        let of = |device: &str| config(json!({"device": device, "ipam": {"type": "static",
            "addresses": [{"address": "10.8.0.9/24"}]}}));
        let (_one, first) = attach(lab, "c1");
        lab.added(&of("nic0"), &first);
        ping(lab.host.outside(), "10.8.0.9".parse().unwrap(), PATIENCE).unwrap();
        fine(&lab.one("DEL", &of("nic0"), &first));
        let (_two, second) = attach(lab, "c2");
        lab.added(&of("nic1"), &second);
        ping(lab.host.outside(), "10.8.0.9".parse().unwrap(), Duration::from_millis(500)).unwrap();
    }

    fn the_device_is_named_in_many_ways(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        host_ip(lab, "link property add dev nic0 altname a-network-card-with-a-long-name");
        fake_sysfs();
        let kernel_path = "/sys/devices/pci0000:00/0000:05:00.0";
        make(&format!("{kernel_path}/net/{DEVICE}"));
        pci("e1000e");
        make(&format!("/sys/bus/pci/devices/{PCI}/net/{DEVICE}"));
        let virtio = "0000:06:00.0";
        make(&format!("/sys/bus/pci/devices/{virtio}/virtio3/net/{DEVICE}"));
        make("/sys/bus/pci/drivers/virtio-pci");
        std::os::unix::fs::symlink("/sys/bus/pci/drivers/virtio-pci", format!("/sys/bus/pci/devices/{virtio}/driver")).unwrap();
        make(&format!("/sys/bus/auxiliary/devices/mlx5_core.sf.4/net/{DEVICE}"));
        let ways = [
            json!({"device": "a-network-card-with-a-long-name"}),
            json!({"device": "", "hwaddr": "02:00:00:00:08:01"}),
            json!({"device": null, "hwaddr": "02-00-00-00-08-01"}),
            json!({"device": "", "kernelpath": kernel_path}),
            json!({"device": "", "pciBusID": PCI}),
            json!({"device": "", "pciBusID": virtio}),
            json!({"device": "", "runtimeConfig": {"deviceID": PCI}}),
            json!({"device": "", "runtimeConfig": {"deviceID": "mlx5_core.sf.4"}}),
            json!({"device": "", "pciBusID": "0000:99:00.0", "runtimeConfig": {"deviceID": "mlx5_core.sf.4"}}),
            json!({"device": "", "pciBusID": "0000:99:00.0", "runtimeConfig": {"deviceID": PCI}}),
            // The name comes before everything else.
            json!({"hwaddr": "02:00:00:00:00:99", "kernelpath": "/sys/devices/nothing", "runtimeConfig": {"deviceID": PCI}}),
        ];
        for (number, way) in ways.into_iter().enumerate() {
            let (netns, attachment) = attach(lab, &format!("c{number}"));
            let config = config(way);
            let answer = lab.added(&config, &attachment);
            assert_eq!(inside(&netns).link("net1").unwrap().facts.mac, before.facts.mac, "{config}");
            fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            fine(&lab.one("DEL", &config, &attachment));
            is_home(lab, &netns, &before);
        }
    }

    fn what_names_no_device_is_refused(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        fake_sysfs();
        make("/sys/bus/pci/devices/0000:07:00.0");
        let (netns, attachment) = attach(lab, "c1");
        for (way, code, part) in [
            (json!({"device": ""}), 7, r#"specify either "device", "hwaddr", "kernelpath" or "pciBusID""#),
            (json!({"device": "", "dpdkmode": true}), 7, "specify either"),
            (json!({"device": "nic9"}), 999, "nic9"),
            (json!({"device": "lo"}), 999, "loopback"),
            (json!({"device": "", "hwaddr": "02:00"}), 7, "02:00"),
            (json!({"device": "", "hwaddr": "02:00:00:00:08:99"}), 999, "02:00:00:00:08:99"),
            (json!({"device": "", "kernelpath": "/sys/class/net/nic0"}), 7, "/sys/devices/"),
            (json!({"device": "", "kernelpath": "/sys/devices/../class"}), 7, "/sys/devices/"),
            (json!({"device": "", "kernelpath": "/sys/devices/none"}), 999, "/sys/devices/none"),
            (json!({"device": "", "pciBusID": "../../.."}), 7, "pciBusID"),
            (json!({"device": "", "pciBusID": "0000:09:00.0"}), 999, "0000:09:00.0"),
            (json!({"device": "", "pciBusID": "0000:07:00.0"}), 999, "driver"),
            (json!({"runtimeConfig": {"deviceID": "nobody"}}), 999, "DeviceID nobody"),
            (json!({"runtimeConfig": {"deviceID": "a/b"}}), 7, "deviceID"),
        ] {
            let text = refused(&lab.one("ADD", &config(way.clone()), &attachment), code);
            assert!(text.contains(part), "{way}: {text}");
            is_home(lab, &netns, &before);
            assert!(lab.rtnl().link(DEVICE).unwrap().facts.up);
            fine(&lab.one("DEL", &config(way), &attachment));
        }
    }

    fn of_several_with_one_mac_address_the_lowest_is_meant(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        host_ip(lab, "link add link nic0 name on-top type macvlan mode passthru");
        assert_eq!(lab.rtnl().link("on-top").unwrap().facts.mac, before.facts.mac);
        let (_netns, attachment) = attach(lab, "c1");
        let answer = lab.added(&config(json!({"device": "", "hwaddr": "02:00:00:00:08:01"})), &attachment);
        let said = String::from_utf8_lossy(&answer.stderr);
        assert!(said.contains("on-top") && said.contains("taking nic0"), "{said}");
    }

    fn a_device_for_a_program_in_user_space_stays_where_it_is(lab) {
        fake_sysfs();
        for driver in ["vfio-pci", "uio_pci_generic", "igb_uio"] {
            pci(driver);
            let (netns, attachment) = attach(lab, driver);
            for extra in [json!({"device": "", "pciBusID": PCI}), json!({"device": "", "runtimeConfig": {"deviceID": PCI}})] {
                let mut config = config(extra);
                config["ipam"] = ipam();
                let answer = lab.added(&config, &attachment);
                let result = answer.json().unwrap();
                assert_eq!(result["interfaces"], json!([{"name": "net1", "sandbox": netns.path()}]));
                assert_eq!(addresses(&result)[0].interface, Some(0));
                assert_eq!(inside(&netns).links().unwrap().len(), 1);
                fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
                fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
                assert_eq!(leases(), 0);
                config["ipam"] = json!({});
                fine(&lab.one("DEL", &config, &attachment));
            }
        }
    }

    fn the_container_keeps_its_own_interface_of_that_name(lab) {
        let before = card(lab, "eth0", "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        lab.rtnl().add_veth("host-end", &netns, "eth0").unwrap();
        let own = inside(&netns).link("eth0").unwrap();
        let config = config(json!({"device": "eth0"}));
        lab.added(&config, &attachment);
        assert_eq!(inside(&netns).link("net1").unwrap().facts.mac, before.facts.mac);
        fine(&lab.one("DEL", &config, &attachment));
        assert_eq!(inside(&netns).link("eth0").unwrap(), own);
        assert_eq!(lab.rtnl().link("eth0").unwrap().facts.mac, before.facts.mac);
        // A name that is taken is refused before anything is moved.
        lab.rtnl().set_up("eth0").unwrap();
        let text = refused(&lab.one("ADD", &config, &attachment.clone().ifname("eth0")), 999);
        assert!(text.contains("already exists"), "{text}");
        assert!(lab.rtnl().link("eth0").unwrap().facts.up);
        assert_eq!(inside(&netns).link("eth0").unwrap(), own);
    }

    fn the_same_name_in_both_places(lab) {
        let before = card(lab, "eth0", "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        let attachment = attachment.ifname("eth0");
        let config = config(json!({"device": "eth0"}));
        let answer = lab.added(&config, &attachment);
        assert_eq!(inside(&netns).link("eth0").unwrap().facts.alias, "eth0");
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        fine(&lab.one("DEL", &config, &attachment));
        is_home(lab, &netns, &before);
    }

    fn a_failed_add_gives_it_back_as_it_was(lab) {
        card(lab, DEVICE, "02:00:00:00:08:01");
        lab.rtnl().add_bridge("lan0").unwrap();
        host_ip(lab, "link set nic0 alias uplink");
        for address in ["10.8.0.7/24", "fd00:8::7/64"] {
            lab.rtnl().add_address(DEVICE, address.parse().unwrap()).unwrap();
        }
        host_ip(lab, "route add 10.9.0.0/16 via 10.8.0.1");
        host_ip(lab, "route add 10.10.0.0/16 via 10.8.0.1 table 77 metric 5");
        host_ip(lab, "-6 route add fd00:9::/64 via fd00:8::1");
        let (netns, attachment) = attach(lab, "c1");
        let failing = [
            json!({"ipam": {"type": "missing-ipam"}}),
            json!({"ipam": {"type": "static"}}),
            json!({"ipam": {"type": "host-local", "subnet": "10.8.0.0/24", "routes": [{"dst": "10.9.0.0/16", "gw": "fd00::1"}]}}),
            json!({"cniVersion": "0.2.0", "ipam": {"type": "host-local",
                "ranges": [[{"subnet": "10.8.0.0/24"}], [{"subnet": "10.8.1.0/24"}]]}}),
        ];
        let seen = || [host_ip(lab, "link show nic0"), host_ip(lab, "-4 addr show nic0"), host_ip(lab, "route show"),
            host_ip(lab, "route show table 77"), host_ip(lab, "-6 route show fd00:9::/64"), host_ip(lab, "-6 addr show nic0 scope global")];
        let before = seen();
        for extra in &failing {
            let answer = lab.one("ADD", &config(extra.clone()), &attachment);
            assert!(answer.error().is_some(), "{extra}: {}", answer.text());
            assert_eq!(seen(), before, "{extra}");
            assert_eq!((leases(), inside(&netns).links().unwrap().len()), (0, 1));
        }
        lab.rtnl().flush_addresses(DEVICE).unwrap();
        lab.rtnl().set_master(DEVICE, "lan0").unwrap();
        refused(&lab.one("ADD", &config(failing[0].clone()), &attachment), 999);
        assert_eq!(lab.rtnl().link(DEVICE).unwrap().master, Some(lab.rtnl().link("lan0").unwrap().index));
        // And the next one finds it.
        lab.added(&config(json!({})), &attachment);
        fine(&lab.one("DEL", &config(json!({})), &attachment));
    }

    fn a_device_that_is_too_small_for_ipv6_is_given_back(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        host_ip(lab, "link set nic0 mtu 1000");
        let (netns, attachment) = attach(lab, "c1");
        let text = refused(&lab.one("ADD", &config(json!({"ipam": ipam()})), &attachment), 7);
        assert!(text.contains("1000"), "{text}");
        is_home(lab, &netns, &before);
    }

    fn a_name_that_is_taken_on_the_host_loses_nothing(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        router(lab, DEVICE);
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"ipam": ipam()}));
        lab.added(&config, &attachment);
        lab.rtnl().add_bridge(DEVICE).unwrap();
        let seen = || [ip(&netns, "link show net1"), ip(&netns, "addr show net1"), ip(&netns, "route show")];
        let held = seen();
        for _ in 0..2 {
            let text = refused(&lab.one("DEL", &config, &attachment), 999);
            assert!(text.contains("nic0") && text.contains("net1") && text.contains("repeat the DEL"), "{text}");
            assert_eq!(seen(), held);
        }
        ping(&netns, "10.8.0.1".parse().unwrap(), PATIENCE).unwrap();
        lab.rtnl().delete_link(DEVICE).unwrap();
        fine(&lab.one("DEL", &config, &attachment));
        is_home(lab, &netns, &before);
    }

    fn del_works_without_namespace_result_device_or_a_valid_config(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        fake_sysfs();
        pci("e1000e");
        make(&format!("/sys/bus/pci/devices/{PCI}/net/{DEVICE}"));
        let (netns, mut attachment) = attach(lab, "c1");
        let by_pci = config(json!({"device": "", "pciBusID": PCI, "ipam": ipam()}));
        lab.added(&by_pci, &attachment);
        std::fs::remove_dir_all(format!("/sys/bus/pci/devices/{PCI}")).unwrap();
        fine(&lab.one("DEL", &by_pci, &attachment));
        is_home(lab, &netns, &before);

        let broken = config(json!({"device": 7, "hwaddr": [], "kernelpath": {}, "ipam": ipam(), "runtimeConfig": {"deviceID": 1}}));
        lab.added(&config(json!({"ipam": ipam()})), &attachment);
        fine(&lab.one("DEL", &broken, &attachment));
        is_home(lab, &netns, &before);

        lab.added(&config(json!({"ipam": ipam()})), &attachment);
        assert_eq!(leases(), 2);
        for path in ["", "/tmp", "/run/netns/missing"] {
            let known = std::mem::replace(&mut attachment.netns, path.into());
            fine(&lab.one("DEL", &config(json!({"ipam": ipam()})), &attachment));
            assert_eq!(leases(), 0);
            attachment.netns = known;
        }
        fine(&lab.one("DEL", &config(json!({})), &attachment));
        is_home(lab, &netns, &before);
    }

    fn del_goes_on_past_an_ipam_that_fails(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        lab.added(&config(json!({})), &attachment);
        refused(&lab.one("DEL", &config(json!({"ipam": {"type": "missing-ipam"}})), &attachment), 999);
        is_home(lab, &netns, &before);
    }

    fn del_finds_what_the_workload_has_changed(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({}));
        for change in ["link set net1 name wan0", "link set net1 alias nothing/at/all", "link set net1 address 02:00:00:00:08:77"] {
            let answer = lab.added(&config, &attachment);
            ip(&netns, "link set net1 down");
            ip(&netns, change);
            fine(&lab.one("DEL", &with_previous(&config, &answer), &attachment));
            assert!(inside(&netns).links().unwrap().iter().all(|link| link.name == "lo"), "{change}");
            host_ip(lab, "link set nic0 address 02:00:00:00:08:01");
            is_home(lab, &netns, &before);
        }
    }

    fn del_finds_a_renamed_device_without_a_result(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        host_ip(lab, "link property add dev nic0 altname a-network-card-with-a-long-name");
        let (netns, attachment) = attach(lab, "c1");
        for way in [json!({}), json!({"device": "", "hwaddr": before.facts.mac}), json!({"device": "a-network-card-with-a-long-name"})] {
            let config = config(way);
            lab.added(&config, &attachment);
            ip(&netns, "link set net1 down");
            ip(&netns, "link set net1 name wan0");
            fine(&lab.one("DEL", &config, &attachment));
            is_home(lab, &netns, &before);
        }
    }

    fn del_leaves_what_the_workload_put_in_its_place(lab) {
        card(lab, DEVICE, "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        lab.added(&config(json!({})), &attachment);
        inside(&netns).delete_link("net1").unwrap();
        inside(&netns).add_bridge("net1").unwrap();
        fine(&lab.one("DEL", &config(json!({})), &attachment));
        assert_eq!(inside(&netns).link("net1").unwrap().facts.kind, "bridge");
    }

    fn what_came_back_by_itself_gets_its_name_back(lab) {
        // As the kernel leaves hardware of a dead namespace: down, under its name there, or another; with the alias.
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        let lose = |name: &str| {
            host_ip(lab, "link set nic0 down");
            host_ip(lab, &format!("link set nic0 name {name} alias nic0"));
        };
        let gone = Attachment { netns: "/run/netns/missing".into(), ..attachment.clone() };
        let mut gc = config(json!({"cniVersion": "1.1.0"}));
        gc["cni.dev/valid-attachments"] = json!([]);
        for name in ["net1", "dev0"] {
            lose(name);
            fine(&lab.one("DEL", &config(json!({})), &gone));
            is_home(lab, &netns, &before);
            lose(name);
            fine(&lab.one("GC", &gc, &gone));
            is_home(lab, &netns, &before);
            lose(name);
            lab.added(&config(json!({})), &attachment);
            fine(&lab.one("DEL", &config(json!({})), &attachment));
            is_home(lab, &netns, &before);
            // Found by what it is; the name it is to have is the alias, if only a dead container can have left it so.
            lose(name);
            let by_mac = config(json!({"device": "", "hwaddr": before.facts.mac}));
            if name == "dev0" {
                lab.added(&by_mac, &attachment);
                fine(&lab.one("DEL", &by_mac, &attachment));
                is_home(lab, &netns, &before);
                lose(name);
            }
            let previous = json!({"cniVersion": "1.0.0", "interfaces": [{"name": "net1", "mac": before.facts.mac, "sandbox": "/run/netns/missing"}]});
            let mut by_nothing = config(json!({"device": ""}));
            by_nothing["prevResult"] = previous;
            for way in [&by_mac, &by_nothing] {
                fine(&lab.one("DEL", way, &gone));
                is_home(lab, &netns, &before);
                lose(name);
            }
            fine(&lab.one("DEL", &by_mac, &gone));
        }
        // An ADD that fails leaves it as it was.
        lose("net1");
        refused(&lab.one("ADD", &config(json!({"ipam": {"type": "missing-ipam"}})), &attachment), 999);
        let link = lab.rtnl().link("net1").unwrap().facts;
        assert_eq!((link.alias.as_str(), link.up), (DEVICE, false));
    }

    fn an_alias_of_the_administrators_is_no_name(lab) {
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        host_ip(lab, "link set nic0 alias uplink");
        let (netns, attachment) = attach(lab, "c1");
        let gone = Attachment { netns: "".into(), ..attachment.clone() };
        let by_mac = config(json!({"device": "", "hwaddr": before.facts.mac}));
        for config in [config(json!({})), by_mac] {
            fine(&lab.one("DEL", &config, &gone));
            let link = lab.rtnl().link(DEVICE).unwrap();
            assert_eq!((link.facts.alias.as_str(), link.facts.up), ("uplink", true));
            lab.added(&config, &attachment);
            fine(&lab.one("DEL", &config, &attachment));
            is_home(lab, &netns, &before);
            lab.rtnl().set_up(DEVICE).unwrap();
            host_ip(lab, "link set nic0 alias uplink");
        }
    }

    fn an_alias_survives_a_failed_add_and_its_del(lab) {
        let before = card(lab, "eth0", "02:00:00:00:08:01");
        host_ip(lab, "link set eth0 down");
        host_ip(lab, "link set eth0 alias uplink");
        let (_netns, attachment) = attach(lab, "c1");
        let attachment = attachment.ifname("eth0");
        let gone = Attachment { netns: "/run/netns/missing".into(), ..attachment.clone() };
        for (way, places) in [
            (json!({"device": "eth0"}), vec![&attachment, &gone]),
            (json!({"device": "", "hwaddr": before.facts.mac}), vec![&attachment]),
        ] {
            let mut config = config(way);
            config["ipam"] = json!({"type": "missing-ipam"});
            assert!(lab.one("ADD", &config, &attachment).error().is_some());
            config.as_object_mut().unwrap().remove("ipam");
            for place in places {
                fine(&lab.one("DEL", &config, place));
                assert_eq!(lab.rtnl().link("eth0").unwrap().facts.alias, "uplink");
            }
        }
    }

    fn check_tells_what_is_gone(lab) {
        card(lab, DEVICE, "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        let losses = ["link set net1 down", "link set net1 address 02:00:00:00:00:77", "addr del 10.8.0.100/24 dev net1",
            "route del default", "-6 route del default"];
        for loss in losses {
            let config = config(json!({"ipam": ipam()}));
            let answer = lab.added(&config, &attachment);
            let previous = with_previous(&config, &answer);
            fine(&lab.one("CHECK", &previous, &attachment));
            // The namespace is the same in each round, and so are the addresses but for the first.
            let own = addresses(&answer.json().unwrap())[0].address.to_string();
            ip(&netns, &loss.replace("10.8.0.100/24", &own));
            refused(&lab.one("CHECK", &previous, &attachment), 999);
            refused(&lab.one("CHECK", &config, &attachment), 999);
            fine(&lab.one("DEL", &config, &attachment));
            host_ip(lab, "link set nic0 address 02:00:00:00:08:01");
        }
    }

    fn gc_and_status(lab) {
        card(lab, DEVICE, "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        let mut config = config(json!({"cniVersion": "1.1.0", "ipam": ipam()}));
        fine(&lab.one("STATUS", &config, &attachment));
        let answer = lab.added(&config, &attachment);
        fine(&lab.one("STATUS", &config, &attachment));
        config["cni.dev/valid-attachments"] = json!([{"containerID": attachment.container_id, "ifname": "net1"}]);
        fine(&lab.one("GC", &config, &attachment));
        fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
        config["cni.dev/valid-attachments"] = json!([]);
        fine(&lab.one("GC", &config, &attachment));
        assert_eq!(leases(), 0);
        assert!(inside(&netns).link("net1").is_ok(), "what is in a container is not ours to take from there");
        for extra in [json!({"ipam": {"type": "missing-ipam"}}), json!({"device": "", "hwaddr": "x"}), json!({"kernelpath": "/x", "device": ""}),
            json!({"pciBusID": "0000:99:99.9"})] {
            let mut config = config.clone();
            for (key, value) in extra.as_object().unwrap() {
                config[key] = value.clone();
            }
            assert!(lab.one("STATUS", &config, &attachment).error().is_some(), "{extra}");
        }
        // The runtime may say later which device it is.
        config["device"] = json!("");
        fine(&lab.one("STATUS", &config, &attachment));
    }

    fn it_and_the_reference_set_undo_each_other(lab) {
        let theirs = reference();
        let before = card(lab, DEVICE, "02:00:00:00:08:01");
        let (netns, attachment) = attach(lab, "c1");
        let config = config(json!({"ipam": ipam()}));
        for (adds, removes, ours) in [(&theirs, &lab.ours, true), (&lab.ours, &theirs, false)] {
            let answer = one_of(adds, "ADD", &config, &attachment);
            fine(&answer);
            fine(&lab.one("CHECK", &with_previous(&config, &answer), &attachment));
            fine(&one_of(removes, "DEL", &with_previous(&config, &answer), &attachment));
            if !ours {
                // Its older versions leave the alias.
                run(&tool("ip", "iproute2"), &["link", "set", DEVICE, "alias", ""]);
            }
            is_home(lab, &netns, &before);
        }
    }

    fn many_at_once(lab) {
        for number in 0..8 {
            card(lab, &format!("nic{number}"), &format!("02:00:00:00:08:{number:02x}"));
        }
        let places: Vec<(Netns, Attachment)> = (0..8).map(|number| attach(lab, &format!("c{number}"))).collect();
        for _ in 0..2 {
            for verb in ["ADD", "DEL"] {
                std::thread::scope(|scope| {
                    for (number, (_, attachment)) in places.iter().enumerate() {
                        let config = config(json!({"device": format!("nic{number}"), "ipam": ipam()}));
                        let runtime = &lab.ours;
                        scope.spawn(move || fine(&one_of(runtime, verb, &config, attachment)));
                    }
                });
            }
            assert_eq!(leases(), 0);
        }
        for number in 0..8 {
            assert_eq!(lab.rtnl().link(&format!("nic{number}")).unwrap().facts.alias, "");
        }
    }
}
