//! host-local: which address, which file, and whose it is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use conformance::chain::Attachment;
use conformance::facts::addresses;
use nix::fcntl::{Flock, FlockArg};
use nix::mount::{MsFlags, mount};
use serde_json::{Value, json};

use super::support::{Lab, fine, leases_in, one_of, refused, sandboxed, tool};

const DATA: &str = "/run/leases";

fn config(ipam: Value) -> Value {
    let mut ipam = ipam;
    ipam["type"] = json!("host-local");
    ipam["dataDir"] = json!(DATA);
    // The main plugin's configuration is what an IPAM plugin reads; its own type is not looked at.
    json!({"cniVersion": "1.0.0", "name": "net", "type": "host-local", "ipam": ipam})
}

fn ranges(subnets: Value) -> Value {
    config(json!({"ranges": subnets}))
}

fn attachment(id: &str) -> Attachment {
    Attachment::new(id, Path::new("/run/netns/none"))
}

fn lease(name: &str) -> PathBuf {
    Path::new(DATA).join("net").join(name)
}

#[track_caller]
fn add(lab: &Lab, config: &Value, id: &str) -> Vec<String> {
    let answer = lab.one("ADD", config, &attachment(id));
    fine(&answer);
    addresses(&answer.json().unwrap())
        .iter()
        .map(|one| one.address.to_string())
        .collect()
}

#[track_caller]
fn fails(lab: &Lab, config: &Value, id: &str) -> String {
    let answer = lab.one("ADD", config, &attachment(id));
    let error = answer
        .error()
        .unwrap_or_else(|| panic!("no error object: {}", answer.text()));
    format!("{}; {}", error.msg, error.details)
}

#[track_caller]
fn del(lab: &Lab, config: &Value, id: &str) {
    fine(&lab.one("DEL", config, &attachment(id)));
}

fn leases() -> Vec<String> {
    leases_in(&Path::new(DATA).join("net"))
}

/// Another boot, as far as anybody can tell: the kernel has another boot id, and what is on disk
/// was written before this boot began.
fn reboot(number: u32) {
    let file = format!("/run/sandbox/tmp/boot-{number}");
    fs::write(&file, format!("00000000-0000-4000-8000-{number:012}\n")).unwrap();
    let real = "/proc/sys/kernel/random/boot_id";
    mount(
        Some(file.as_str()),
        real,
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )
    .unwrap();
    for name in leases() {
        let file = fs::File::options().write(true).open(lease(&name)).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH)
            .unwrap();
    }
}

