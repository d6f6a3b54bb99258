//! tuning: settings of the container's interface and namespace, and what of them comes back.

use std::fs;
use std::path::{Path, PathBuf};

use conformance::chain::{Attachment, Network};
use conformance::net::{LinkFacts, Netns, Rtnl};
use conformance::plugin::Answer;
use conformance::probe::Transport;
use nix::mount::{MsFlags, mount};
use serde_json::{Value, json};

use super::support::{
    Lab, address_of, ask, fine, network, one_of, reference, refused, sandboxed, serve,
};

const BACKUPS: &str = "/run/cni/tuning";
const ALLOWLIST: &str = "/etc/cni/tuning/allowlist.conf";
const SOMAXCONN: &str = "net/core/somaxconn";

/// A container with an interface that some main plugin could have made.
struct Container {
    netns: Netns,
    attachment: Attachment,
    before: LinkFacts,
}

impl Container {
    fn new(lab: &Lab, id: &str) -> Self {
        let netns = lab.container(id);
        lab.rtnl()
            .add_veth(&format!("v-{id}"), &netns, "eth0")
            .unwrap();
        let attachment = Attachment::new(id, netns.path());
        let before = link(&netns);
        Self {
            netns,
            attachment,
            before,
        }
    }

    fn link(&self) -> LinkFacts {
        link(&self.netns)
    }

    fn is_as_before(&self) {
        assert_eq!(self.link(), self.before);
    }

    fn sysctl(&self, key: &str) -> String {
        self.netns
            .run(|| Ok(fs::read_to_string(Path::new("/proc/sys").join(key)).unwrap()))
            .unwrap()
            .trim_end()
            .to_owned()
    }
}

fn link(netns: &Netns) -> LinkFacts {
    Rtnl::open(netns).unwrap().link("eth0").unwrap().facts
}

/// tuning alone, behind a result that some main plugin could have given.
fn config(extra: Value) -> Value {
    let mut config = json!({
        "cniVersion": "1.1.0", "name": "tune-net", "type": "tuning",
        "prevResult": {
            "cniVersion": "1.1.0",
            "interfaces": [
                {"name": "br0", "mac": "02:00:00:00:00:77"},
                {"name": "eth0", "mac": "02:00:00:00:00:66"},
                {"name": "eth0", "mac": "02:00:00:00:00:88", "sandbox": "/run/netns/c1"},
            ],
            "ips": [{"address": "10.1.0.2/24", "interface": 2}],
        },
    });
    extend(&mut config, extra);
    config
}

fn extend(config: &mut Value, extra: Value) {
    let extra = extra.as_object().unwrap().clone();
    config.as_object_mut().unwrap().extend(extra);
}

fn everything() -> Value {
    json!({"mac": "02:00:00:00:00:05", "mtu": 1454, "promisc": true, "allmulti": true, "txQLen": 20000})
}

fn file(directory: &str, id: &str) -> PathBuf {
    Path::new(directory).join(format!("{id}_eth0.json"))
}

#[track_caller]
fn works(lab: &Lab, config: &Value, container: &Container) -> Value {
    let answer = lab.one("ADD", config, &container.attachment);
    fine(&answer);
    fine(&lab.one("CHECK", config, &container.attachment));
    answer.json().unwrap()
}

#[track_caller]
fn leaves(lab: &Lab, config: &Value, container: &Container) {
    for _ in 0..2 {
        fine(&lab.one("DEL", config, &container.attachment));
        container.is_as_before();
        let left = lab.snapshot();
        assert!(
            left.mentioning(BACKUPS)
                .iter()
                .all(|item| item.to_string().contains("directory")),
            "{:?}",
            left.mentioning(BACKUPS)
        );
    }
}

fn gc(lab: &Lab, config: &Value, valid: Value) -> Answer {
    let mut config = config.clone();
    config["cni.dev/valid-attachments"] = valid;
    let call = lab.ours.bare("tuning", "GC").unwrap();
    call.stdin(config.to_string()).run().unwrap()
}

fn status(lab: &Lab, config: &Value) -> Answer {
    let call = lab.ours.bare("tuning", "STATUS").unwrap();
    call.stdin(config.to_string()).run().unwrap()
}

fn allow(lines: &str) {
    fs::create_dir_all(Path::new(ALLOWLIST).parent().unwrap()).unwrap();
    fs::write(ALLOWLIST, lines).unwrap();
}