sandboxed! {
    fn files_are_those_of_the_reference_set(lab) {
        let config = config(json!({
            "ranges": [[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.2.2.0/24"}], [{"subnet": "2001:db8:1::/64"}]],
            "routes": [{"dst": "0.0.0.0/0"}, {"dst": "192.168.0.0/16", "gw": "1.1.1.1"}],
            "resolvConf": "/etc/resolv.conf",
        }));
        let answer = lab.one("ADD", &config, &attachment("dummy"));
        fine(&answer);
        assert!(answer.stderr.is_empty(), "{}", answer.text());
        let result = answer.json().unwrap();
        let expected = [("10.1.2.2/24", "10.1.2.1"), ("10.2.2.2/24", "10.2.2.1"), ("2001:db8:1::2/64", "2001:db8:1::1")];
        for (one, (address, gateway)) in addresses(&result).iter().zip(expected) {
            assert_eq!((one.address.to_string().as_str(), one.gateway.unwrap().to_string().as_str()), (address, gateway));
            assert_eq!(one.interface, None);
        }
        assert_eq!(result["routes"][1], json!({"dst": "192.168.0.0/16", "gw": "1.1.1.1"}));
        assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.53"]));
        assert_eq!(result["dns"]["search"], json!(["example.test"]));
        for (number, name) in ["10.1.2.2", "10.2.2.2", "2001:db8:1::2"].into_iter().enumerate() {
            let file = lease(name);
            assert_eq!(fs::read_to_string(&file).unwrap(), "dummy\r\neth0");
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
            assert_eq!(fs::read_to_string(lease(&format!("last_reserved_ip.{number}"))).unwrap(), name);
        }
        assert!(lease("lock").is_file());
        fine(&lab.one("CHECK", &config, &attachment("dummy")));
        del(lab, &config, "dummy");
        assert!(leases().is_empty(), "{:?}", leases());
        assert!(lab.one("CHECK", &config, &attachment("dummy")).error().is_some());
    }

    fn interfaces_of_one_container_have_their_own_leases(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        add(lab, &config, "dummy");
        let second = attachment("dummy").ifname("eth1");
        fine(&lab.one("ADD", &config, &second));
        assert_eq!(leases(), ["10.1.2.2", "10.1.2.3"]);
        del(lab, &config, "dummy");
        assert_eq!(leases(), ["10.1.2.3"]);
        fine(&lab.one("DEL", &config, &second));
        assert!(leases().is_empty());
    }

    fn the_id_only_format_of_early_releases_is_freed(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        fs::create_dir_all(Path::new(DATA).join("net")).unwrap();
        fs::write(lease("10.1.2.7"), "old-one").unwrap();
        fine(&lab.one("CHECK", &config, &attachment("old-one")));
        del(lab, &config, "old-one");
        assert!(leases().is_empty(), "{:?}", leases());
    }

    fn del_of_somebody_unknown_is_silent(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        let answer = lab.one("DEL", &config, &attachment("nobody"));
        fine(&answer);
        assert!(answer.stdout.is_empty() && answer.stderr.is_empty(), "{}", answer.text());
    }

    fn addresses_go_round(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/29"}]]));
        // .1 is the gateway, .7 the broadcast address.
        for (id, address) in [("a", "10.1.2.2/29"), ("b", "10.1.2.3/29"), ("c", "10.1.2.4/29")] {
            assert_eq!(add(lab, &config, id), [address]);
        }
        del(lab, &config, "a");
        assert_eq!(add(lab, &config, "d"), ["10.1.2.5/29"], "a freed address rests");
        assert_eq!(add(lab, &config, "e"), ["10.1.2.6/29"]);
        assert_eq!(add(lab, &config, "f"), ["10.1.2.2/29"], "until the others are used up");
        let text = fails(lab, &config, "g");
        assert!(text.contains("10.1.2"), "{text}");
    }

    fn a_set_of_ranges_goes_on_in_the_next_one(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/30"}, {"subnet": "10.1.4.0/24", "rangeStart": "10.1.4.10", "rangeEnd": "10.1.4.11"}]]));
        let got: Vec<String> = ["a", "b", "c"].into_iter().flat_map(|id| add(lab, &config, id)).collect();
        assert_eq!(got, ["10.1.2.2/30", "10.1.4.10/24", "10.1.4.11/24"]);
        fails(lab, &config, "d");
    }

    fn an_address_can_be_asked_for_in_three_places(lab) {
        let plain = ranges(json!([[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00:1::/64"}]]));
        let mut structured = plain.clone();
        structured["args"] = json!({"cni": {"ips": ["10.1.2.88", "fd00:1::88"]}});
        assert_eq!(add(lab, &structured, "a"), ["10.1.2.88/24", "fd00:1::88/64"]);
        let mut capability = plain.clone();
        capability["runtimeConfig"] = json!({"ips": ["10.1.2.90/24"]});
        assert_eq!(add(lab, &capability, "b")[0], "10.1.2.90/24");
        let argument = attachment("c").args("IP=10.1.2.92");
        let answer = lab.one("ADD", &plain, &argument);
        fine(&answer);
        assert_eq!(addresses(&answer.json().unwrap())[0].address.to_string(), "10.1.2.92/24");
    }

    fn an_address_that_is_taken_names_its_holder(lab) {
        let mut config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        config["args"] = json!({"cni": {"ips": ["10.1.2.50"]}});
        add(lab, &config, "the-holder");
        let text = fails(lab, &config, "somebody-else");
        for part in ["10.1.2.50", "the-holder", "eth0"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        assert_eq!(leases(), ["10.1.2.50"]);
    }

    fn an_address_outside_or_reserved_is_refused(lab) {
        for address in ["10.9.9.9", "10.1.2.1", "10.1.2.255", "nonsense", ""] {
            let mut config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
            config["runtimeConfig"] = json!({"ips": [address]});
            fails(lab, &config, "a");
            assert!(leases().is_empty(), "{address}: {:?}", leases());
        }
    }

    fn a_refused_add_frees_only_what_it_took(lab) {
        let mut config = ranges(json!([[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00:1::/64"}]]));
        add(lab, &config, "running");
        let before = leases();
        config["runtimeConfig"] = json!({"ips": ["10.1.2.77"]});
        fails(lab, &config, "running");
        assert_eq!(leases(), before, "the running container keeps its addresses");
    }

    fn ranges_are_checked(lab) {
        let bad = [
            json!([]),
            json!([[]]),
            json!([[{}]]),
            json!([[{"subnet": "10.1.2.0/31"}]]),
            json!([[{"subnet": "10.1.2.3/24"}]]),
            json!([[{"subnet": "10.1.2.0/24", "rangeStart": "10.1.3.1"}]]),
            json!([[{"subnet": "10.1.2.0/24", "rangeStart": "10.1.2.9", "rangeEnd": "10.1.2.5"}]]),
            json!([[{"subnet": "10.1.2.0/24"}, {"subnet": "fd00::/64"}]]),
            json!([[{"subnet": "10.1.2.0/24"}, {"subnet": "10.1.2.0/25"}]]),
            json!([[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.2.128/25"}]]),
            json!("nonsense"),
            json!([[{"subnet": 5}]]),
            Value::Null,
        ];
        for ranges in bad {
            fails(lab, &config(json!({"ranges": ranges})), "a");
        }
        let early = json!([[{"subnet": "10.1.2.0/24"}], [{"subnet": "10.1.3.0/24"}]]);
        let mut config = ranges_of("0.2.0", early);
        fails(lab, &config, "a");
        config["ipam"]["ranges"] = json!([[{"subnet": "10.1.2.0/24"}], [{"subnet": "fd00::/64"}]]);
        fine(&lab.one("ADD", &config, &attachment("a")));
    }

    fn del_needs_no_valid_ranges(lab) {
        let good = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        add(lab, &good, "a");
        del(lab, &ranges(json!([[{"subnet": "10.1.2.0/99"}]])), "a");
        assert!(leases().is_empty(), "{:?}", leases());
    }

    fn ranges_of_the_runtime_come_first(lab) {
        let mut config = config(json!({"subnet": "10.1.2.0/24"}));
        config["runtimeConfig"] = json!({"ipRanges": [[{"subnet": "10.7.0.0/24"}]]});
        assert_eq!(add(lab, &config, "a"), ["10.7.0.2/24", "10.1.2.2/24"]);
    }

    fn keys_of_any_case_are_understood(lab) {
        let config = json!({"CNIVERSION": "1.0.0", "Name": "net", "type": "host-local",
            "IPAM": {"Type": "host-local", "DATADIR": DATA, "SubNet": "10.1.2.0/24", "RANGESTART": "10.1.2.40"}});
        assert_eq!(add(lab, &config, "a"), ["10.1.2.40/24"]);
    }

    fn leases_of_an_earlier_boot_belong_to_nobody(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/29"}]]));
        reboot(1);
        for id in ["a", "b", "c", "d", "e"] {
            add(lab, &config, id);
        }
        fails(lab, &config, "f");
        reboot(2);
        for id in ["f", "g", "h", "i", "j"] {
            add(lab, &config, id);
        }
        fails(lab, &config, "k");
    }

    fn the_same_container_comes_back_after_a_reboot(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        reboot(1);
        add(lab, &config, "a");
        let text = fails(lab, &config, "a");
        assert!(text.contains("10.1.2.2") && text.contains('a'), "{text}");
        reboot(2);
        add(lab, &config, "a");
    }

    fn leases_outlive_a_reboot_when_that_is_asked_for(lab) {
        let config = config(json!({"subnet": "10.1.2.0/30", "reclaimAfterReboot": false}));
        reboot(1);
        add(lab, &config, "a");
        reboot(2);
        fails(lab, &config, "b");
    }

    fn gc_frees_exactly_what_is_not_listed(lab) {
        let mut config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        config["cniVersion"] = json!("1.1.0");
        for id in ["a", "b", "c"] {
            add(lab, &config, id);
        }
        let gc = |valid: Option<Value>| {
            let mut config = config.clone();
            if let Some(valid) = valid {
                config["cni.dev/valid-attachments"] = valid.clone();
                config["cni.dev/attachments"] = valid;
            }
            let call = lab.ours.bare("host-local", "GC").unwrap();
            fine(&call.stdin(config.to_string()).run().unwrap());
        };
        gc(None);
        assert_eq!(leases().len(), 3, "no list, nothing to do");
        gc(Some(json!([{"containerID": "b", "ifname": "eth0"}, {"containerID": "c", "ifname": "eth1"}])));
        assert_eq!(leases(), ["10.1.2.3"]);
        gc(Some(Value::Null));
        assert!(leases().is_empty(), "null says that none is valid");
    }

    fn status_fails_when_no_address_is_left(lab) {
        let mut config = ranges(json!([[{"subnet": "10.1.2.0/30"}]]));
        config["cniVersion"] = json!("1.1.0");
        let status = || {
            let call = lab.ours.bare("host-local", "STATUS").unwrap();
            call.stdin(config.to_string()).run().unwrap()
        };
        fine(&status());
        add(lab, &config, "a");
        refused(&status(), 50);
        del(lab, &config, "a");
        fine(&status());
    }

    fn a_stuck_holder_of_the_lock_is_not_waited_for_forever(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        add(lab, &config, "a");
        let file = fs::File::open(lease("lock")).unwrap();
        let _held = Flock::lock(file, FlockArg::LockExclusive).unwrap();
        let answer = lab.one("ADD", &config, &attachment("b"));
        let text = refused(&answer, 11);
        assert!(text.contains("lock"), "{text}");
        assert!(answer.took < Duration::from_secs(25), "{:?}", answer.took);
    }

    fn damaged_files_are_survived(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        let directory = Path::new(DATA).join("net");
        fs::create_dir_all(directory.join("10.1.2.9")).unwrap();
        fs::write(lease("10.1.2.2"), "").unwrap();
        fs::write(lease("10.1.2.3"), [0xff; 5000]).unwrap();
        fs::write(lease("last_reserved_ip.0"), "rubbish\n").unwrap();
        fs::write(lease("10.1.2.999"), "not an address").unwrap();
        let got = add(lab, &config, "a");
        assert!(got[0] != "10.1.2.3/24", "somebody's file is not overwritten: {got:?}");
        fine(&lab.one("CHECK", &config, &attachment("a")));
        del(lab, &config, "a");
        assert!(lease("10.1.2.3").is_file() && lease("10.1.2.9").is_dir());
    }

    fn parallel_adds_never_share_an_address(lab) {
        let config = ranges(json!([[{"subnet": "10.1.2.0/24"}]]));
        std::thread::scope(|scope| {
            for number in 0..60 {
                let config = &config;
                scope.spawn(move || add(lab, config, &format!("c{number}")));
            }
        });
        assert_eq!(leases().len(), 60);
        std::thread::scope(|scope| {
            for number in 0..60 {
                let config = &config;
                scope.spawn(move || del(lab, config, &format!("c{number}")));
            }
        });
        assert!(leases().is_empty());
    }

    fn cost_does_not_grow_with_the_leases(lab) {
        // Counted in system calls, which no other load on the machine can disturb.
        let trace = "/run/sandbox/tmp/calls";
        let strace = tool("strace", "strace");
        let mut wrapper = vec![strace.into_os_string()];
        wrapper.extend(["-f", "-qq", "-o", trace].map(std::ffi::OsString::from));
        let traced = lab.ours.clone().under(&wrapper);
        let config = ranges(json!([[{"subnet": "10.0.0.0/8"}]]));
        let calls = |id: &str| {
            let mut count = 0;
            for verb in ["ADD", "CHECK", "DEL"] {
                fine(&one_of(&traced, verb, &config, &attachment(id)));
                count += fs::read_to_string(trace).unwrap().lines().count();
            }
            count
        };
        calls("first");
        let few = calls("few");
        for number in 0..20_000_u32 {
            let address = std::net::Ipv4Addr::from(0x0a10_0000 + number);
            fs::write(lease(&address.to_string()), format!("other-{number}\r\neth0")).unwrap();
        }
        // Somebody else wrote all these: one command has to look at them.
        calls("second");
        let many = calls("many");
        assert!(many < few + 100, "{few} system calls with few leases, {many} with 20000");
    }
}

fn ranges_of(version: &str, subnets: Value) -> Value {
    let mut config = ranges(subnets);
    config["cniVersion"] = json!(version);
    config
}