sandboxed! {
    fn every_setting_of_the_interface_is_made_checked_and_put_back(lab) {
        let one = Container::new(lab, "c1");
        let mut config = config(everything());
        let result = works(lab, &config, &one);
        let link = one.link();
        assert_eq!((link.mac.as_str(), link.mtu, link.tx_queue_len), ("02:00:00:00:00:05", 1454, 20000));
        assert!(link.promisc && link.all_multicast);
        // The interface in the container has changed, and neither the bridge nor somebody of its name on the host.
        let mut wanted = config["prevResult"].clone();
        wanted["interfaces"][2]["mac"] = json!("02:00:00:00:00:05");
        wanted["interfaces"][2]["mtu"] = json!(1454);
        assert_eq!(result, wanted);
        config["prevResult"] = result;
        fine(&lab.one("CHECK", &config, &one.attachment));
        leaves(lab, &config, &one);
    }

    fn each_setting_alone(lab) {
        let one = Container::new(lab, "c1");
        for (key, value) in everything().as_object().unwrap() {
            let config = config(json!({key: value}));
            works(lab, &config, &one);
            assert_ne!(one.link(), one.before, "{key}");
            let saved: Value = serde_json::from_slice(&fs::read(file(BACKUPS, "c1")).unwrap()).unwrap();
            let keys: Vec<&String> = saved.as_object().unwrap().keys().collect();
            assert_eq!(keys, [key, "owner"], "only what changes is remembered");
            leaves(lab, &config, &one);
        }
        // Off and zero are values, too.
        let config = config(json!({"allmulti": false, "txQLen": 0}));
        works(lab, &config, &one);
        assert_eq!(one.link().tx_queue_len, 0);
        leaves(lab, &config, &one);
    }

    fn the_backup_lies_where_the_configuration_says(lab) {
        let one = Container::new(lab, "c1");
        let config = config(json!({"mtu": 1400, "dataDir": "/run/cni/elsewhere/deep"}));
        works(lab, &config, &one);
        assert!(file("/run/cni/elsewhere/deep", "c1").exists() && !file(BACKUPS, "c1").exists());
        leaves(lab, &config, &one);
        assert!(!file("/run/cni/elsewhere/deep", "c1").exists());
    }

    fn a_mac_address_can_be_asked_for_in_four_places(lab) {
        let one = Container::new(lab, "c1");
        let mut config = config(json!({"mac": "02:00:00:00:00:01"}));
        let mut places = vec!["02:00:00:00:00:01"];
        let mut attachment = one.attachment.clone();
        let mut asked = |config: &Value, attachment: &Attachment, mac: &str| {
            let answer = lab.one("ADD", config, attachment);
            fine(&answer);
            assert_eq!(answer.json().unwrap()["interfaces"][2]["mac"], mac);
            assert_eq!(one.link().mac, mac);
            fine(&lab.one("CHECK", config, attachment));
            fine(&lab.one("DEL", config, attachment));
            one.is_as_before();
            places.push("");
        };
        asked(&config, &attachment, "02:00:00:00:00:01");
        // Keys that are meant for others do not matter.
        attachment = attachment.args("K8S_POD_NAME=web;MAC=02:00:00:00:00:02");
        asked(&config, &attachment, "02:00:00:00:00:02");
        config["runtimeConfig"] = json!({"mac": "02:00:00:00:00:03"});
        asked(&config, &attachment, "02:00:00:00:00:03");
        config["args"] = json!({"cni": {"mac": "02:00:00:00:00:04"}});
        asked(&config, &attachment, "02:00:00:00:00:04");
    }

    fn a_mac_address_is_the_same_in_every_spelling(lab) {
        let one = Container::new(lab, "c1");
        for mac in ["02:00:00:AB:CD:EF", "02-00-00-ab-cd-ef", "0200.00AB.cdef"] {
            let config = config(json!({"mac": mac}));
            let result = works(lab, &config, &one);
            assert_eq!(result["interfaces"][2]["mac"], "02:00:00:ab:cd:ef");
            leaves(lab, &config, &one);
        }
    }

    fn arguments_set_what_the_configuration_does_not(lab) {
        let one = Container::new(lab, "c1");
        let mut args = everything();
        args["sysctl"] = json!({"net.core.somaxconn": "77"});
        let config = config(json!({"args": {"cni": args}}));
        works(lab, &config, &one);
        let link = one.link();
        assert_eq!((link.mac.as_str(), link.mtu, link.tx_queue_len), ("02:00:00:00:00:05", 1454, 20000));
        assert!(link.promisc && link.all_multicast);
        assert_eq!(one.sysctl(SOMAXCONN), "77");
        leaves(lab, &config, &one);
    }

    fn arguments_win_over_the_configuration(lab) {
        let one = Container::new(lab, "c1");
        let mut config = config(everything());
        extend(&mut config, json!({
            "sysctl": {"net.core.somaxconn": "5", "net.ipv4.conf.IFNAME.forwarding": "1"},
            "args": {"cni": {"mtu": 1300, "promisc": false, "sysctl": {"net/core/somaxconn": "6"}}},
        }));
        works(lab, &config, &one);
        let link = one.link();
        assert_eq!((link.mtu, link.promisc, link.tx_queue_len), (1300, false, 20000));
        assert_eq!(one.sysctl(SOMAXCONN), "6");
        assert_eq!(one.sysctl("net/ipv4/conf/eth0/forwarding"), "1");
        leaves(lab, &config, &one);
    }

    fn settings_of_the_kernel_are_written_in_the_container_alone(lab) {
        let netns = lab.container("c1");
        lab.rtnl().add_veth("v1", &netns, "eth0.7").unwrap();
        let attachment = Attachment::new("c1", netns.path()).ifname("eth0.7");
        let host = fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        // Interface names with dots can be meant by IFNAME, and an empty list is a value, too.
        let config = config(json!({"sysctl": {
            "net.core.somaxconn": "600", "net/ipv4/conf/IFNAME/arp_filter": "1", "net.ipv4.ip_local_port_range": "2048 60000",
            "net.ipv4.ip_local_reserved_ports": "8080,9148,8081", "net.ipv4.tcp_rmem": "4096\t87380  6291456",
        }}));
        let before = lab.snapshot();
        fine(&lab.one("ADD", &config, &attachment));
        assert!(before.diff(&lab.snapshot()).is_empty(), "no backup, nothing on the host");
        let read = |key: &str| netns.run(|| Ok(fs::read_to_string(format!("/proc/sys/net/{key}")).unwrap())).unwrap();
        assert_eq!(read("core/somaxconn"), "600\n");
        assert_eq!(read("ipv4/conf/eth0.7/arp_filter"), "1\n");
        assert_eq!(read("ipv4/ip_local_reserved_ports"), "8080-8081,9148\n");
        assert_eq!(fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap(), host);
        // The kernel answers with tabs, and in its own spelling.
        fine(&lab.one("CHECK", &config, &attachment));
        fine(&lab.one("DEL", &config, &attachment));
        let mut empty = config.clone();
        empty["sysctl"] = json!({"net.ipv4.ip_local_reserved_ports": ""});
        fine(&lab.one("ADD", &empty, &attachment));
        fine(&lab.one("CHECK", &empty, &attachment));
        assert_eq!(read("ipv4/ip_local_reserved_ports"), "\n");
    }

    fn a_setting_that_can_only_be_written(lab) {
        let one = Container::new(lab, "c1");
        let config = config(json!({"sysctl": {"net.ipv4.route.flush": "1"}}));
        works(lab, &config, &one);
        leaves(lab, &config, &one);
    }

    fn nothing_but_the_interface_and_the_network_can_be_set(lab) {
        let one = Container::new(lab, "c1");
        let before = lab.snapshot();
        for key in ["kernel.hostname", "../etc/x", "net", "net..", "/proc/sys/kernel/hostname", "net/../kernel/hostname",
            "IFNAME.x", "net.core.no_such_thing", "net.ipv4.conf", "net.core.rmem_default/../../kernel/hostname"] {
            let config = config(json!({"sysctl": {key: "1"}}));
            let answer = lab.one("ADD", &config, &one.attachment);
            let error = answer.error().unwrap_or_else(|| panic!("{key}: {}", answer.text()));
            assert!(error.msg.contains(key), "{key}: {error:?}");
            fine(&lab.one("DEL", &config, &one.attachment));
        }
        assert!(before.diff(&lab.snapshot()).is_empty());
        for ifname in ["a/b", ".."] {
            let attachment = one.attachment.clone().ifname(ifname);
            refused(&lab.one("ADD", &config(json!({"sysctl": {"net.ipv4.conf.IFNAME.forwarding": "1"}})), &attachment), 4);
        }
    }

    fn the_node_decides_which_settings_are_allowed(lab) {
        let one = Container::new(lab, "c1");
        let config = config(json!({"sysctl": {"net.core.somaxconn": "9"}}));
        for (lines, allowed) in [
            ("^net\\.core\\.somaxconn$\n", true), ("\n   somax   \r\n", true), ("nothing\n^net.core.so[a-m]+xconn$", true),
            ("", false), ("\n\n", false), ("^somaxconn", false), ("NET\\.CORE", false), ("# net.core.somaxconn\n", false),
        ] {
            allow(lines);
            let answer = lab.one("ADD", &config, &one.attachment);
            if allowed {
                fine(&answer);
                fine(&status(lab, &config));
            } else {
                let text = refused(&answer, 7);
                assert!(text.contains("net.core.somaxconn") && text.contains(lines.trim()), "{lines:?}: {text}");
                refused(&status(lab, &config), 50);
            }
            // What is there already is checked and taken away whatever is allowed by now.
            fine(&lab.one("DEL", &config, &one.attachment));
        }
        fine(&lab.one("CHECK", &config, &one.attachment));
        // Without sysctls nobody needs to be asked.
        allow("[");
        let text = refused(&lab.one("ADD", &config, &one.attachment), 999);
        assert!(text.contains("\"[\"") && text.contains(ALLOWLIST), "{text}");
        refused(&status(lab, &config), 50);
        let mut other = config.clone();
        other["sysctl"] = json!({});
        fine(&lab.one("ADD", &other, &one.attachment));
        fine(&status(lab, &other));
    }

    fn one_setting_is_named_once(lab) {
        let one = Container::new(lab, "c1");
        let text = config(json!({"mtu": 1400, "sysctl": {"net.core.somaxconn": "9"}})).to_string()
            .replace(r#"{"net.core.somaxconn":"9"}"#, r#"{"net.core.somaxconn":"9","net.ipv4.ip_forward":"1","net.core.somaxconn":"9"}"#);
        for verb in ["ADD", "CHECK"] {
            let call = lab.ours.call("tuning", verb, &one.attachment).unwrap();
            let said = refused(&call.stdin(text.clone()).run().unwrap(), 7);
            assert!(said.contains("[net.core.somaxconn]"), "{said}");
        }
        let call = lab.ours.call("tuning", "DEL", &one.attachment).unwrap();
        fine(&call.stdin(text).run().unwrap());
        // In two spellings the reference set leaves it to chance which value it gets.
        let twice = config(json!({"sysctl": {"net.core.somaxconn": "8", "net/core/somaxconn": "9"}}));
        refused(&lab.one("ADD", &twice, &one.attachment), 7);
        let agreed = config(json!({"sysctl": {"net.core.somaxconn": "9", "net/core/somaxconn": "9"}}));
        works(lab, &agreed, &one);
    }

    fn a_second_add_remembers_the_true_originals(lab) {
        let one = Container::new(lab, "c1");
        let config = config(everything());
        works(lab, &config, &one);
        let mut other = config.clone();
        extend(&mut other, json!({"mtu": 1300, "mac": "02:00:00:00:00:06"}));
        works(lab, &other, &one);
        leaves(lab, &other, &one);
    }

    fn two_of_them_in_one_list_put_everything_back(lab) {
        let netns = lab.container("c1");
        let list = network(&json!({"cniVersion": "1.1.0", "name": "twice", "plugins": [
            {"type": "bridge", "bridge": "br0", "ipam": {}},
            {"type": "tuning", "mtu": 1400},
            {"type": "tuning", "mtu": 1300, "promisc": true},
        ]}));
        let mut attachment = Attachment::new("c1", netns.path());
        lab.ours.add(&Network { plugins: list.plugins[..1].to_vec(), ..list.clone() }, &mut attachment).unwrap();
        let before = link(&netns);
        for plugin in &list.plugins[1..] {
            let stdin = conformance::chain::request(&list, plugin, &attachment, attachment.result.as_ref());
            fine(&lab.one("ADD", &stdin, &attachment));
        }
        assert_eq!(link(&netns).mtu, 1300);
        for plugin in list.plugins[1..].iter().rev() {
            let stdin = conformance::chain::request(&list, plugin, &attachment, attachment.result.as_ref());
            fine(&lab.one("DEL", &stdin, &attachment));
        }
        assert_eq!(link(&netns), before);
        assert!(!file(BACKUPS, "c1").exists());
        lab.del(&list, &attachment);
    }

    fn a_failure_at_any_step_takes_everything_back(lab) {
        let one = Container::new(lab, "c1");
        let before = lab.snapshot();
        let somaxconn = one.sysctl(SOMAXCONN);
        let mut whole = everything();
        whole["sysctl"] = json!({"net.core.somaxconn": "99", "net.ipv4.conf.IFNAME.arp_filter": "1"});
        for broken in [
            json!({"sysctl": {"net.core.somaxconn": "99", "net.ipv4.ip_forward": "often"}}),
            json!({"sysctl": {"net.core.somaxconn": "99", "net.core.missing": "1"}}),
            json!({"mac": "01:00:00:00:00:01"}),
            json!({"mtu": 100_000_000}),
            json!({"mtu": 60}),
            json!({"txQLen": -1}),
            json!({"dataDir": "/proc/version/x"}),
            json!({"dataDir": "/proc/none"}),
        ] {
            let mut config = config(whole.clone());
            extend(&mut config, broken.clone());
            let answer = lab.one("ADD", &config, &one.attachment);
            assert!(answer.error().is_some(), "{broken}: {}", answer.text());
            one.is_as_before();
            assert_eq!(one.sysctl(SOMAXCONN), somaxconn, "{broken}");
            assert_eq!(one.sysctl("net/ipv4/conf/eth0/arp_filter"), "0", "{broken}");
            let diff = before.diff(&lab.snapshot());
            let left: Vec<_> = diff.added.iter().filter(|item| !item.to_string().ends_with("directory")).collect();
            assert!(left.is_empty(), "{broken}: {left:?}");
            fine(&lab.one("DEL", &config, &one.attachment));
        }
        // The failure of a second ADD leaves what the first one remembered.
        let good = config(whole);
        works(lab, &good, &one);
        let mut bad = good.clone();
        bad["mtu"] = json!(100_000_000);
        let remembered = fs::read(file(BACKUPS, "c1")).unwrap();
        assert!(lab.one("ADD", &bad, &one.attachment).error().is_some());
        assert_eq!(fs::read(file(BACKUPS, "c1")).unwrap(), remembered);
        fine(&lab.one("CHECK", &good, &one.attachment));
        leaves(lab, &good, &one);
    }

    fn an_mtu_below_what_ipv6_needs_is_refused(lab) {
        let one = Container::new(lab, "c1");
        let mut config = config(json!({"mtu": 1000}));
        config["prevResult"]["ips"] = json!([{"address": "fd00:1::2/64", "interface": 2}]);
        let text = refused(&lab.one("ADD", &config, &one.attachment), 7);
        assert!(text.contains("1280"), "{text}");
        one.is_as_before();
    }

    fn check_tells_each_loss_and_changes_nothing(lab) {
        let one = Container::new(lab, "c1");
        let inside = Rtnl::open(&one.netns).unwrap();
        let mut whole = everything();
        whole["sysctl"] = json!({"net.core.somaxconn": "99"});
        let config = config(whole);
        works(lab, &config, &one);
        let index = inside.link("eth0").unwrap().index;
        let back = |change: &Value| {
            let mut config = config.clone();
            extend(&mut config, change.clone());
            fine(&lab.one("ADD", &config, &one.attachment));
        };
        for lost in [json!({"mac": "02:00:00:00:00:09"}), json!({"mtu": 1453}), json!({"allmulti": false}), json!({"txQLen": 7}),
            json!({"sysctl": {"net.core.somaxconn": "98"}})] {
            back(&lost);
            let (before, link) = (lab.snapshot(), one.link());
            let answer = lab.one("CHECK", &config, &one.attachment);
            assert!(answer.error().is_some(), "{lost}: {}", answer.text());
            assert_eq!(one.link(), link);
            assert!(before.diff(&lab.snapshot()).is_empty());
            back(&everything());
            fine(&lab.one("CHECK", &config, &one.attachment));
        }
        let without = Value::Object(config.as_object().unwrap().iter()
            .filter(|(key, _)| !["promisc", "mac"].contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect());
        inside.set_promiscuous("eth0", false).unwrap();
        assert!(lab.one("CHECK", &config, &one.attachment).error().is_some());
        fine(&lab.one("CHECK", &without, &one.attachment));
        // Somebody who listens is no change of the interface.
        inside.set_promiscuous("eth0", true).unwrap();
        fine(&lab.one("CHECK", &without, &one.attachment));
        lab.rtnl().delete_link("v-c1").unwrap();
        assert!(lab.one("CHECK", &config, &one.attachment).error().is_some(), "the interface is gone");
        assert!(index > 0);
    }

    fn del_without_the_interface_forgets_it(lab) {
        let config = config(everything());
        for (id, gone) in [("gone", true), ("link", false)] {
            let one = Container::new(lab, id);
            works(lab, &config, &one);
            assert!(file(BACKUPS, id).exists());
            let attachment = one.attachment.clone();
            if gone {
                drop(one);
            } else {
                lab.rtnl().delete_link(&format!("v-{id}")).unwrap();
            }
            fine(&lab.one("DEL", &config, &attachment));
            assert!(!file(BACKUPS, id).exists(), "{id}");
        }
        let one = Container::new(lab, "empty");
        works(lab, &config, &one);
        let mut attachment = one.attachment.clone();
        attachment.netns = PathBuf::new();
        let bare = json!({"cniVersion": "1.1.0", "name": "tune-net", "type": "tuning"});
        fine(&lab.one("DEL", &bare, &attachment));
        assert!(!file(BACKUPS, "empty").exists());
    }

    fn del_needs_no_valid_configuration(lab) {
        let one = Container::new(lab, "c1");
        let good = config(json!({"mtu": 1400, "dataDir": "/run/cni/elsewhere"}));
        for broken in [
            json!({"mtu": "wide"}), json!({"sysctl": 5}), json!({"sysctl": {"x": 5}}), json!({"mac": []}), json!({"promisc": "yes"}),
            json!({"args": {"cni": {"sysctl": {"net.core.somaxconn": "1"}}}}), json!({"runtimeConfig": 3}), json!({"txQLen": -1}),
        ] {
            works(lab, &good, &one);
            let mut config = good.clone();
            config.as_object_mut().unwrap().remove("prevResult");
            extend(&mut config, broken);
            leaves(lab, &config, &one);
            assert!(!file("/run/cni/elsewhere", "c1").exists());
        }
        // A configuration that has lost its dataDir still finds what was remembered before it had one.
        let plain = config(json!({"mtu": 1400}));
        works(lab, &plain, &one);
        leaves(lab, &good, &one);
        works(lab, &plain, &one);
        let attachment = one.attachment.clone().args("=;;;nonsense");
        fine(&lab.one("DEL", &plain, &attachment));
        one.is_as_before();
    }

    fn del_puts_back_what_it_can(lab) {
        let one = Container::new(lab, "c1");
        let config = config(everything());
        works(lab, &config, &one);
        let path = file(BACKUPS, "c1");
        let text = fs::read_to_string(&path).unwrap();
        // No link can have such an MTU; the rest comes back all the same, and nothing is tried for ever.
        fs::write(&path, text.replace("1500", "4000000000")).unwrap();
        fine(&lab.one("DEL", &config, &one.attachment));
        let now = one.link();
        assert_eq!((&now.mac, now.promisc, now.all_multicast, now.tx_queue_len),
            (&one.before.mac, false, false, one.before.tx_queue_len));
        assert!(!path.exists());
        for damaged in ["", "{", "[]", "{\"mtu\": \"x\"}", "{\"mac\": \"x\"}"] {
            fs::write(&path, damaged).unwrap();
            fine(&lab.one("DEL", &config, &one.attachment));
            assert!(!path.exists(), "{damaged}");
        }
        // What somebody else has put there is not followed.
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        let _ = lab.one("DEL", &config, &one.attachment);
        assert!(Path::new("/etc/hostname").exists());
    }

    fn a_container_id_does_not_pass_for_another(lab) {
        // Both have the file a_b_c.json.
        let (one, two) = (Container::new(lab, "a"), Container::new(lab, "a_b"));
        let inside = [&one, &two].map(|c| Rtnl::open(&c.netns).unwrap());
        lab.rtnl().add_veth("v1", &one.netns, "b_c").unwrap();
        lab.rtnl().add_veth("v2", &two.netns, "c").unwrap();
        let config = config(json!({"mtu": 1400}));
        let first = one.attachment.clone().ifname("b_c");
        let second = two.attachment.clone().ifname("c");
        fine(&lab.one("ADD", &config, &first));
        let text = refused(&lab.one("ADD", &config, &second), 999);
        assert!(text.contains("container a, interface b_c"), "{text}");
        assert_eq!(inside[1].link("c").unwrap().facts.mtu, 1500);
        fine(&lab.one("DEL", &config, &second));
        fine(&lab.one("DEL", &config, &first));
        assert_eq!(inside[0].link("b_c").unwrap().facts.mtu, 1500);
        assert!(!Path::new(BACKUPS).join("a_b_c.json").exists());
    }

    fn an_id_that_is_too_long_for_a_file_changes_nothing(lab) {
        let one = Container::new(lab, "c1");
        let id = "x".repeat(300);
        let attachment = Attachment::new(&id, one.netns.path());
        let config = config(json!({"mtu": 1400, "sysctl": {"net.core.somaxconn": "9"}}));
        let somaxconn = one.sysctl(SOMAXCONN);
        let answer = lab.one("ADD", &config, &attachment);
        assert!(answer.error().is_some(), "{}", answer.text());
        one.is_as_before();
        assert_eq!(one.sysctl(SOMAXCONN), somaxconn);
        fine(&lab.one("DEL", &config, &attachment));
    }

    fn gc_forgets_the_lost_and_nobody_else(lab) {
        let config = config(json!({"mtu": 1400}));
        let mut foreign = config.clone();
        foreign["name"] = json!("other-net");
        let all = ["lost", "live", "other", "reference"].map(|id| Container::new(lab, id));
        for (container, config) in all.iter().zip([&config, &config, &foreign]) {
            fine(&lab.one("ADD", config, &container.attachment));
        }
        // The reference set's files do not say whose they are.
        fs::write(file(BACKUPS, "reference"), "{\n \"mtu\": 1500\n}").unwrap();
        fs::write(Path::new(BACKUPS).join("notes.txt"), "mine").unwrap();
        let left = || ["lost", "live", "other", "reference"].map(|id| file(BACKUPS, id).exists());
        // Without a list there is nothing to collect.
        let call = lab.ours.bare("tuning", "GC").unwrap();
        fine(&call.stdin(config.to_string()).run().unwrap());
        assert_eq!(left(), [true; 4]);
        fine(&gc(lab, &config, json!([{"containerID": "live", "ifname": "eth0"}, {"containerID": "lost", "ifname": "eth1"}])));
        assert_eq!(left(), [false, true, true, true]);
        fine(&gc(lab, &config, Value::Null));
        assert_eq!(left(), [false, false, true, true]);
        fine(&gc(lab, &foreign, json!([])));
        assert_eq!(left(), [false, false, false, true]);
        assert!(Path::new(BACKUPS).join("notes.txt").exists());
    }

    fn status_tells_of_a_directory_that_cannot_be_written(lab) {
        fs::create_dir("/run/closed").unwrap();
        mount(Some("tmpfs"), "/run/closed", Some("tmpfs"), MsFlags::MS_RDONLY, None::<&str>).unwrap();
        for (directory, good) in [("/run/cni/tuning", true), ("/run/not/there/yet", true), ("/run/closed/x", false), ("/dev/null", false)] {
            let config = config(json!({"mtu": 1400, "dataDir": directory}));
            let one = Container::new(lab, &format!("c{}", directory.len()));
            let answer = status(lab, &config);
            if good {
                fine(&answer);
                fine(&lab.one("ADD", &config, &one.attachment));
            } else {
                let text = refused(&answer, 50);
                assert!(text.contains(directory.rsplit_once("/x").map_or(directory, |(parent, _)| parent)), "{text}");
                assert!(lab.one("ADD", &config, &one.attachment).error().is_some());
                // Nothing is written for sysctls alone.
                let mut other = config.clone();
                extend(&mut other, json!({"mtu": 0, "sysctl": {"net.core.somaxconn": "1"}}));
                fine(&status(lab, &other));
                fine(&lab.one("ADD", &other, &one.attachment));
                extend(&mut other, json!({"capabilities": {"mac": true}}));
                refused(&status(lab, &other), 50);
            }
        }
        refused(&status(lab, &config(json!({"mtu": -1}))), 7);
        refused(&status(lab, &config(json!({"sysctl": {"kernel.x": "1"}}))), 7);
    }

    fn the_file_is_that_of_the_reference_set(lab) {
        let theirs = reference();
        let mut config = config(everything());
        // What Debian ships knows neither 1.1.0 nor txQLen.
        config["cniVersion"] = json!("1.0.0");
        config["prevResult"]["cniVersion"] = json!("1.0.0");
        config.as_object_mut().unwrap().remove("txQLen");
        let one = Container::new(lab, "c1");
        let path = file(BACKUPS, "c1");
        fine(&one_of(&theirs, "ADD", &config, &one.attachment));
        let their_file = fs::read_to_string(&path).unwrap();
        let tuned = one.link();
        fine(&lab.one("CHECK", &config, &one.attachment));
        // What the reference set has changed, ours puts back.
        leaves(lab, &config, &one);
        fine(&lab.one("ADD", &config, &one.attachment));
        assert_eq!(one.link(), tuned);
        let our_file = fs::read_to_string(&path).unwrap();
        let (same, owner) = our_file.split_once(",\n \"owner\"").unwrap();
        assert_eq!(format!("{same}\n}}"), their_file);
        assert!(owner.contains("tune-net"));
        // And the other way round.
        fine(&one_of(&theirs, "CHECK", &config, &one.attachment));
        fine(&one_of(&theirs, "DEL", &config, &one.attachment));
        one.is_as_before();
        assert!(!path.exists());
        // An ADD of ours over one of theirs keeps what theirs remembered, and then knows whose it is.
        fine(&one_of(&theirs, "ADD", &config, &one.attachment));
        fine(&lab.one("ADD", &config, &one.attachment));
        leaves(lab, &config, &one);
    }

    fn neighbours_find_an_interface_whose_mac_address_has_changed(lab) {
        let ranges = |start: &str| json!([[{"subnet": "10.77.0.0/24", "rangeStart": format!("10.77.0.{start}"), "rangeEnd": format!("10.77.0.{start}")}],
            [{"subnet": "fd00:77::/64", "rangeStart": format!("fd00:77::{start}"), "rangeEnd": format!("fd00:77::{start}")}]]);
        let list = |ranges: Value, mac: &str| network(&json!({"cniVersion": "1.1.0", "name": "mac", "plugins": [
            {"type": "bridge", "bridge": "br0", "isGateway": true, "ipam": {"type": "host-local", "ranges": ranges}},
            // Not every plugin that makes an interface lets the kernel announce it.
            {"type": "tuning", "sysctl": {"net.ipv4.conf.IFNAME.arp_notify": "0", "net.ipv6.conf.IFNAME.ndisc_notify": "0"}},
            {"type": "tuning", "mac": mac},
        ]}));
        let watcher = lab.container("watcher");
        lab.add(&list(ranges("9"), ""), &mut Attachment::new("watcher", watcher.path()));
        for round in 0..3 {
            let netns = lab.container(&format!("c{round}"));
            let list = list(ranges("5"), &format!("02:00:00:00:0{round}:05"));
            let mut attachment = Attachment::new(&format!("container-{round}"), netns.path());
            let result = lab.add(&list, &mut attachment);
            let name = format!("round-{round}");
            for v4 in [true, false] {
                let address = address_of(&result, v4);
                let _server = serve(&netns, Transport::Udp, address, 9, &name);
                // One datagram each: a neighbour that still knows the old address would lose it.
                assert_eq!(ask(lab.host.netns(), Transport::Udp, address, 9).server, name);
                assert_eq!(ask(&watcher, Transport::Udp, address, 9).server, name);
            }
            lab.check(&list, &attachment);
            lab.del(&list, &attachment);
        }
    }

    fn a_namespace_that_is_none_has_its_code(lab) {
        let config = config(json!({"mtu": 1400}));
        for path in ["/run/netns/missing", "/tmp"] {
            refused(&lab.one("ADD", &config, &Attachment::new("c1", Path::new(path))), 8);
        }
        fine(&lab.one("DEL", &config, &Attachment::new("c1", Path::new("/run/netns/missing"))));
        fine(&lab.one("DEL", &config, &Attachment::new("c1", Path::new("/tmp"))));
        let netns = lab.container("c2");
        let text = refused(&lab.one("ADD", &config, &Attachment::new("c2", netns.path())), 999);
        assert!(text.contains("eth0"), "{text}");
        // Nothing is asked of the interface, so nobody needs one.
        let nothing = json!({"cniVersion": "1.1.0", "name": "n", "type": "tuning", "prevResult": {"cniVersion": "1.1.0"}});
        fine(&lab.one("ADD", &nothing, &Attachment::new("c2", netns.path())));
    }
}
